// A list of which only the rows in sight are drawn, however long it is.

import { make } from "./text.js";

const BESIDE = 6; // rows above and below those in sight

/**
 * Return a list whose rows are all of one height, and of which one row may be chosen, by keys too.
 * `draw(place)` gives what stands in a row, `chosen(place)` hears which was chosen, `facts(place)` gives attributes of a row.
 */
export function virtualList({ label, role = "listbox", height = 34, draw, chosen, facts = () => ({}), keys = () => false }) {
  const inside = make("div", { class: "rows", role: "presentation" });
  const box = make("div", { class: "list", role, tabindex: "0", "aria-label": label }, inside);
  const state = { length: 0, place: -1, drawn: new Map() };
  const item = role === "tree" ? "treeitem" : "option";
  const name = `row-${Math.random().toString(36).slice(2)}`;

  function row(place) {
    const attributes = { class: "row", role: item, id: `${name}-${place}`, "aria-selected": String(place === state.place) };
    const sizes = role === "tree" ? {} : { "aria-setsize": state.length, "aria-posinset": place + 1 };
    const made = make("div", { ...attributes, ...sizes, ...facts(place) }, ...[draw(place)].flat());
    made.style.transform = `translateY(${place * height}px)`;
    made.style.height = `${height}px`;
    made.addEventListener("click", () => pick(place));
    return made;
  }

  function show() {
    const first = Math.max(0, Math.floor(box.scrollTop / height) - BESIDE);
    const last = Math.min(state.length, Math.ceil((box.scrollTop + (box.clientHeight || 600)) / height) + BESIDE);
    for (const [place, element] of state.drawn) {
      if (place < first || place >= last) {
        element.remove();
        state.drawn.delete(place);
      }
    }
    for (let place = first; place < last; place += 1) {
      if (!state.drawn.has(place)) {
        const element = row(place);
        state.drawn.set(place, element);
        inside.append(element);
      }
    }
    if (state.drawn.has(state.place)) box.setAttribute("aria-activedescendant", `${name}-${state.place}`);
    else box.removeAttribute("aria-activedescendant");
  }

  function redraw(length, place = -1) {
    state.length = length;
    state.place = place;
    inside.style.height = `${length * height}px`;
    for (const element of state.drawn.values()) element.remove();
    state.drawn.clear();
    show();
  }

  function select(place) {
    const before = state.drawn.get(state.place);
    if (before) before.setAttribute("aria-selected", "false");
    state.place = place;
    const top = place * height;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + height > box.scrollTop + box.clientHeight) box.scrollTop = top + height - box.clientHeight;
    show();
    const now = state.drawn.get(place);
    if (now) now.setAttribute("aria-selected", "true");
  }

  function pick(place) {
    select(place);
    chosen(place);
  }

  box.addEventListener("scroll", show, { passive: true });
  new ResizeObserver(show).observe(box);
  box.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(box.clientHeight / height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (state.length && event.key in steps) {
      event.preventDefault();
      pick(Math.min(state.length - 1, Math.max(0, state.place + steps[event.key])));
    } else if (keys(event.key, state.place)) {
      event.preventDefault();
    }
  });
  return { element: box, redraw, select, place: () => state.place };
}
