// What differs between two windows: what left, what came, what changed within a message, and tokens by part.

import { article, body } from "./messages.js";
import { PARTS, swatch } from "./parts.js";
import { counted, make, number } from "./text.js";

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

/** Return what left and what came from one window to another: `told` in a sentence, and `articles`. */
export function difference(before, after, opened) {
  const [all, now] = [whole(before), whole(after)];
  const found = steps(all.map((each) => each.key), now.map((each) => each.key));
  const counts = { "=": 0, "−": 0, "+": 0 };
  for (const [sign] of found) counts[sign] += 1;
  const told = `${counted(counts["−"], "message")} left, ${counted(counts["+"], "message")} came, ${number(counts["="])} are the same`;
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
    shownNow.push(former ? changed(former, each, opened) : marked(sign, each, opened));
  }
  flush();
  return { told, articles: counts["−"] + counts["+"] ? shownNow : [make("p", { class: "same", text: "Both windows are the same." })] };
}

function marked(sign, each, opened) {
  const made = article(each.message, { ...each, sign, opened });
  made.classList.add(sign === "+" ? "came" : "left");
  return made;
}

function changed(former, each, opened) {
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

/** Return the tokens of two windows by part, and what changed. */
export function partsTable(heads, before, after) {
  const rows = Object.keys(PARTS)
    .filter((name) => before.breakdown[name] || after.breakdown[name])
    .map((name) => row(swatch("part", name), PARTS[name], before.breakdown[name] ?? 0, after.breakdown[name] ?? 0));
  rows.push(row(null, "window", before.tokens, after.tokens, "sum"));
  const head = make("tr", {}, ...["part", ...heads, "change"].map((text) => make("th", { scope: "col", text })));
  return make("table", { class: "parts" }, make("caption", { text: "Tokens by part" }), make("thead", {}, head), make("tbody", {}, ...rows));
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
  return ["contents", "facts", "work", "slots"].includes(each.part) ? left.find((other) => other.part === each.part) : undefined;
}
