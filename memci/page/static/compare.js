// Two windows beside each other: by default that of a call and that of the call before.

import { difference, partsTable } from "./difference.js";
import { fill, make, number, whileBusy } from "./text.js";

/** Return a view that compares the window of a call with that of another, by default of the call before. */
export function compareView(view, source, { opened, chosen }) {
  const { calls } = source.facts;
  const input = make("input", { type: "number", min: "1", max: calls.seq.length, id: "other-call" });
  const about = make("p", { class: "quiet", role: "status" });
  const table = make("div");
  const list = make("div", { class: "messages" });
  const label = make("label", { for: "other-call", text: "Compare with call" });
  fill(view, make("div", { class: "line bar-line" }, label, input, about), make("div", { class: "beside" }, list, make("aside", { class: "side" }, table)));
  let [shown, fixed] = [0, null];
  input.addEventListener("change", () => {
    const wanted = Math.round(Number(input.value)) - 1;
    fixed = Number.isFinite(wanted) ? Math.min(calls.seq.length - 1, Math.max(0, wanted)) : null;
    chosen(other());
    show(shown);
  });

  function other() {
    return fixed === null ? Math.max(0, shown - 1) : fixed;
  }

  const show = (call) => whileBusy(view, () => draw(call));

  async function draw(call) {
    shown = call;
    const from = other();
    input.value = from + 1;
    fill(table, parts(from, call));
    const [before, after] = await Promise.all([source.window(from), source.window(call)]);
    if (shown !== call || other() !== from) return;
    if (before === null || after === null) {
      about.textContent = "";
      const missing = before === null ? from : call;
      fill(list, make("p", { class: "notice", text: `This file does not hold the messages of call ${number(missing + 1)}.` }));
      return;
    }
    const { told, articles } = difference(before, after, opened);
    about.textContent = told;
    fill(list, ...articles);
  }

  function parts(from, call) {
    const of = (place) => Object.fromEntries(Object.keys(calls.parts).map((name) => [name, calls.parts[name][place]]));
    const heads = [`call ${number(from + 1)}`, `call ${number(call + 1)}`];
    return partsTable(heads, { breakdown: of(from), tokens: calls.tokens[from] }, { breakdown: of(call), tokens: calls.tokens[call] });
  }

  return { show, other };
}
