// Search as one types, with filters that are words of the query, too.

import { parseQuery, rangesOf } from "../account/fold.js";
import { textOf } from "../account/shape.js";
import { counted, fill, h } from "./dom.js";
import { row } from "./lists.js";
import { titleOf } from "./names.js";
import { postCard } from "./post.js";
import { highlight } from "./text.js";
import { virtualList } from "./virtual.js";

/** The field, the filters, and what was found. */
export async function search(view, query) {
  const results = h("div");
  const status = h("p", { class: "soft small", role: "status" });
  let list = null;
  let turn = 0;
  const input = h("input", { type: "search", value: query, placeholder: "Words, or \"a phrase\"", "aria-label": "Search", autocomplete: "off", spellcheck: "false" });
  const run = async () => {
    const text = input.value.trim();
    const mine = ++turn;
    history.replaceState(null, "", `#/search/${encodeURIComponent(text)}`);
    if (!text) {
      list?.end();
      list = null;
      fill(results);
      fill(status, "Searches all texts: posts, descriptions of pictures, names, titles. In any language, whatever the case.");
      return;
    }
    const count = await view.ask("search", { query: text });
    if (mine !== turn) return;
    list?.end();
    const { words } = parseQuery(text);
    list = count ? virtualList(count, (start, amount) => view.ask("page", { kind: "search", start, count: amount }), (found) => hit(view, found, words), { label: "Results" }) : null;
    fill(results, list);
    fill(status, counted(count, "record"));
  };
  input.addEventListener("input", run);
  const languages = await view.ask("languages");
  const filters = h("div", { class: "filters" }, [
    choice("Kind", "in", view.summary.collections.map(({ name }) => [name, titleOf(name)])),
    choice("With", "has", [["image", "picture"], ["video", "video"], ["link", "link"], ["quote", "quote"], ["reply", "a reply"]]),
    choice("Language", "lang", languages.map((lang) => [lang, lang])),
    day("From", "since"), day("To", "until"),
  ].map((make) => make(input, run)));
  // Once it is on the page.
  requestAnimationFrame(() => {
    input.focus();
    run();
  });
  return [h("h1", null, "Search"), h("div", { class: "search" }, input), filters, status, results];
}

/** Puts a filter into the query in the place of an earlier one of its name. */
function put(input, name, value) {
  const rest = input.value.replace(new RegExp(`(^|\\s)${name}:\\S+`, "gi"), "").trim();
  input.value = value ? `${rest} ${name}:${value}`.trim() : rest;
}

const current = (input, name) => new RegExp(`(?:^|\\s)${name}:(\\S+)`, "i").exec(input.value)?.[1] ?? "";

const choice = (title, name, options) => (input, run) => h("label", { class: "small" }, `${title} `,
  h("select", { onchange: ({ target }) => { put(input, name, target.value); run(); } },
    h("option", { value: "" }, "any"), options.map(([value, text]) => h("option", { value, selected: current(input, name) === value }, text))));

const day = (title, name) => (input, run) => h("label", { class: "small" }, `${title} `,
  h("input", { type: "date", value: current(input, name).slice(0, 10), onchange: ({ target }) => { put(input, name, target.value); run(); } }));

/** How much of a text is shown on each side of what was found, in characters. */
const AROUND = 60;

/** The passage of a record's texts in which the first of the words stands. */
function passage(value, words) {
  const text = textOf(value).normalize("NFC");
  const [from, to] = rangesOf(text, words)[0] ?? [0, 0];
  const [start, end] = [Math.max(0, from - AROUND), Math.min(text.length, to + AROUND)];
  const shown = h("p", { class: "passage small", dir: "auto" }, start > 0 ? "…" : "", text.slice(start, end), end < text.length ? "…" : "");
  highlight(shown, words);
  return shown;
}

/**
 * A record with the words marked that were found, and why it was found where that cannot be seen.
 */
function hit(view, found, words) {
  if (found.collection !== "app.bsky.feed.post") {
    const shown = h("div", { class: "post" }, h("div", { class: "soft small" }, titleOf(found.collection)), row(view, found));
    if (words.length && !highlight(shown.querySelector(".what"), words)) shown.append(passage(found.value, words));
    return shown;
  }
  const card = postCard(view, found);
  const count = (selector) => [...card.querySelectorAll(selector)].reduce((sum, element) => sum + highlight(element, words), 0);
  const inText = count(".text");
  const inAlt = count(".alt");
  const inLink = count(".about-link");
  if (words.length && !inText && (inAlt || inLink)) {
    card.append(h("p", { class: "note small" }, inAlt ? "found in the description of a picture" : "found in the link"));
  }
  return card;
}
