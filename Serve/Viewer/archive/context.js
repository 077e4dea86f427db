// What app views showed of others (Docs/FORMAT.md, section 6.7): names of people, and posts.

import { decode } from "./cbor.js";
import { CID, Malformed } from "./cid.js";

const [MAXIMUM_LIST, MAXIMUM_PAGE, MAXIMUM_PIECE, MAXIMUM_PAGES] = [4 << 20, 1 << 20, (1 << 20) + 64, 64 << 20];

/**
 * What is known of others: people by their DIDs, {handle, name, avatar}; posts by their addresses,
 * {value, cid, seenAt, seenFrom}; the CIDs of the pieces that avatars are in. What of it is damaged
 * is left out.
 */
export async function readContext(archive, manifest) {
  const found = { people: new Map(), posts: new Map(), pieces: new Set() };
  if (!(manifest.context instanceof CID)) return found;
  const bytes = await archive.body(manifest.context.bytes, MAXIMUM_LIST);
  const list = bytes && decode(bytes);
  if (list?.did !== manifest.did || !Array.isArray(list.carpackContext?.pages)) throw new Malformed("the list of what others said is damaged or lost");
  let left = MAXIMUM_PAGES;
  // The last page counts, so that what is found first stays.
  for (const { page } of list.carpackContext.pages.toReversed()) {
    const body = page instanceof CID ? await archive.body(page.bytes, MAXIMUM_PAGE).catch(() => null) : null;
    if (body && (left -= body.length) < 0) break;
    const items = body && decode(body).carpackContext;
    for (const item of Array.isArray(items) ? items : []) take(item, found);
  }
  return found;
}

function take(item, { people, posts, pieces }) {
  const text = (value) => typeof value === "string" && value ? value : null;
  if (text(item?.person) && !people.has(item.person)) {
    const avatar = item.avatar?.piece instanceof CID ? item.avatar.piece.text : null;
    if (avatar) pieces.add(avatar);
    people.set(item.person, { handle: text(item.handle), name: text(item.displayName), avatar });
  } else if (text(item?.post) && !posts.has(item.post)) {
    posts.set(item.post, { value: valueOf(item.record), cid: text(item.cid), seenAt: text(item.seenAt), seenFrom: text(item.seenFrom) });
  }
}

function valueOf(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

/** The picture that a piece has; null if it is damaged or lost. */
export async function readPiece(archive, cid) {
  const body = await archive.body(cid.bytes, MAXIMUM_PIECE);
  const piece = body && decode(body)?.carpackContext;
  return piece instanceof Uint8Array ? piece : null;
}
