// The band: a bar for each call, by part, and below it what happened between calls.

import { colour, PARTS } from "./parts.js";
import { number } from "./text.js";

const GUTTER = 92; // pixels on the left, for what the lines are called
const TALL = 190; // of the bars
const LANE = 15;
const LANES = ["folds", "trims", "recalls", "misses", "other"];
const LANE_OF = { folded: 0, fold_undone: 0, trimmed: 1, recalled: 2, quoted: 2, faded: 2 };

/** Return in which line a mark stands. */
function lane(kind) {
  return LANE_OF[kind] ?? 4;
}

/** Return the number of the first call that an event comes before, or is of. */
export function callAt(calls, seq) {
  let low = 0;
  let high = calls.seq.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (calls.seq[middle] < seq) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Return a band over all calls on a canvas; `picked(call)` hears where somebody pointed. */
export function makeBand(canvas, facts, picked) {
  const { calls, marks, misses } = facts;
  const total = calls.seq.length;
  const names = Object.keys(PARTS).filter((name) => calls.parts[name]);
  const happened = marks.map(([seq, kind]) => [callAt(calls, seq), lane(kind)]).concat(misses.map(([call]) => [call, 3]));
  const used = LANES.map((_, place) => happened.some(([, where]) => where === place));
  const lanes = LANES.map((_, place) => used.slice(0, place).filter(Boolean).length);
  const highest = Math.max(1, ...maxima(calls.tokens), ...maxima(calls.budget));
  let still = null;

  function size() {
    return { wide: canvas.clientWidth || 900, high: TALL + 14 + used.filter(Boolean).length * LANE };
  }

  function column(call) {
    return GUTTER + ((call + 0.5) / total) * (size().wide - GUTTER - 8);
  }

  function backdrop() {
    const { wide, high } = size();
    const scale = window.devicePixelRatio || 1;
    const board = new OffscreenCanvas(Math.round(wide * scale), Math.round(high * scale));
    const pen = board.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "11px ui-sans-serif, system-ui, sans-serif";
    const plot = wide - GUTTER - 8;
    const columns = Math.min(total, Math.floor(plot));
    const broad = plot / columns;
    const ink = colour("ink", "quiet");
    const heights = (tokens) => (tokens / highest) * (TALL - 12);
    for (let place = 0; place < columns; place += 1) {
      const first = Math.floor((place * total) / columns);
      const last = Math.max(first + 1, Math.floor(((place + 1) * total) / columns));
      const left = GUTTER + place * broad;
      let foot = TALL;
      for (const name of names) {
        const tall = heights(mean(calls.parts[name], first, last));
        if (tall > 0) {
          pen.fillStyle = colours[name];
          pen.fillRect(left, foot - tall, broad > 3 ? broad - 1 : broad + 0.3, tall);
          foot -= tall;
        }
      }
      const kept = heights(mean(calls.cached, first, last));
      pen.fillStyle = colours.cached;
      pen.fillRect(left, TALL - kept, broad > 3 ? broad - 1 : broad + 0.3, 1.5);
    }
    pen.strokeStyle = ink;
    pen.setLineDash([4, 4]);
    pen.beginPath();
    for (let place = 0; place < columns; place += 1) {
      const level = TALL - heights(calls.budget[Math.floor((place * total) / columns)]);
      pen.lineTo(GUTTER + place * broad, level);
      pen.lineTo(GUTTER + (place + 1) * broad, level);
    }
    pen.stroke();
    pen.setLineDash([]);
    pen.fillStyle = ink;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const budget = calls.budget[total - 1];
    pen.fillText(number(budget), GUTTER - 8, TALL - heights(budget));
    pen.fillText("0", GUTTER - 8, TALL - 5);
    LANES.forEach((name, place) => {
      if (used[place]) pen.fillText(name === "misses" ? "cache misses" : name, GUTTER - 8, TALL + 16 + lanes[place] * LANE);
    });
    for (const [where, times] of crowds(columns)) {
      pen.fillStyle = colours[LANES[where]];
      for (const [place, count] of times) {
        pen.globalAlpha = total > columns ? Math.min(1, 0.25 + count / 3) : 1;
        pen.fillRect(GUTTER + (place + 0.5) * broad - 1, TALL + 10 + lanes[where] * LANE, 2, LANE - 4);
      }
      pen.globalAlpha = 1;
    }
    return board;
  }

  /** Return for each line how often something happened, by column. */
  function crowds(columns) {
    const found = new Map();
    for (const [call, where] of happened) {
      const times = found.get(where) ?? found.set(where, new Map()).get(where);
      const place = Math.min(columns - 1, Math.floor((call * columns) / total));
      times.set(place, (times.get(place) ?? 0) + 1);
    }
    return found;
  }

  let colours = {};
  function prepare() {
    colours = Object.fromEntries(names.map((name) => [name, colour("part", name)]));
    for (const name of LANES) colours[name] = colour("mark", name);
    colours.cached = colour("mark", "cached");
    still = null;
  }

  function draw(call, other = -1) {
    const { wide, high } = size();
    const scale = window.devicePixelRatio || 1;
    if (still === null || still.width !== Math.round(wide * scale) || still.height !== Math.round(high * scale)) {
      canvas.style.height = `${high}px`;
      still = backdrop();
    }
    canvas.width = still.width;
    canvas.height = still.height;
    const pen = canvas.getContext("2d");
    pen.drawImage(still, 0, 0);
    pen.scale(scale, scale);
    for (const [place, dashes] of [[other, [2, 3]], [call, []]]) {
      if (place >= 0) {
        pen.strokeStyle = colour("ink", "strong");
        pen.lineWidth = 1.5;
        pen.setLineDash(dashes);
        pen.beginPath();
        pen.moveTo(column(place), 2);
        pen.lineTo(column(place), high);
        pen.stroke();
      }
    }
  }

  function point(event) {
    const place = (event.clientX - canvas.getBoundingClientRect().left - GUTTER) / (size().wide - GUTTER - 8);
    picked(Math.min(total - 1, Math.max(0, Math.floor(place * total))));
  }

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    point(event);
  });
  canvas.addEventListener("pointermove", (event) => event.buttons && point(event));
  prepare();
  return { draw, restyle: prepare };
}

function maxima(values) {
  return [values.reduce((most, value) => Math.max(most, value), 0)];
}

function mean(values, first, last) {
  let sum = 0;
  for (let place = first; place < last; place += 1) sum += values[place];
  return sum / (last - first);
}
