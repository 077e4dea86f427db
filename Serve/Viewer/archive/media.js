// Large blobs, above all videos, without all of their bytes in memory: read piece by piece and
// compared with the CID, and handed over as a Blob. What lies uncompressed in a file stays there: a
// browser reads from it what it plays.

import { cidAt, varint } from "./cid.js";
import { Digest } from "./sha256.js";
import { FileSource, readExactly } from "./source.js";
import { rawParts } from "./zstd.js";

/** No more than this is held in memory of one blob, in bytes. */
export const MAXIMUM_HELD = 64 << 20;
/** The length of what is read of a file at once. */
const PIECE = 4 << 20;

/** A blob of which more would have to be held than may be. */
export class TooLarge extends Error {}

/**
 * The content of a section of several frames as a Blob; null for a section of one frame, or where
 * the archive does not hold it intact. Throws `TooLarge`. `progress` is called with how much has
 * been compared, and of how much. Without `isHeld` the Blob is empty: it says only that all of the
 * content is what its CID says.
 */
export async function largeBlob(archive, cid, progress = (..._) => {}, isHeld = true) {
  for (const ordinal of archive.ordinals(cid)) {
    const frame = archive.frameOf(ordinal);
    if (!isLarge(archive, ordinal)) continue;
    const found = await sectionOf(archive, frame, ordinal, cid, progress, isHeld);
    if (found) return found;
  }
  return null;
}

/** Whether a section takes up several frames. */
export function isLarge(archive, ordinal) {
  const frame = archive.frameOf(ordinal);
  return frame >= 0 && archive.firsts[frame] === ordinal && archive.firsts[frame + 1] === ordinal;
}

async function sectionOf(archive, frame, ordinal, cid, progress, isHeld) {
  const digest = new Digest();
  const pieces = [];
  let [left, total, held] = [0, 0, 0];
  for (let next = frame; next === frame || (left > 0 && archive.firsts[next] === ordinal); next++) {
    const { start, end } = archive.range(next);
    const stored = await readExactly(archive.source, start, end);
    // What is raw is hashed where it stands.
    const raw = rawParts(stored);
    const content = raw ? stored : await archive.content(stored);
    if (!content) return null;
    let parts = raw ?? [[0, content.length]];
    if (next === frame) {
      const [at, length] = bodyOf(content.subarray(...parts[0]), cid);
      if (at < 0) return null;
      [parts, total, left] = [behind(parts, at), length, length];
    }
    for (const [from, to] of parts) {
      if (to - from > left) return null;
      digest.update(content, from, to);
      left -= to - from;
    }
    progress(total - left, total);
    if (isHeld && raw && archive.source instanceof FileSource) {
      pieces.push(...parts.map(([from, to]) => archive.source.file.slice(start + from, start + to)));
    } else if (isHeld) {
      if ((held += content.length) > MAXIMUM_HELD) throw new TooLarge(tooLarge(archive));
      pieces.push(new Blob(parts.map((range) => content.subarray(...range))));
    }
  }
  return left === 0 && digest.isThat(cid, cidAt(cid, 0)) ? new Blob(pieces) : null;
}

/** Why a blob is not shown. */
const tooLarge = ({ source }) => source instanceof FileSource
  ? "it is compressed in the archive, and too large for this page to hold: \"carpack extract\" writes it to a file"
  : "this page plays up to 64 MB from a web server: with the archive as a file on this device it plays more";

/**
 * Where the body begins in the first bytes of a section, and its length; [-1, 0] if it is
 * another's.
 */
function bodyOf(content, cid) {
  try {
    const [length, section] = varint(content, 0);
    const { end } = cidAt(content, section);
    if (end - section === cid.length && cid.every((byte, i) => content[section + i] === byte)) return [end, section + length - end];
  } catch { /* then it is none */ }
  return [-1, 0];
}

/** Ranges without their first bytes. */
function behind(ranges, skipped) {
  const found = [];
  for (const [from, to] of ranges) {
    const begin = from + Math.min(skipped, to - from);
    skipped -= begin - from;
    if (begin < to) found.push([begin, to]);
  }
  return found;
}

/** A file as it is, once it was compared with a CID; null if it is another. */
export async function comparedFile(file, cid, progress = (..._) => {}) {
  const digest = new Digest();
  for (let at = 0; at < file.size; at += PIECE) {
    const bytes = new Uint8Array(await file.slice(at, Math.min(file.size, at + PIECE)).arrayBuffer());
    digest.update(bytes, 0, bytes.length);
    progress(at + bytes.length, file.size);
  }
  return digest.isThat(cid, cidAt(cid, 0)) ? file.slice(0, file.size) : null;
}
