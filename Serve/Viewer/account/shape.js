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
  for (const item of Object.values(value)) eachBlob(item, take, depth + 1);
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
