// Two windows beside each other: what left, what came, what changed within a message.

import { article, body } from "./messages.js";
import { PARTS, swatch } from "./parts.js";
import { counted, fill, make, number } from "./text.js";

/** Return the steps from one list to another as [sign, place before, place after]; signs are "=", "−" and "+". */
function steps(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < Math.min(before.length, after.length) - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  const found = Array.from({ length: start }, (_, place) => ["=", place, place]);
  const [rows, columns] = [before.length - start - end, after.length - start - end];
  if (rows * columns > 4_000_000) {
    for (let row = 0; row < rows; row += 1) found.push(["−", start + row, -1]);
    for (let column = 0; column < columns; column += 1) found.push(["+", -1, start + column]);
  } else {
    found.push(...middle(before.slice(start, start + rows), after.slice(start, start + columns), start));
  }
  for (let place = end; place > 0; place -= 1) found.push(["=", before.length - place, after.length - place]);
  return found;
}

function middle(before, after, start) {
  const lengths = Array.from({ length: before.length + 1 }, () => new Uint32Array(after.length + 1));
  for (let row = before.length - 1; row >= 0; row -= 1) {
    for (let column = after.length - 1; column >= 0; column -= 1) {
      lengths[row][column] =
        before[row] === after[column] ? lengths[row + 1][column + 1] + 1 : Math.max(lengths[row + 1][column], lengths[row][column + 1]);
    }
  }
  const found = [];
  let [row, column] = [0, 0];
  while (row < before.length || column < after.length) {
    if (row < before.length && column < after.length && before[row] === after[column]) {
      found.push(["=", start + row, start + column]);
      row += 1;
      column += 1;
    } else if (column >= after.length || (row < before.length && lengths[row + 1][column] >= lengths[row][column + 1])) {
      found.push(["−", start + row, -1]);
      row += 1;
    } else {
      found.push(["+", -1, start + column]);
      column += 1;
    }
  }
  return found;
}

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

  async function show(call) {
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
    fill(list, ...difference(before, after));
  }

  function difference(before, after) {
    const [all, now] = [whole(before), whole(after)];
    const found = steps(all.map((each) => each.key), now.map((each) => each.key));
    const counts = { "=": 0, "−": 0, "+": 0 };
    for (const [sign] of found) counts[sign] += 1;
    about.textContent = `${counted(counts["−"], "message")} left, ${counted(counts["+"], "message")} came, ${number(counts["="])} are the same`;
    const shownNow = [];
    let same = 0;
    const flush = () => {
      if (same) shownNow.push(make("p", { class: "same", text: `${counted(same, "message")} the same` }));
      same = 0;
    };
    const left = found.filter(([sign]) => sign === "−").map(([, place]) => all[place]);
    for (const [sign, row, column] of found) {
      if (sign === "=") {
        same += 1;
        continue;
      }
      flush();
      const each = sign === "−" ? all[row] : now[column];
      const former = sign === "+" && twin(each, left);
      if (sign === "−" && now.some((other) => other.part === each.part && twin(other, [each]))) continue;
      shownNow.push(former ? changed(former, each) : marked(sign, each));
    }
    flush();
    return shownNow.length ? shownNow : [make("p", { class: "same", text: "Both windows are the same." })];
  }

  function marked(sign, each) {
    const made = article(each.message, { ...each, sign, opened });
    made.classList.add(sign === "+" ? "came" : "left");
    return made;
  }

  function changed(former, each) {
    const made = article({ ...each.message, text: "", rest: "" }, { ...each, sign: "±", opened });
    const [before, after] = [former.message.text.split("\n"), each.message.text.split("\n")];
    const lines = steps(before, after).map(([sign, row, column]) => {
      const text = sign === "−" ? before[row] : after[column];
      const kind = { "=": "kept-line", "−": "left-line", "+": "came-line" }[sign];
      return make("div", { class: kind, dir: "auto", text: `${sign === "=" ? " " : sign} ${text}` });
    });
    made.append(make("div", { class: "lines" }, ...lines), ...body({ text: "", rest: each.message.rest }));
    return made;
  }

  function parts(from, call) {
    const rows = Object.keys(PARTS)
      .filter((name) => calls.parts[name]?.[call] || calls.parts[name]?.[from])
      .map((name) => row(swatch("part", name), PARTS[name], calls.parts[name][from], calls.parts[name][call]));
    rows.push(row(null, "window", calls.tokens[from], calls.tokens[call], "sum"));
    const head = make("tr", {}, ...["part", `call ${number(from + 1)}`, `call ${number(call + 1)}`, "change"].map((text) => make("th", { scope: "col", text })));
    return make("table", { class: "parts" }, make("caption", { text: "Tokens by part" }), make("thead", {}, head), make("tbody", {}, ...rows));
  }

  return { show, other };
}

function row(square, name, before, after, kind = "") {
  const change = after - before;
  const cells = [number(before), number(after), change > 0 ? `+${number(change)}` : number(change)].map((text) => make("td", { text }));
  return make("tr", { class: kind }, make("th", { scope: "row" }, square, make("span", { text: name })), ...cells);
}

function whole(shown) {
  const found = shown.messages.map((message, place) => ({ message, key: key(message), part: shown.parts[place], page: shown.pages[place] }));
  return shown.system === null ? found : [{ message: shown.system, key: key(shown.system), part: "system", page: "" }, ...found];
}

function key(message) {
  return `${message.role}\n${message.text}\n${message.rest}`;
}

/** Return what stood in the place of a block of which a window has one at most, and which changed. */
function twin(each, left) {
  return ["contents", "working", "slots"].includes(each.part) ? left.find((other) => other.part === each.part) : undefined;
}
