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

function linked(feature, shown) {
  switch (feature?.$type) {
    case "app.bsky.richtext.facet#link": return outside(feature.uri, shown);
    case "app.bsky.richtext.facet#mention": return outside(`https://bsky.app/profile/${encodeURIComponent(feature.did)}`, shown);
    case "app.bsky.richtext.facet#tag": return h("a", { href: `#/search/${encodeURIComponent(`"#${feature.tag}"`)}` }, shown);
    default: return shown;
  }
}
