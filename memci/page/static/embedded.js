// The source of a page that is one file: its data stands in it, packed, and is unpacked when it is needed.

import { start } from "./page.js";

const unpacked = new Map();

function chunk(name) {
  if (!unpacked.has(name)) {
    const bytes = Uint8Array.from(atob(document.getElementById(name).textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    unpacked.set(name, new Response(stream).json());
  }
  return unpacked.get(name);
}

const facts = JSON.parse(document.getElementById("overview").textContent);
const places = new Map(facts.pages.index.map((index, place) => [index, place]));

async function message(number) {
  const first = facts.starts.findLast((start) => start <= number);
  return (await chunk(`messages-${first}`))[number - first];
}

start({
  facts,
  tree: () => chunk("tree"),
  searches: () => chunk("searches"),
  presets: () => chunk("presets"),
  async window(call) {
    const found = (await chunk("windows")).find((each) => each.number === call);
    if (found === undefined) return null;
    const system = found.system === null ? null : await message(found.system);
    return { ...found, system, messages: await Promise.all(found.messages.map(message)) };
  },
  async page(index) {
    const place = places.get(index);
    const found = (await chunk(`pages-${place - (place % facts.pages_a_chunk)}`))[place % facts.pages_a_chunk];
    const entries = found.entries.map(async ([seq, at, tokens, number]) => ({ seq, at, tokens, message: await message(number) }));
    return { ...found, entries: await Promise.all(entries) };
  },
});
