// Doing something with the session by hand: first it is shown what that would change, then it is done.

import { difference, partsTable } from "./difference.js";
import { counted, fill, make, moment, number, whileBusy } from "./text.js";

const SIZES = { "": "as far as its marks say", light: "to 20 % less", medium: "to 40 % less", heavy: "to 60 % less", all: "all complete pages" };

/** What can be done with a page in a state, by name; `held` says whether it is pinned or kept. */
function ofPage(state, held) {
  const inView = state === "open" || state === "active";
  const names = { evicted: ["restore"], hidden: ["recall", "restore"], archived: ["recall", "evict"], attached: ["fade"], active: ["fold_page"] }[state] ?? [];
  const pin = held.includes("pinned") ? "unpin" : "pin";
  const keep = held.includes("kept") ? "unkeep" : "keep";
  return [...names, ...(inView || state === "evicted" ? [] : [pin]), ...(state === "evicted" ? [] : [keep])];
}

const NAMES = {
  fold: "Fold",
  fold_page: "Fold it",
  undo: "Undo the last fold",
  recall: "Recall it",
  fade: "Let it fade",
  evict: "Evict it",
  restore: "Restore it",
  pin: "Pin it",
  unpin: "Unpin it",
  keep: "Keep it",
  unkeep: "Keep it no more",
  checkpoint: "Make a checkpoint",
  restore_checkpoint: "Go back to it",
};

/** Return a button that asks for an action with what `of` gives when it is pressed. */
function actionButton(source, action, of, told = "") {
  const pressed = () => confirm_(source, action, of(), told);
  return make("button", { type: "button", text: `${NAMES[action]}…`, "aria-label": told ? `${NAMES[action]}: ${told}` : null, on: { click: pressed } });
}

/** Return buttons for what can be done with a page. */
export function pageActions(source, index, state, held) {
  if (!source.act) return [];
  const buttons = ofPage(state, held).map((action) => actionButton(source, action, () => index, index));
  return [make("div", { class: "buttons", role: "group", "aria-label": `Do with ${index}` }, ...buttons)];
}

/** Show what an action would change, and do it where that is wanted. */
async function confirm_(source, action, of, told) {
  const title = make("h2", { id: "asked", text: told ? `${NAMES[action]}: ${told}` : NAMES[action] });
  const inside = make("div", { class: "inside", tabindex: "0", role: "status" }, make("p", { class: "quiet", text: "What would it change?" }));
  const act = make("button", { type: "button", class: "primary", disabled: true, text: "Do it" });
  const leave = make("button", { type: "button", text: "Leave it as it is", on: { click: () => dialog.close() } });
  const dialog = make("dialog", { "aria-labelledby": "asked" }, title, inside, make("div", { class: "buttons" }, act, leave));
  const refused = (error) => fill(inside, make("p", { class: "notice", text: `This cannot be done: ${error.message}` }));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();

  async function showPreview() {
    try {
      const would = await source.act.preview(action, of);
      fill(inside, ...preview(would));
      act.disabled = !would.changes;
    } catch (error) {
      refused(error);
    }
  }

  async function carryOut() {
    act.disabled = true;
    try {
      await source.act.carryOut(action, of);
      dialog.close();
      source.act.done();
    } catch (error) {
      refused(error);
    }
  }

  act.addEventListener("click", () => whileBusy(dialog, carryOut));
  await whileBusy(inside, showPreview);
}

function preview({ changes, words, before, after, reasons }) {
  const { told, articles } = difference(before, after, () => {});
  const lines = words.length ? words.map((text) => `The journal would say: ${text}.`) : [changes ? "The journal would note it." : "Nothing would be done."];
  return [
    ...lines.map((text) => make("p", { dir: "auto", text })),
    partsTable(["now", "then"], before, after),
    make("p", { class: "quiet", text: told }),
    ...(reasons.length ? [make("h3", { text: "Where the page would be, and why" }), make("ul", {}, ...reasons.map((reason) => make("li", { dir: "auto", text: reason })))] : []),
    make("h3", { text: "In the window" }),
    make("div", { class: "messages" }, ...articles),
  ];
}

/** Return a view of what can be done with the whole session. */
export function changeView(view, source) {
  const size = make("select", { id: "fold-size" }, ...Object.entries(SIZES).map(([value, text]) => make("option", { value, text })));
  const label = make("input", { id: "checkpoint-label", type: "text", autocomplete: "off", placeholder: "such as: before the offer" });
  const list = make("div", { class: "scroll" });
  fill(
    view,
    make("p", { class: "quiet", text: "Each of these is shown first, and changes nothing until you say so. What is done with one page stands beside it, in Pages." }),
    make("h3", { text: "Fold" }),
    make("div", { class: "line bar-line" }, make("label", { for: "fold-size", text: "How far" }), size, actionButton(source, "fold", () => size.value), actionButton(source, "undo", () => "")),
    make("h3", { text: "Checkpoints" }),
    make("div", { class: "line bar-line" }, make("label", { for: "checkpoint-label", text: "Label" }), label, actionButton(source, "checkpoint", () => label.value.trim())),
    list,
  );

  function row(made) {
    const cells = [made.kind, number(made.turn), number(made.seq), moment(made.at)].map((text) => make("td", { text }));
    const button = actionButton(source, "restore_checkpoint", () => made.id, made.label);
    return make("tr", {}, make("th", { scope: "row", dir: "auto", text: made.label }), ...cells, make("td", {}, button));
  }

  async function draw() {
    const found = await source.act.checkpoints();
    const heads = ["label", "kind", "turn", "event", "made", ""].map((text) => make("th", { scope: "col", text }));
    const caption = make("caption", { text: `${counted(found.length, "checkpoint")}, the newest first` });
    fill(list, make("table", { class: "figures-table" }, caption, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...found.reverse().map(row))));
  }

  return { show: () => whileBusy(list, draw) };
}
