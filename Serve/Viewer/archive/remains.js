// What is left of frames that do not hold (Docs/FORMAT.md, section 7.1). All that is found here is
// compared with its CID.

import { Malformed, varint } from "./cid.js";
import { hasDigest } from "./sha256.js";
import { xxh64 } from "./xxh64.js";

const MAGIC = [0xf0, 0x9f, 0x9a, 0x97, 0xf0, 0x9f, 0x93, 0xa6, 0xfe, 0xc9, 0x8a, 0xe5, 0xb1, 0xd7, 0x9c, 0x83];
const BLOCK = 1 << 17;
/** What stands in front of a CID in a link. */
const LINK = [0xd8, 0x2a, 0x58, 0x25, 0];
/** How often the end of the content is tried as that of a section. */
const TRIES = 64;

const isAt = (bytes, at, some) => at >= 0 && some.every((byte, i) => bytes[at + i] === byte);

/**
 * The content of a raw frame, whatever its headers say, and whether its checksum holds; null if it
 * has not the length of one.
 */
export function rawContent(stored) {
  for (const [header, least, most] of [[6, 1, 255], [7, 256, 65791], [9, 65792, Infinity]]) {
    const content = new Uint8Array(Math.max(0, stored.length));
    let size = 0;
    for (let at = header; at < stored.length - 7;) {
      const start = at + 3;
      const end = Math.min(start + BLOCK, stored.length - 4);
      at = split(stored, start, end);
      content.set(stored.subarray(start, at), size);
      size += at - start;
    }
    if (size < least || size > most) continue;
    const found = content.subarray(0, size);
    const view = new DataView(stored.buffer, stored.byteOffset, stored.length);
    return { content: found, holds: Number(xxh64(found) & 0xffffffffn) === view.getUint32(stored.length - 4, true) };
  }
  return null;
}

/** Where a raw block ends: behind the first half of the magic, or where it may end at most. */
function split(stored, start, end) {
  for (let at = stored.indexOf(MAGIC[0], start); at >= 0 && at + 8 < end; at = stored.indexOf(MAGIC[0], at + 1)) {
    if (isAt(stored, at, MAGIC.slice(0, 8)) && isAt(stored, at + 11, MAGIC.slice(8))) return at + 8;
  }
  return end;
}

/** Whether a CID of the usual form begins here that is no link. */
export const isUsual = (content, at) => content[at] === 1 && (content[at + 1] === 0x71 || content[at + 1] === 0x55)
  && content[at + 2] === 0x12 && content[at + 3] === 0x20 && at + 36 <= content.length && !isAt(content, at - LINK.length, LINK);

/** Where the length in front of a CID says that the section ends; -1 if it says nothing. */
function endBy(content, at, width) {
  if (at < width) return -1;
  try {
    const [length, start] = varint(content, at - width);
    return start === at && length >= 36 && at + length <= content.length ? at + length : -1;
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    return -1;
  }
}

/** Calls `take` with where the CID of each section begins in a damaged content that hashes to it, and where its body ends. */
export function eachLeft(content, take) {
  const places = [];
  for (let at = content.indexOf(1); at >= 0; at = content.indexOf(1, at + 1)) if (isUsual(content, at)) places.push(at);
  let [behind, tries] = [0, TRIES];
  for (const [i, at] of places.entries()) {
    if (at < behind) continue;
    const next = places[i + 1];
    const ends = [1, 2, 3, 4].map((width) => endBy(content, at, width));
    // Where the length is wrong, the section ends where the next begins, or with the content.
    if (next) ends.push(...[1, 2, 3, 4].map((width) => endBy(content, next, width) < 0 ? -1 : next - width));
    if (!next || tries-- > 0) ends.push(content.length);
    const end = ends.find((end) => end >= at + 36 && hasDigest(content, at + 36, end, content, at + 4));
    if (end === undefined) continue;
    take(at, end);
    behind = end;
  }
}
