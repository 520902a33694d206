// What a search finds, why each hit is one, and why a page is none.

import { swatch } from "./parts.js";
import { counted, fill, make, moment, number, whileBusy } from "./text.js";

/** Return why a search gives a page, or does not, in a sentence. */
function whyNot(found, pages, index) {
  const place = pages.index.indexOf(index);
  if (place < 0) return `There is no page ${index}.`;
  const hit = found.hits.findIndex((each) => each.index === index);
  if (hit >= 0) return `${index} is found: it is hit ${number(hit + 1)}.`;
  const rank = found.ranked.indexOf(index);
  const state = pages.state[place];
  if (rank < 0 && found.ranked.length >= found.most_ranked) return `${index} is not among the first ${number(found.most_ranked)} that match, if it matches at all.`;
  if (rank < 0) return `${index} holds none of the words of the query in any form, and no page beside it does.`;
  if (state === "open" || state === "active") return `${index} stands in the window, and a search leaves out what the model sees already. Among all pages it has rank ${number(rank + 1)}.`;
  return `${index} matches, with rank ${number(rank + 1)} among all pages: a search gives the first ${number(found.most)} that are not in the window.`;
}

/** Return a view of searches; those that are known are offered, and any text where the source can search. */
export function searchView(view, source, { opened }) {
  const { pages } = source.facts;
  const queries = make("select", { id: "query" });
  const results = make("div", { class: "results" });
  const news = make("p", { class: "sr", role: "status" });
  const page = make("input", { id: "why-page", placeholder: "usr-12", autocomplete: "off" });
  const answer = make("p", { role: "status", class: "answer", dir: "auto" });
  const form = make("form", { class: "line bar-line" }, make("label", { for: "why-page", text: "Why is a page not found?" }), page, make("button", { text: "Say why" }), answer);
  let [found, ready, latest] = [null, false, ""];

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const wanted = page.value.trim();
    answer.textContent = found && wanted ? whyNot(found, pages, /^\d+$/.test(wanted) ? `usr-${wanted}` : wanted) : "";
  });

  function list() {
    answer.textContent = "";
    news.textContent = counted(found.hits.length, "hit");
    if (!found.hits.length) {
      fill(results, make("p", { class: "notice", text: "Nothing outside the window has any of these words." }));
      return;
    }
    const best = found.hits[0].score || 1;
    const items = found.hits.map((hit) => {
      const bar = make("span", { class: `bar state-${hit.state}` });
      bar.style.width = `${Math.max(2, (100 * hit.score) / best)}%`;
      return make(
        "li",
        { class: "hit" },
        make("header", {}, swatch("state", hit.state), make("button", { type: "button", class: "page-link", text: hit.entry, on: { click: () => opened(hit.index) } }), make("span", { class: "quiet", text: `${hit.state} · ${moment(hit.at)}` }), make("span", { class: "size", title: `score ${hit.score}` }, bar), make("span", { class: "tokens", text: hit.score.toFixed(2) })),
        make("p", { class: "said", dir: "auto", text: hit.snippet }),
        make("p", { class: "why", dir: "auto", text: hit.why ? `because of: ${hit.why}` : "" }),
      );
    });
    fill(results, make("ol", { class: "hits" }, ...items));
  }

  async function search(words) {
    latest = words;
    const answered = await source.search(words);
    if (latest !== words) return; // another search began while this one waited
    found = answered;
    list();
  }

  async function draw() {
    if (source.search) {
      const words = make("input", { type: "search", id: "query", placeholder: "any words", autocomplete: "off" });
      const asked = make("form", { class: "line bar-line" }, make("label", { for: "query", text: "Search" }), words, make("button", { text: "Search" }));
      asked.addEventListener("submit", (event) => {
        event.preventDefault();
        whileBusy(results, () => search(words.value));
      });
      fill(view, asked, form, results, news);
      return;
    }
    const known = await source.searches();
    queries.append(...known.map((each, place) => make("option", { value: place, text: each.query })));
    queries.addEventListener("change", () => {
      found = known[queries.value];
      list();
    });
    const told = "These searches were made when the file was written: what was asked for, what the model searched for, what the user said last. `memci search` makes any other.";
    fill(view, make("div", { class: "line bar-line" }, make("label", { for: "query", text: "Search" }), queries), make("p", { class: "quiet told", text: told }), form, results, news);
    [found] = known;
    if (found) list();
    else fill(results, make("p", { class: "notice", text: "This file holds no search." }));
  }

  return {
    async show() {
      if (ready) return;
      ready = true;
      await whileBusy(view, draw);
    },
  };
}
