// The source of a page that is one file: its data stands in it, packed, and is unpacked when it is needed.

import { start } from "./page.js";

const unpacked = new Map();
const parsed = new Promise((done) => document.addEventListener("DOMContentLoaded", done)); // the data stands after this script

function chunk(name) {
  if (!unpacked.has(name)) unpacked.set(name, parsed.then(() => unpack(document.getElementById(name).textContent)));
  return unpacked.get(name);
}

function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
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
