// The source of a page that a server gives: it asks for what a view needs, beside the page itself.

import { start } from "./page.js";

async function ask(path, query = {}) {
  const answer = await fetch(`${path}?${new URLSearchParams(query)}`, { headers: { accept: "application/json" } });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

const facts = await ask("overview");

start({
  facts,
  tree: () => ask("tree"),
  presets: () => ask("presets"),
  search: (query) => ask("search", { query }),
  window: (call) => ask("window", call ? { seq: facts.calls.seq[call], before: facts.calls.seq[call - 1] } : { seq: facts.calls.seq[call] }),
  async page(index) {
    const found = await ask("page", { index });
    return { ...found, entries: found.entries.map(([seq, at, tokens, message]) => ({ seq, at, tokens, message })) };
  },
});
