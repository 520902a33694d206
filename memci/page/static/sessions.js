// The sessions of a tenant, those used last first.

import { ask } from "./asking.js";
import { fill, make, moment, number } from "./text.js";

const MOST = 50;
const rows = document.getElementById("sessions");
const more = document.getElementById("more");
const said = document.getElementById("moment");
let after = "";

function row(session) {
  const name = make("a", { href: `sessions/${encodeURIComponent(session.id)}/`, dir: "auto", text: session.title || session.id });
  const texts = [session.title ? session.id : "", session.owner];
  const numbers = [number(session.turns), number(session.events), moment(session.used)];
  return make("tr", {}, make("th", { scope: "row" }, name), ...[...texts, ...numbers].map((text) => make("td", { dir: "auto", text })));
}

async function next() {
  const found = await ask("v1/sessions", after ? { limit: MOST, after } : { limit: MOST });
  rows.append(...found.sessions.map(row));
  after = found.after;
  more.hidden = !after;
  fill(said, make("span", { text: rows.children.length ? "" : "There is no session yet: one begins with its first message." }));
}

function show() {
  next().catch((error) => fill(said, make("span", { text: `This cannot be shown: ${error.message}` })));
}

more.addEventListener("click", show);
show();
