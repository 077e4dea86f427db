// Texts: a post's with its facets, which are ranges of UTF-8 bytes; plain ones with their
// addresses; what was searched for.

import { rangesOf } from "../account/fold.js";
import { h, outside } from "./dom.js";

const [utf8, text] = [new TextEncoder(), new TextDecoder()];

/**
 * The text as nodes: links, mentions and tags where facets say so; facets that do not fit are left
 * out.
 */
export function richText(value, facets) {
  if (typeof value !== "string") return [];
  const bytes = utf8.encode(value);
  const ranges = (Array.isArray(facets) ? facets : []).map((facet) => ({
    start: facet?.index?.byteStart, end: facet?.index?.byteEnd, feature: Array.isArray(facet?.features) ? facet.features[0] : null,
  })).filter(({ start, end }) => Number.isInteger(start) && Number.isInteger(end) && start >= 0 && start < end && end <= bytes.length)
    .sort((left, right) => left.start - right.start);
  const nodes = [];
  let at = 0;
  for (const { start, end, feature } of ranges) {
    if (start < at) continue;
    const shown = text.decode(bytes.subarray(start, end));
    nodes.push(text.decode(bytes.subarray(at, start)), linked(feature, shown));
    at = end;
  }
  nodes.push(text.decode(bytes.subarray(at)));
  return nodes;
}

/** A text without facets as nodes: its web addresses, handles and tags become links. */
export function plainText(value) {
  if (typeof value !== "string") return [];
  const nodes = [];
  let at = 0;
  for (const { 0: shown, index } of value.matchAll(/https?:\/\/[^\s<>"]*[^\s<>".,;:!?)\]'»”]|(?<![\w@.])@[a-z0-9-]+(?:\.[a-z0-9-]+)+|(?<![\w&])#[\p{L}\p{N}_]+/giu)) {
    nodes.push(value.slice(at, index), shown[0] === "@" ? outside(`https://bsky.app/profile/${shown.slice(1)}`, shown) : shown[0] === "#" ? tag(shown.slice(1), shown) : outside(shown, shown));
    at = index + shown.length;
  }
  nodes.push(value.slice(at));
  return nodes;
}

/** Marks folded words in the texts of an element; answers how many places were marked. */
export function highlight(element, words) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  /** @type {Text[]} */
  const nodes = [];
  while (walker.nextNode()) nodes.push(/** @type {Text} */ (walker.currentNode));
  let count = 0;
  for (const node of nodes) {
    const data = node.data.normalize("NFC");
    const ranges = rangesOf(data, words);
    if (ranges.length === 0) continue;
    count += ranges.length;
    let at = 0;
    const pieces = ranges.flatMap(([from, to]) => {
      const before = data.slice(at, from);
      at = to;
      return [before, h("mark", null, data.slice(from, to))];
    });
    node.replaceWith(...pieces, data.slice(at));
  }
  return count;
}

const tag = (name, shown) => h("a", { href: `#/search/${encodeURIComponent(`"#${name}"`)}` }, shown);

function linked(feature, shown) {
  switch (feature?.$type) {
    case "app.bsky.richtext.facet#link": return outside(feature.uri, shown);
    case "app.bsky.richtext.facet#mention": return outside(`https://bsky.app/profile/${encodeURIComponent(feature.did)}`, shown);
    case "app.bsky.richtext.facet#tag": return tag(feature.tag, shown);
    default: return shown;
  }
}
