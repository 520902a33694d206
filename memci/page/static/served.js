// The source of a page that a server gives: it asks for what a view needs, and hears what happens meanwhile.

import { ask, request } from "./asking.js";
import { start } from "./page.js";
import { visible } from "./text.js";

const PAUSE_MS = 2000;
const QUICK_MS = 3000; // after a renewal that took longer, the next one is left to a button

const session = location.pathname.replace(/sessions\/([^/]+)\/$/, "v1/sessions/$1");
const view = (name, query) => ask(`${session}/page/${name}`, query);

const post = (path, body = {}) => ask(`${session}/${path}`, {}, body);
const CARRIED_OUT = {
  fold: (of) => post("fold", of === "all" ? { pages: "all" } : { to: of || null }),
  fold_page: (of) => post("fold", { pages: [of] }),
  undo: () => post("undo"),
  recall: (of) => post("recall", { index: of }),
  checkpoint: (of) => post("checkpoints", { label: of }),
  restore_checkpoint: (of) => post(`checkpoints/${encodeURIComponent(of)}/restore`),
};

const began = performance.now();
const facts = await view("overview").catch((error) => {
  document.getElementById("title").textContent = "There is nothing to show";
  document.getElementById("about").textContent = visible(error.message);
  document.querySelector("main").removeAttribute("aria-busy");
  return new Promise(() => {}); // and no more
});
// The server keeps what it read: how long it took the first time does not tell how long a renewal takes.
const isRenewal = performance.getEntriesByType("navigation")[0].type === "reload";
const isQuick = !isRenewal || performance.now() - began < QUICK_MS;

const page = start({
  facts,
  tree: () => view("tree"),
  presets: () => view("presets"),
  search: (query) => view("search", { query }),
  window: (call) => view("window", call ? { seq: facts.calls.seq[call], before: facts.calls.seq[call - 1] } : { seq: facts.calls.seq[call] }),
  async page(index) {
    const found = await view("page", { index });
    return { ...found, entries: found.entries.map(([seq, at, tokens, message]) => ({ seq, at, tokens, message })) };
  },
  act: {
    preview: (action, of) => view("preview", { action, of }),
    carryOut: (action, of) => (action in CARRIED_OUT ? CARRIED_OUT[action](of) : post(`pages/${encodeURIComponent(of)}/${action}`)),
    checkpoints: () => ask(`${session}/checkpoints`),
    done: () => page.again(),
  },
});

/** Say that something happened, or show it, where that is quick and nobody looks at what was. */
function happened() {
  if (isQuick && page.isNow()) page.renew();
  else page.offer();
}

/** Hear what happens, until the session is not there any more; where the server does not answer, ask again. */
async function follow() {
  const notices = await request(`${session}/notices`, {}, "text/event-stream");
  if (!notices.ok) return page.say((await notices.json()).detail);
  page.say("");
  if ((await ask(`${session}/events`, { after: facts.seq, limit: 1 })).length) happened(); // before anything could be heard
  const reader = notices.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    if ([...part.value.matchAll(/"seq":(\d+)/g)].some(([, seq]) => Number(seq) > facts.seq)) happened();
  }
  throw new Error("the stream ended");
}

for (;;) {
  try {
    await follow();
    break;
  } catch {
    page.say(`The server does not answer: this is as of event ${facts.seq}. It is asked again.`);
    await new Promise((done) => setTimeout(done, PAUSE_MS));
  }
}
