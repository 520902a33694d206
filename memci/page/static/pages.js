// Pages as a timeline and as a tree, coloured by state, and all that is known of the one that is chosen.

import { pageActions } from "./acting.js";
import { virtualList } from "./list.js";
import { body, clipped } from "./messages.js";
import { colour, STATES, swatch } from "./parts.js";
import { counted, fill, make, moment, number, visible, whileBusy } from "./text.js";

/** Return a view of the pages; `went(seq)` goes to the window of an event. */
export function pagesView(view, source, { went }) {
  const { pages } = source.facts;
  const places = new Map(pages.index.map((index, place) => [index, place]));
  const most = pages.tokens.reduce((top, tokens) => Math.max(top, tokens), 1);
  const filter = make("input", { type: "search", id: "page-filter", placeholder: "index or words", autocomplete: "off" });
  const states = make("select", { id: "page-state" }, make("option", { value: "", text: "all states" }));
  for (const state of Object.keys(STATES)) {
    const count = pages.state.filter((each) => each === state).length;
    if (count) states.append(make("option", { value: state, text: `${state}: ${number(count)}` }));
  }
  const shape = make("button", { type: "button", "aria-pressed": "false", text: "As a tree" });
  const strip = make("canvas", { class: "strip", role: "img" });
  const legend = make("ul", { class: "legend" });
  const detail = make("div", { class: "detail", role: "region", "aria-label": "The chosen page" });
  const news = make("p", { class: "sr", role: "status" });
  const holder = make("div", { class: "holder" });
  let shown = pages.index.map((_, place) => place);
  let [branches, tree, wanted] = [[], null, ""];
  const open = new Set();

  const timeline = virtualList({
    label: "Pages, oldest first",
    draw: (place) => line(shown[place]),
    facts: (place) => ({ title: STATES[pages.state[shown[place]]] }),
    chosen: (place) => choose(pages.index[shown[place]]),
  });
  const grown = virtualList({
    label: "Page tree",
    role: "tree",
    draw: (place) => branchLine(branches[place]),
    facts: (place) => branchFacts(branches[place]),
    chosen: (place) => (branches[place].children ? toggle(place) : choose(branches[place].index)),
    keys: (key, place) => turn(key, place),
  });

  function line(place) {
    const bar = make("span", { class: `bar state-${pages.state[place]}` });
    bar.style.width = `${Math.max(2, (100 * pages.tokens[place]) / most)}%`;
    return [
      swatch("state", pages.state[place]),
      make("span", { class: "index", text: pages.index[place] }),
      make("span", { class: "title", dir: "auto", text: pages.title[place] || "(nothing said)" }),
      make("span", { class: "badge", text: [pages.recall_count[place] ? `↺ ${pages.recall_count[place]}` : "", pages.held[place]].join(" ").trim() }),
      make("span", { class: "size", "aria-hidden": "true" }, bar),
      make("span", { class: "tokens", text: number(pages.tokens[place]) }),
      make("span", { class: "sr", text: `tokens, ${pages.state[place]}` }),
    ];
  }

  function branchLine(branch) {
    const indent = make("span", { class: "indent" });
    indent.style.width = `${branch.level * 1.1}rem`;
    if (!branch.children) return [indent, ...(places.has(branch.index) ? line(places.get(branch.index)) : [make("span", { text: branch.index })])];
    const sign = make("span", { class: "turner", "aria-hidden": "true", text: open.has(branch.name) ? "▾" : "▸" });
    const count = make("span", { class: "badge", text: counted(branch.children.length, "child", "children") });
    return [indent, sign, make("span", { class: "index", text: branch.index }), make("span", { class: "title", dir: "auto", text: branch.title }), count];
  }

  function branchFacts(branch) {
    const expanded = branch.children ? { "aria-expanded": String(open.has(branch.name)) } : {};
    return { "aria-level": branch.level + 1, "aria-setsize": branch.beside, "aria-posinset": branch.position, ...expanded };
  }

  function flatten(children, level, name) {
    children.forEach((child, place) => {
      const branch = typeof child === "string" ? { index: child } : { ...child };
      Object.assign(branch, { level, name: `${name}/${place}`, beside: children.length, position: place + 1 });
      branches.push(branch);
      if (branch.children && open.has(branch.name)) flatten(branch.children, level + 1, branch.name);
    });
  }

  function growTree(place) {
    branches = [];
    flatten(tree, 0, "");
    grown.redraw(branches.length, place);
  }

  function toggle(place) {
    const { name } = branches[place];
    if (!open.delete(name)) open.add(name);
    growTree(place);
  }

  function turn(key, place) {
    const branch = branches[place];
    if (!branch?.children || (key === "ArrowRight") === open.has(branch.name)) return false;
    if (key !== "ArrowRight" && key !== "ArrowLeft") return key === "Enter" && (toggle(place), true);
    toggle(place);
    return true;
  }

  async function reshape() {
    const isTree = shape.getAttribute("aria-pressed") !== "true";
    shape.setAttribute("aria-pressed", String(isTree));
    if (isTree && tree === null) {
      tree = await source.tree();
      tree.forEach((_, place) => open.add(`/${place}`));
    }
    if (shape.getAttribute("aria-pressed") !== String(isTree)) return; // it was pressed again while the tree was loaded
    fill(holder, isTree ? grown.element : timeline.element);
    filter.disabled = states.disabled = isTree;
    if (isTree) growTree(-1);
    else narrow();
  }

  function narrow() {
    const words = filter.value.trim().toLowerCase();
    const fits = (place) =>
      (!states.value || pages.state[place] === states.value) &&
      (!words || pages.index[place].includes(words) || pages.title[place].toLowerCase().includes(words));
    shown = pages.index.map((_, place) => place).filter(fits);
    timeline.redraw(shown.length, shown.indexOf(places.get(wanted) ?? -1));
    timeline.element.setAttribute("aria-label", `Pages, oldest first: ${number(shown.length)} of ${number(pages.index.length)}`);
  }

  function paint() {
    const wide = strip.clientWidth || 900;
    strip.width = wide;
    strip.height = 18;
    const pen = strip.getContext("2d");
    const colours = Object.fromEntries(Object.keys(STATES).map((state) => [state, colour("state", state)]));
    const total = pages.index.length;
    for (let place = 0; place < Math.min(total, wide); place += 1) {
      const page = total <= wide ? place : Math.floor((place * total) / wide);
      const broad = wide / Math.min(total, wide);
      pen.fillStyle = colours[pages.state[page]];
      pen.fillRect(place * broad, 0, broad > 3 ? broad - 1 : broad + 0.3, 18);
    }
  }

  strip.addEventListener("click", (event) => {
    const place = Math.floor((event.offsetX / strip.clientWidth) * pages.index.length);
    choose(pages.index[Math.min(pages.index.length - 1, Math.max(0, place))]);
  });
  filter.addEventListener("input", narrow);
  states.addEventListener("change", narrow);
  shape.addEventListener("click", () => whileBusy(holder, reshape));
  new ResizeObserver(paint).observe(strip);

  const counts = Object.keys(STATES).map((state) => [state, pages.state.filter((each) => each === state).length]);
  strip.setAttribute("aria-label", `${counted(pages.index.length, "page")}: ${counts.filter(([, count]) => count).map(([state, count]) => `${number(count)} ${state}`).join(", ")}`);
  legend.append(...counts.filter(([, count]) => count).map(([state]) => make("li", {}, swatch("state", state), make("span", { text: STATES[state] }))));
  const line1 = make("div", { class: "line bar-line" }, make("label", { for: "page-filter", text: "Filter" }), filter, make("label", { for: "page-state", class: "sr", text: "State" }), states, shape);
  fill(view, line1, strip, legend, make("div", { class: "beside pages" }, holder, detail), news);
  fill(holder, timeline.element);
  fill(detail, make("p", { class: "quiet", text: "Choose a page to see its messages, its line in the contents page, and why it is where it is." }));

  async function choose(index) {
    wanted = index;
    const place = places.get(index);
    if (place === undefined) return;
    const row = shown.indexOf(place);
    if (row >= 0 && timeline.place() !== row) timeline.select(row);
    await whileBusy(detail, () => showPage(index, place));
  }

  async function showPage(index, place) {
    const found = await source.page(index);
    if (wanted !== index) return;
    fill(detail, ...pageParts(found, place));
    news.textContent = visible(`${index}: ${pages.state[place]}, ${counted(found.entries.length, "message")}`);
  }

  function pageParts(found, place) {
    const size = `${pages.state[place]} · turn ${number(pages.turn[place])} · ${counted(found.entries.length, "message")} · ${number(pages.tokens[place])} tokens`;
    const revision = pages.revision[place] ? ` · revision ${pages.revision[place]}` : "";
    const history = found.history.map(([seq, words]) =>
      make("li", {}, make("button", { type: "button", class: "page-link", text: `event ${number(seq)}`, on: { click: () => went(seq) } }), make("span", { dir: "auto", text: ` ${words}` })),
    );
    const said = found.entries.map(({ at, tokens, message }, number_) =>
      make("article", { class: "message" }, make("header", {}, make("span", { class: "part", text: `${found.index}/${number_ + 1}` }), make("span", { class: "role", text: message.role }), make("span", { class: "quiet", text: `${number(tokens)} tokens · ${moment(at)}` })), ...body(message)),
    );
    return [
      make("h3", {}, swatch("state", pages.state[place]), make("span", { text: found.index }), make("span", { class: "title", dir: "auto", text: pages.title[place] })),
      make("p", { class: "quiet", text: size + revision }),
      ...pageActions(source, found.index, pages.state[place], pages.held[place]),
      make("h4", { text: "Why it is where it is" }),
      make("ul", {}, ...found.reasons.map((reason) => make("li", { dir: "auto", text: reason }))),
      make("h4", { text: "In the contents page" }),
      make("p", { class: "quiet", text: found.in_contents ? "The contents page in the window has it." : "The contents page in the window does not have it." }),
      ...(found.line ? clipped(found.line, "pre", "rest") : []),
      make("details", {}, make("summary", { text: "Its numbers" }), numbers(found.facts)),
      make("h4", { text: "What happened to it" }),
      history.length ? make("ol", { class: "history" }, ...history) : make("p", { class: "quiet", text: "Nothing but what was said." }),
      make("h4", { text: "Messages" }),
      ...said,
    ];
  }

  function numbers(told) {
    const rows = Object.entries(told).filter(([, value]) => value !== null);
    const cells = rows.map(([name, value]) => make("tr", {}, make("th", { scope: "row", text: name }), make("td", { text: typeof value === "number" ? number(value) : value })));
    return make("table", {}, make("tbody", {}, ...cells));
  }

  return {
    open: choose,
    chosen: () => wanted,
    show: () => {
      paint();
      timeline.redraw(shown.length, timeline.place());
    },
    restyle: paint,
  };
}
