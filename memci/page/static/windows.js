// The window of one call: exactly what was sent, with its parts and what the provider's cache had of it.

import { article } from "./messages.js";
import { PARTS, swatch } from "./parts.js";
import { rulesPart } from "./rules.js";
import { fill, make, number, share, whileBusy } from "./text.js";

/** Return the tokens of a call by part, as a table. */
export function breakdown(calls, call) {
  const total = calls.tokens[call];
  const rows = Object.keys(PARTS)
    .filter((name) => calls.parts[name]?.[call])
    .map((name) => {
      const tokens = calls.parts[name][call];
      const bar = make("span", { class: `bar part-${name}`, "aria-hidden": "true" });
      bar.style.width = `${(100 * tokens) / total}%`;
      return make(
        "tr",
        {},
        make("th", { scope: "row" }, swatch("part", name), make("span", { text: PARTS[name] })),
        make("td", { text: number(tokens) }),
        make("td", { class: "wide" }, bar, make("span", { class: "share", text: share(tokens / total) })),
      );
    });
  const sum = make(
    "tr",
    { class: "sum" },
    make("th", { scope: "row", text: "window" }),
    make("td", { text: number(total) }),
    make("td", { class: "wide", text: `of ${number(calls.budget[call])}` }),
  );
  const head = make("tr", {}, ...["part", "tokens", "share"].map((text) => make("th", { scope: "col", text })));
  return make("table", { class: "parts" }, make("caption", { text: "Tokens by part" }), make("thead", {}, head), make("tbody", {}, ...rows, sum));
}

/** Return a view of the window of one call. `go(call)` goes to another one. */
export function windowView(view, source, { opened, go }) {
  const { calls, kept, rules } = source.facts;
  let wanted = -1;

  async function draw(call) {
    wanted = call;
    const side = make("aside", { class: "side" }, breakdown(calls, call), facts(call), rulesPart(rules, call, opened));
    const shown = await source.window(call);
    if (wanted !== call) return;
    const list = make("div", { class: "messages" });
    if (shown === null) list.append(missing(call));
    else list.append(...messages(shown));
    fill(view, make("div", { class: "beside" }, list, side));
  }

  function facts(call) {
    const cached = calls.cached[call];
    const rows = [
      ["the provider's cache could have", `${number(cached)} tokens, ${share(cached / calls.tokens[call])}`],
      ["everything so far would be", `${number(calls.whole[call])} tokens`],
      ["again by", `memci render --at ${calls.seq[call]}`],
    ];
    const told = rows.flatMap(([name, text]) => [make("dt", { text: name }), make("dd", { text })]);
    const page = calls.answer[call];
    if (page) {
      const button = make("button", { type: "button", class: "page-link", text: page, on: { click: () => opened(page) } });
      told.push(make("dt", { text: "the answer is in" }), make("dd", {}, button));
    }
    return make("dl", { class: "facts" }, ...told);
  }

  function missing(call) {
    const nearest = kept.reduce((best, each) => (Math.abs(each - call) < Math.abs(best - call) ? each : best), kept[0]);
    const button = make("button", { type: "button", text: `Go to call ${number(nearest + 1)}`, on: { click: () => go(nearest) } });
    const told = `This file holds the messages of ${number(kept.length)} of ${number(calls.seq.length)} windows, and not of this one.`;
    const command = `memci render --at ${calls.seq[call]} shows it; memci html --windows N holds more.`;
    return make("div", { class: "notice" }, make("p", { text: told }), make("p", { text: command }), button);
  }

  function messages(shown) {
    const found = shown.messages.map((message, place) =>
      article(message, { part: shown.parts[place], page: shown.pages[place], cached: place < shown.cached, opened }),
    );
    if (shown.system !== null) found.unshift(article(shown.system, { part: "system", cached: shown.cached > 0, opened }));
    if (shown.cached) {
      const place = shown.cached + (shown.system === null ? 0 : 1);
      found.splice(place, 0, make("p", { class: "edge", text: "The call before begins like this up to here; what follows is new." }));
    }
    return found;
  }

  return { show: (call) => whileBusy(view, () => draw(call)) };
}
