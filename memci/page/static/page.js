// The page: one band over all calls, and views of the call that is chosen.

import { changeView } from "./acting.js";
import { callAt, makeBand } from "./band.js";
import { compareView } from "./compare.js";
import { costView, saved } from "./cost.js";
import { pagesView } from "./pages.js";
import { PARTS, swatch } from "./parts.js";
import { searchView } from "./search.js";
import { counted, fill, make, number, share, visible } from "./text.js";
import { windowView } from "./windows.js";

const byId = (id) => document.getElementById(id);

const FOCUSED = "memci-focused"; // what had the focus before the page was read again, by its id

function reload(place) {
  sessionStorage.setItem(FOCUSED, document.activeElement?.id ?? "");
  history.replaceState(null, "", place);
  document.querySelector("main").setAttribute("aria-busy", "true"); // until the page that replaces this one is drawn
  location.reload();
}

/** Draw the page of what a source knows. */
export function start(source) {
  const { facts } = source;
  const names = ["window", "compare", "pages", "search", "cost", ...(source.act ? ["change"] : [])];
  const { calls, marks, misses } = facts;
  const last = calls.seq.length - 1;
  let { call, view } = asked();
  const slider = byId("call");
  const stops = [...new Set([...marks.map(([seq]) => callAt(calls, seq)), ...misses.map(([number_]) => number_)])].sort((one, two) => one - two);
  const band = makeBand(byId("band"), facts, go);
  const opened = (index) => {
    turn("pages");
    views.pages.open(index);
  };
  const views = {
    window: windowView(byId("view-window"), source, { opened, go }),
    compare: compareView(byId("view-compare"), source, { opened, chosen: draw }),
    pages: pagesView(byId("view-pages"), source, { went: (seq) => go(callAt(calls, seq)) }),
    search: searchView(byId("view-search"), source, { opened }),
    cost: costView(byId("view-cost"), source),
    ...(source.act ? { change: changeView(byId("view-change"), source) } : {}),
  };
  byId("tab-change").hidden = !source.act;

  /** Return the call and the view that the address of the page names. */
  function asked() {
    const named = new URLSearchParams(location.hash.slice(1));
    const number_ = Math.round(Number(named.get("call"))) || last + 1;
    return { call: Math.min(last, Math.max(0, number_ - 1)), view: names.includes(named.get("view")) ? named.get("view") : "window" };
  }

  function go(wanted) {
    call = Math.min(last, Math.max(0, wanted));
    slider.value = call;
    tell();
    draw();
    if (view === "window" || view === "compare") views[view].show(call);
    remember();
  }

  function draw() {
    band.draw(call, view === "compare" ? views.compare.other() : -1);
  }

  function turn(wanted) {
    view = wanted;
    for (const name of names) {
      const tab = byId(`tab-${name}`);
      tab.setAttribute("aria-selected", String(name === view));
      tab.tabIndex = name === view ? 0 : -1;
      byId(`view-${name}`).hidden = name !== view;
    }
    views[view].show(call);
    draw();
    remember();
  }

  function remember() {
    history.replaceState(null, "", `#view=${view}&call=${call + 1}`);
  }

  function tell() {
    const name = call === last ? "now" : `call ${number(call + 1)} of ${number(last)}`;
    const size = `${number(calls.tokens[call])} of ${number(calls.budget[call])} tokens`;
    const words = `${name} · turn ${number(calls.turn[call])} · event ${number(calls.seq[call])} · ${size} · ${share(calls.cached[call] / calls.tokens[call])} could come from the cache`;
    byId("moment").textContent = words;
    slider.setAttribute("aria-valuetext", words);
    const from = call ? calls.seq[call - 1] : 0;
    const between = marks.filter(([seq]) => seq > from && seq <= calls.seq[call]).map(([, , what]) => what);
    const missed = misses.find(([number_]) => number_ === call);
    const told = [...between];
    if (missed && !between.length) told.push(missed[1]);
    byId("happened").replaceChildren(
      ...(missed ? [make("span", { class: "tag miss", text: "cache miss" })] : []),
      make("span", { dir: "auto", text: told.join("; ") }),
    );
  }

  function jump(step) {
    const found = step > 0 ? stops.find((stop) => stop > call) : stops.filter((stop) => stop < call).at(-1);
    if (found !== undefined) go(found);
  }

  function head() {
    const title = facts.title || facts.session;
    byId("title").replaceChildren(document.createTextNode(""));
    fill(byId("title"), make("span", { text: title }));
    const about = [facts.title ? facts.session : "", counted(facts.turn, "turn"), counted(facts.seq, "event"), facts.format, facts.counter, `preset ${facts.preset}`];
    byId("brand").textContent = `memci ${facts.memci}`;
    fill(byId("about"), make("span", { text: about.filter(Boolean).join(" · ") }));
    const [ours, whole, sliding] = facts.ways;
    const folds = marks.filter(([, kind]) => kind === "folded").length;
    const recalls = marks.filter(([, kind]) => kind === "recalled").length;
    const figures = [
      ["calls", number(ours.calls), `${counted(folds, "fold")}, ${counted(recalls, "recall")}`],
      ["tokens sent", number(ours.tokens), `${saved(ours.tokens, whole.tokens)} than everything`],
      ["cost", number(ours.cost), `${saved(ours.cost, whole.cost)} than everything, ${saved(ours.cost, sliding.cost)} than a sliding window`],
      ["prefix reuse", share(ours.reuse), counted(misses.length, "cache miss", "cache misses")],
    ];
    fill(byId("figures"), ...figures.map(([name, value, note]) => make("div", {}, make("dt", { text: name }), make("dd", { class: "value", text: value }), make("dd", { class: "note", text: note }))));
    const names = Object.keys(PARTS).filter((name) => calls.parts[name]);
    const parts = names.map((name) => make("li", {}, swatch("part", name), make("span", { text: PARTS[name] })));
    const cached = make("li", {}, make("span", { class: "swatch cached-mark", "aria-hidden": "true" }), make("span", { text: "up to here as the call before" }));
    fill(byId("legend"), ...parts, cached);
    const most = calls.tokens.reduce((top, tokens) => Math.max(top, tokens), 0);
    byId("band").setAttribute("aria-label", `Tokens of ${counted(last, "call")} by part, at most ${number(most)}; ${counted(folds, "fold")}, ${counted(recalls, "recall")}, ${counted(misses.length, "cache miss", "cache misses")}. The slider below goes through the calls.`);
  }

  slider.max = last;
  slider.addEventListener("input", () => go(Number(slider.value)));
  byId("call-before").addEventListener("click", () => go(call - 1));
  byId("call-after").addEventListener("click", () => go(call + 1));
  byId("mark-before").addEventListener("click", () => jump(-1));
  byId("mark-after").addEventListener("click", () => jump(1));
  names.forEach((name, place) => {
    byId(`tab-${name}`).addEventListener("click", () => turn(name));
    byId(`tab-${name}`).addEventListener("keydown", (event) => {
      const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -place, End: names.length - 1 - place };
      if (event.key in steps) {
        event.preventDefault();
        const next = names[(place + steps[event.key] + names.length) % names.length];
        turn(next);
        byId(`tab-${next}`).focus();
      }
    });
  });
  addEventListener("unhandledrejection", (event) => {
    byId("moment").textContent = `This cannot be shown: ${visible(event.reason?.message ?? event.reason)}`;
  });
  addEventListener("hashchange", () => {
    const now = asked();
    go(now.call);
    turn(now.view);
  });
  new ResizeObserver(draw).observe(byId("band"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    band.restyle();
    views.pages.restyle();
    draw();
  });
  head();
  slider.value = call;
  tell();
  const chosen = new URLSearchParams(location.hash.slice(1)).get("page");
  turn(view);
  if (chosen) views.pages.open(chosen);
  if (source.act) byId(sessionStorage.getItem(FOCUSED))?.focus();
  document.querySelector("main").removeAttribute("aria-busy");
  return {
    /** Return whether the window as it was when the page was read is shown, and nothing else. */
    isNow: () => call === last && view === "window",
    /** Read the page again, in the same view, as it is then. */
    again() {
      reload(`#view=${view}&page=${encodeURIComponent(views.pages.chosen())}`);
    },
    /** Read the page again, and show the window as it is then. */
    renew() {
      reload("#");
    },
    /** Say something of the page as a whole; nothing, where the text is empty. */
    say(text) {
      byId("news").textContent = visible(text);
    },
    /** Say that something happened since, with a button that shows it. */
    offer() {
      const renew = make("button", { type: "button", text: "Show it", on: { click: this.renew } });
      fill(byId("happened"), make("span", { text: "Something happened since this was read. " }), renew);
    },
  };
}
