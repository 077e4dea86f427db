// The text of a post with its facets, which are ranges of UTF-8 bytes; and a text with what was searched for.

import { h, outside } from "./dom.js";

const [utf8, text] = [new TextEncoder(), new TextDecoder()];

/** The text as nodes: links, mentions and tags where facets say so; facets that do not fit are left out. */
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

/** Marks words in the texts of an element, wherever they stand, in either case. */
export function highlight(element, words) {
  const wanted = words.filter((word) => word).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (wanted.length === 0) return element;
  const found = new RegExp(wanted.join("|"), "giu");
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  for (const node of nodes) {
    const pieces = [];
    let at = 0;
    for (const { 0: match, index } of node.data.matchAll(found)) {
      pieces.push(node.data.slice(at, index), h("mark", null, match));
      at = index + match.length;
    }
    if (at > 0) node.replaceWith(...pieces, node.data.slice(at));
  }
  return element;
}

function linked(feature, shown) {
  switch (feature?.$type) {
    case "app.bsky.richtext.facet#link": return outside(feature.uri, shown);
    case "app.bsky.richtext.facet#mention": return outside(`https://bsky.app/profile/${encodeURIComponent(feature.did)}`, shown);
    case "app.bsky.richtext.facet#tag": return h("a", { href: `#/search/${encodeURIComponent(`"#${feature.tag}"`)}` }, shown);
    default: return shown;
  }
}
