// The parts of a record, in the worker and on the page: a link has its text as `$link` in both.

/** A blob that something refers to, in either form; null if it is none. */
export function blobOf(ref) {
  if (ref?.$type === "blob" && typeof ref.ref?.$link === "string") return { cid: ref.ref.$link, type: String(ref.mimeType ?? ""), size: Number(ref.size) || 0 };
  if (typeof ref?.cid === "string" && typeof ref.mimeType === "string" && Object.keys(ref).length === 2) return { cid: ref.cid, type: ref.mimeType, size: 0 };
  return null;
}

/** Calls `take` with each blob that a value refers to, wherever the reference stands. */
export function eachBlob(value, take, depth = 0) {
  if (value === null || typeof value !== "object" || value instanceof Uint8Array || depth > 300) return;
  const blob = blobOf(value);
  if (blob) take(blob);
  // Maps have no prototype, so that what stands in them is their own.
  for (const key in value) if (typeof value[key] === "object") eachBlob(value[key], take, depth + 1);
}

/** The images, the video, the quote and the link of a post. */
export function embedsOf(value) {
  const found = { images: [], video: null, quote: null, link: null };
  const take = (embed) => {
    switch (embed?.$type) {
      case "app.bsky.embed.images": if (Array.isArray(embed.images)) found.images = embed.images; break;
      case "app.bsky.embed.video": found.video = embed; break;
      case "app.bsky.embed.record": found.quote = embed.record; break;
      case "app.bsky.embed.external": found.link = embed.external; break;
      case "app.bsky.embed.recordWithMedia":
        take(embed.media);
        found.quote = embed.record?.record ?? null;
        break;
    }
  };
  take(value?.embed);
  return found;
}

const [utf8, text] = [new TextEncoder(), new TextDecoder()];

/** The accounts that a post mentions, each with the handle that it is called by: [DID, handle]. */
export function mentionsOf(value) {
  if (!Array.isArray(value?.facets) || typeof value.text !== "string") return [];
  const found = [];
  let bytes = null;
  for (const facet of value.facets) {
    const feature = Array.isArray(facet?.features) ? facet.features.find((one) => one?.$type === "app.bsky.richtext.facet#mention") : null;
    if (typeof feature?.did !== "string") continue;
    bytes ??= utf8.encode(value.text);
    const name = text.decode(bytes.subarray(facet.index?.byteStart, facet.index?.byteEnd));
    if (/^@[a-z0-9-]+(\.[a-z0-9-]+)+$/i.test(name)) found.push([feature.did, name.slice(1)]);
  }
  return found;
}

/** The blocks of a pub.leaflet document, in their order: {kind, text, level, image, alt, uri}. */
export function blocksOf(value) {
  const found = [];
  const take = (block, kind) => {
    const type = String(block?.$type ?? "").split(".").at(-1);
    const item = { kind: kind ?? type, text: typeof block?.plaintext === "string" ? block.plaintext : "", level: block?.level, image: blobOf(block?.image), alt: String(block?.alt ?? ""), uri: block?.src ?? block?.url };
    if (type === "website") item.text = String(block.title ?? block.src ?? "");
    if (item.text || item.image || typeof item.uri === "string") found.push(item);
  };
  const items = (list, depth) => {
    for (const one of Array.isArray(list) ? list : []) {
      take(one?.content, "item");
      if (depth < 20) items(one?.children, depth + 1);
    }
  };
  for (const page of Array.isArray(value?.pages) ? value.pages : []) {
    for (const one of Array.isArray(page?.blocks) ? page.blocks : []) {
      if (Array.isArray(one?.block?.children)) items(one.block.children, 0);
      else take(one?.block);
    }
  }
  return found;
}

/** The fields that are texts which a person wrote. */
export const TEXTS = ["text", "displayName", "description", "name", "title", "content", "textContent"];

/** All texts that a person wrote in a record, in one. */
export function textOf(value) {
  const parts = [];
  const take = (text) => { if (typeof text === "string" && text) parts.push(text); };
  for (const name of TEXTS) take(value?.[name]);
  if (Array.isArray(value?.pages)) for (const { text } of blocksOf(value)) take(text);
  if (value?.embed) {
    const { images, video, link } = embedsOf(value);
    for (const image of images) take(image?.alt);
    take(video?.alt);
    take(link?.title);
    take(link?.description);
  }
  if (Array.isArray(value?.tags)) value.tags.forEach(take);
  return parts.join("\n");
}
