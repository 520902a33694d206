// The rules of the session as of a call: their words, where they were said, and where they are.

import { counted, make, moment } from "./text.js";

const RULE_PLACES = {
  verbatim: "in view word for word",
  listed: "listed in the window",
  no_room: "no room in the window",
  superseded: "replaced or taken back by",
  removed: "removed by the application",
};

/** Return an address as a button that opens its page; as text where it is of no page. */
function addressOf(address, opened) {
  const [page, position] = address.split("/");
  if (position === undefined) return make("span", { text: address });
  return make("button", { type: "button", class: "page-link", text: address, title: `Open page ${page}`, on: { click: () => opened(page) } });
}

function ruleItem({ rule, state, by }, opened) {
  const isOver = state === "superseded" || state === "removed";
  const said = [moment(rule.at), rule.speaker].filter(Boolean).join(" · ");
  return make(
    "li",
    {},
    make(isOver ? "del" : "span", { class: "rule", dir: "auto", text: rule.text }),
    make(
      "span",
      { class: "where" },
      addressOf(rule.address, opened),
      make("span", { dir: "auto", text: said }),
      make("span", { text: RULE_PLACES[state] }),
      by === null ? null : addressOf(by, opened),
    ),
  );
}

/** Return a section with the rules as of a call, those that are over folded up; null where there are none. */
export function rulesPart(rules, call, opened) {
  const known = rules
    .map((rule) => [rule, rule.places.findLast(([from]) => from <= call)])
    .filter(([, place]) => place?.[1])
    .map(([rule, [, state, by]]) => ({ rule, state, by }));
  if (!known.length) return null;
  const over = known.filter(({ state }) => state === "superseded" || state === "removed");
  const current = known.filter((each) => !over.includes(each));
  const items = (some) => make("ol", {}, ...some.map((each) => ruleItem(each, opened)));
  return make(
    "section",
    { class: "session-rules", "aria-label": "Rules" },
    make("h3", { text: "Rules" }),
    current.length ? items(current) : make("p", { class: "quiet", text: "No rule is in force." }),
    over.length ? make("details", {}, make("summary", { text: `${counted(over.length, "rule")} no longer in force` }), items(over)) : null,
  );
}
