// What the page writes: all of it as text, so that nothing that anybody said is markup.

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/gu;
const NUMBER = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** Return text in which characters that control the line, its direction or nothing at all are written out. */
export function visible(text) {
  return String(text).replace(HIDDEN, (letter) => {
    const code = letter.charCodeAt(0);
    return code <= 0xff ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** Return an element; of its properties, `text` is what it says, `on` what it does, and the others are attributes. */
export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "text") element.textContent = visible(value);
    else if (key === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Put elements in the place of what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null));
}

const waits = new WeakMap(); // by element: the number of tasks that have yet to draw in it

/**
 * Run an asynchronous task that draws in an element, and return its result. The element has `aria-busy` from the call until the
 * task ends, well or with an error; where tasks overlap, until the last one ends.
 */
export async function whileBusy(element, task) {
  waits.set(element, (waits.get(element) ?? 0) + 1);
  element.setAttribute("aria-busy", "true");
  try {
    return await task();
  } finally {
    const remaining = waits.get(element) - 1;
    waits.set(element, remaining);
    if (!remaining) element.removeAttribute("aria-busy");
  }
}

export function number(value) {
  return value === null || value === undefined ? "" : NUMBER.format(value);
}

export function share(value) {
  return value === null || value === undefined ? "" : `${(100 * value).toFixed(1)} %`;
}

export function counted(value, one, several = `${one}s`) {
  return `${number(value)} ${value === 1 ? one : several}`;
}

/** Return a time as people read it, to the minute, in UTC as it is stored. */
export function moment(at) {
  return at ? at.slice(0, 16).replace("T", " ") : "";
}
