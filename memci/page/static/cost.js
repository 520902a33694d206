// What the calls cost beside other ways to fill a window, and what presets would make of the session.

import { fill, make, number, share, whileBusy } from "./text.js";

const WAYS = { memci: "memci: these windows", whole: "everything, at every call", sliding: "the last messages that fit" };

/** Return how much less one way sends or costs than another, in words. */
export function saved(ours, theirs) {
  const part = theirs ? 1 - ours / theirs : 0;
  return part >= 0 ? `${share(part)} less` : `${share(-part)} more`;
}

/** Return a view of what the calls cost. */
export function costView(view, source) {
  const { ways, prices } = source.facts;
  const [ours] = ways;
  let ready = false;

  function beside() {
    const head = ["what is sent", "tokens sent", "memci sends", "prefix reuse", "cost", "memci costs"].map((text) => make("th", { scope: "col", text }));
    const rows = ways.map((way) =>
      make(
        "tr",
        {},
        make("th", { scope: "row", text: WAYS[way.way] }),
        make("td", { text: number(way.tokens) }),
        make("td", { class: "note", text: way === ours ? "" : saved(ours.tokens, way.tokens) }),
        make("td", { text: share(way.reuse) }),
        make("td", { text: number(way.cost) }),
        make("td", { class: "note", text: way === ours ? "" : saved(ours.cost, way.cost) }),
      ),
    );
    const caption = `What ${number(ours.calls)} calls send. Cost is in tokens of plain input: what the call before began with as well costs ${prices.read}, the rest ${prices.write}. The schemas of tools count in each way.`;
    return table(caption, head, rows);
  }

  function presets(found) {
    const head = ["figure", ...found.columns].map((text) => make("th", { scope: "col", text }));
    const rows = found.rows.map(({ label, kind, values }) =>
      make("tr", {}, make("th", { scope: "row", text: label }), ...values.map((value) => make("td", { text: kind === "share" ? share(value) : number(value) }))),
    );
    return table("This session under other strategies, played again in memory. “now” has the settings that it has; recalls and folds that somebody asked for are not repeated.", head, rows);
  }

  async function draw() {
    fill(view, beside());
    const found = await source.presets();
    const none = "Presets are not set side by side here, as the session is long: memci html --preset NAME,... does it.";
    view.append(found ? presets(found) : make("p", { class: "notice", text: none }));
  }

  return {
    async show() {
      if (ready) return;
      ready = true;
      await whileBusy(view, draw);
    },
  };
}

function table(caption, head, rows) {
  const made = make("table", { class: "figures-table" }, make("caption", { text: caption }), make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, made);
}
