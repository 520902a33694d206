// One message as it was sent: its part, who said it, its words, and the rest of it as JSON.

import { PARTS, swatch } from "./parts.js";
import { make, number, visible } from "./text.js";

const CLIPPED = 900; // characters of a message that are shown at first
const LINES = 12;

/** Return text that is cut where it is long, with a button that shows all of it. */
export function clipped(text, name = "p", kind = "said") {
  const short = shortened(text);
  const element = make(name, { class: kind, dir: "auto", text: short });
  if (short === text) return [element];
  const button = make("button", { type: "button", class: "more", text: `Show all ${number(text.length)} characters` });
  button.addEventListener("click", () => {
    element.textContent = visible(text);
    button.remove();
  });
  return [element, button];
}

function shortened(text) {
  const lines = text.split("\n", LINES + 1);
  const some = lines.length > LINES ? lines.slice(0, LINES).join("\n") : text;
  return some.length > CLIPPED ? `${some.slice(0, CLIPPED)}…` : some === text ? text : `${some}\n…`;
}

/** Return what a message says: words, then the rest as JSON, then how much the page does not hold of it. */
export function body(message) {
  const parts = [];
  if (message.text) parts.push(...clipped(message.text));
  if (message.rest) {
    const rest = clipped(message.rest, "pre", "rest");
    parts.push(...(message.text ? [make("details", {}, make("summary", { text: "as JSON" }), ...rest)] : rest));
  }
  if (message.cut) parts.push(make("p", { class: "quiet", text: `${number(message.cut)} more characters are not shown here.` }));
  return parts;
}

/** Return a message of a window as an article; `opened(page)` hears which page somebody wants to see. */
export function article(message, { part = "", page = "", cached = false, sign = "", opened }) {
  const button = page
    ? make("button", { type: "button", class: "page-link", text: page, title: `Open page ${page}`, on: { click: () => opened(page) } })
    : null;
  const head = make(
    "header",
    {},
    sign ? make("span", { class: "sign", text: sign }) : null,
    swatch("part", part),
    make("span", { class: "part", text: PARTS[part] ?? part }),
    make("span", { class: "role", text: message.role }),
    button,
    cached ? make("span", { class: "tag", text: "in the cache" }) : null,
  );
  return make("article", { class: `message${cached ? " cached" : ""}` }, head, ...body(message));
}
