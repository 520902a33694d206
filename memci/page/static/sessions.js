// The sessions of a tenant, those used last first.

import { ask } from "./asking.js";
import { fill, make, moment, number, share, whileBusy } from "./text.js";

const MOST = 50;
const rows = document.getElementById("sessions");
const more = document.getElementById("more");
const said = document.getElementById("moment");
const ids = new Map(); // of the session of each row
const FIGURES = ["", "", "", ""]; // the last columns, as long as nobody saw them
let after = "";

function row(session) {
  const shown = session.title.trim() || (session.id.trim() ? session.id : JSON.stringify(session.id));
  const isNamed = session.id !== "." && session.id !== ".."; // which no address can hold
  const name = make(isNamed ? "a" : "span", { ...(isNamed ? { href: `sessions/${encodeURIComponent(session.id)}/` } : {}), dir: "auto", text: shown, title: shown });
  const texts = [session.title ? session.id : "", session.owner];
  const numbers = [number(session.turns), number(session.events), moment(session.used)];
  const cells = [...texts, ...numbers, ...FIGURES].map((text) => make("td", { dir: "auto", text }));
  const made = make("tr", { "aria-busy": "true" }, make("th", { scope: "row" }, name), ...cells);
  ids.set(made, session.id);
  inSight.observe(made);
  return made;
}

/** Ask for the figures of rows that came in sight, all at once, and show them; one that cannot be read has none. */
async function figures(seen) {
  const found = await ask("v1/stats", seen.map((each) => ["session", ids.get(each)]));
  const known = new Map(found.map((stats) => [stats.session, stats]));
  for (const each of seen) {
    const stats = known.get(ids.get(each));
    if (!stats) continue;
    const part = stats.reports < stats.calls ? ` (${number(stats.reports)} of ${number(stats.calls)} calls)` : "";
    const texts = [number(stats.said_tokens), number(stats.sent_tokens), stats.cost === null ? "" : number(stats.cost) + part];
    const window = make("span", { class: `zone ${stats.zone}`, text: `${stats.zone}, ${share(stats.tokens / stats.budget)}` });
    [...each.children].slice(-FIGURES.length).forEach((cell, place) => fill(cell, texts[place] === undefined ? window : make("span", { text: texts[place] })));
  }
}

const inSight = new IntersectionObserver((changes) => {
  for (const change of changes) change.target.setAttribute("aria-busy", String(change.isIntersecting)); // a new row is in sight or not
  const seen = changes.filter((change) => change.isIntersecting).map((change) => change.target);
  seen.forEach((each) => inSight.unobserve(each));
  while (seen.length) showFigures(seen.splice(0, MOST));
});

function showFigures(seen) {
  figures(seen).catch(refused).finally(() => seen.forEach((each) => each.setAttribute("aria-busy", "false")));
}

async function next() {
  const found = await ask("v1/sessions", after ? { limit: MOST, after } : { limit: MOST });
  rows.append(...found.sessions.map(row));
  after = found.after;
  more.hidden = !after;
  fill(said, make("span", { text: rows.children.length ? "" : "There is no session yet: one begins with its first message." }));
}

function refused(error) {
  fill(said, make("span", { text: `This cannot be shown: ${error.message}` }));
}

function show() {
  more.disabled = true; // or what is asked for twice would stand there twice
  whileBusy(rows, next).catch(refused).finally(() => { more.disabled = false; });
}

more.addEventListener("click", show);
show();
