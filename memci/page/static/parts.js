// The parts of a window and the states of a page: their order, their names, their colours.

import { make } from "./text.js";

export const PARTS = {
  system: "system part",
  tools: "tools",
  contents: "contents page",
  mounted: "mounted sessions",
  facts: "facts with their owners",
  work: "working set",
  rules: "rules of the user's",
  directives: "instructions of earlier pages",
  recalled: "recalled",
  active: "active pages",
  open: "open page",
  slots: "slots",
  extra: "extra texts",
  reply: "reply",
};

export const STATES = {
  open: "open: the next message joins it",
  active: "active: word for word in the window",
  attached: "attached: recalled into the window",
  archived: "archived: a line of its own in the contents page",
  hidden: "hidden: grouped in a directory",
  evicted: "evicted: search alone finds it",
};

/** Return the colour of a part or a state, as the style sheet has it for light and dark. */
export function colour(kind, name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${kind}-${name}`).trim() || "#888";
}

/** Return a square in the colour of a part or a state. */
export function swatch(kind, name) {
  return make("span", { class: `swatch ${kind}-${name}`, "aria-hidden": "true" });
}
