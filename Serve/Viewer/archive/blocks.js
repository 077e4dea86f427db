// Blocks by their CIDs, in a table of numbers: a hundred thousand of them are no objects.

import { cidAt, Malformed, varint } from "./cid.js";
import { release, resized } from "./memory.js";
import { eachLeft } from "./remains.js";
import { hasDigest, sha256 } from "./sha256.js";

/** The codec of records, in their CIDs: dag-cbor. */
const RECORD = 0x71;

/** The blocks of the frames that were read, found by CID. */
export class BlockTable {
  constructor() {
    this.pages = [];
    /** The frames whose sections are in it, by their numbers. */
    this.frames = new Set();
    this.count = 0;
    /**
     * Of each block four numbers side by side: its page, and where its CID, its body and what
     * follows it begin there.
     */
    this.places = new Uint32Array(4 * 1024);
    this.isChecked = new Uint8Array(1024);
    this.slots = new Int32Array(4096).fill(-1);
  }

  /**
   * Adds a section: a CID that begins at `start` of `content`, and a body behind it up to `end`.
   */
  add(content, start, body, end) {
    if (this.pages.at(-1) !== content) this.pages.push(content);
    if (this.count === this.isChecked.length) this.grow();
    const number = this.count++;
    const { places } = this;
    const at = 4 * number;
    places[at] = this.pages.length - 1;
    places[at + 1] = start;
    places[at + 2] = body;
    places[at + 3] = end;
    this.isChecked[number] = 0;
    this.put(number);
    return number;
  }

  /**
   * Adds the sections of a pack's content; false if they do not fill it, as those of a damaged one.
   */
  addPack(content) {
    let at = 0;
    while (at < content.length) {
      const next = this.addSection(content, at);
      if (next < 0) return false;
      at = next;
    }
    return true;
  }

  /** Adds the section that begins at `at`; answers where it ends, -1 if there is none. */
  addSection(content, at) {
    // Nearly all sections have a length of one or two bytes, and a CID of the common form.
    let [length, start] = [content[at], at + 1];
    if (length > 127) {
      if (content[start] > 0 && content[start] < 128) length = length - 128 + content[start++] * 128;
      else [length, start] = this.lengthAt(content, at);
    }
    const end = start + length;
    const body = isCommon(content, start) ? start + 36 : this.cidEnd(content, start);
    if (!(end <= content.length && body <= end)) return -1;
    this.add(content, start, body, end);
    return end;
  }

  lengthAt(content, at) {
    try {
      return varint(content, at);
    } catch {
      return [NaN, at];
    }
  }

  cidEnd(content, at) {
    try {
      return cidAt(content, at).end;
    } catch {
      return NaN;
    }
  }

  /** Adds the sections of a damaged pack's content that hash to their CIDs, wherever they begin. */
  addDamaged(content) {
    eachLeft(content, (start, end) => this.add(content, start, start + 36, end));
  }

  /**
   * The number of the block with a CID, which may stand among other bytes; -1 if it is not there.
   */
  find(bytes, from = 0, to = bytes.length) {
    const mask = this.slots.length - 1;
    const { slots } = this;
    let slot = hashOf(bytes, to) & mask;
    for (let probes = 0; slots[slot] >= 0; slot = slot + 1 & mask) {
      if (this.isCID(slots[slot], bytes, from, to)) return slots[slot];
      if (++probes > MAXIMUM_PROBES) throw new Malformed("the CIDs of blocks were made to be alike");
    }
    return -1;
  }

  isCID(number, bytes, from, to) {
    const { places } = this;
    const start = places[4 * number + 1];
    if (places[4 * number + 2] - start !== to - from) return false;
    const page = this.pages[places[4 * number]];
    for (let i = to - from - 1; i >= 0; i--) if (page[start + i] !== bytes[from + i]) return false;
    return true;
  }

  /** The bytes of a block's CID. */
  cid(number) {
    const [page, start, body, end] = this.places.subarray(4 * number);
    if (start === body) return Uint8Array.of(1, RECORD, 0x12, 0x20, ...sha256(this.pages[page], body, end));
    return this.pages[page].slice(start, body);
  }

  /** The bytes of a block; they are shared. */
  bytes(number) {
    const at = 4 * number;
    return this.pages[this.places[at]].subarray(this.places[at + 2], this.places[at + 3]);
  }

  /** Where the bytes of a block lie: among which, from where, up to where. */
  place(number) {
    const at = 4 * number;
    return [this.pages[this.places[at]], this.places[at + 2], this.places[at + 3]];
  }

  /**
   * Whether a block hashes to its CID; null where its hash function is unknown. Each block is
   * hashed once.
   */
  matches(number) {
    if (this.isChecked[number]) return this.isChecked[number] === 1 ? true : this.isChecked[number] === 2 ? false : null;
    const at = 4 * number;
    const page = this.pages[this.places[at]];
    const start = this.places[at + 1];
    const digest = isCommon(page, start) ? start + 4 : sha256At(page, start);
    const matches = digest < 0 ? null : hasDigest(page, this.places[at + 2], this.places[at + 3], page, digest);
    this.isChecked[number] = matches === null ? 3 : matches ? 1 : 2;
    return matches;
  }

  /**
   * Keeps the bodies of these blocks, by their numbers or -1, and of the others their CIDs and what
   * was found out about them.
   */
  keep(numbers) {
    const isKept = new Uint8Array(this.count);
    for (const number of numbers) if (number >= 0) isKept[number] = 1;
    for (let number = 0; number < this.count; number++) if (!isKept[number]) this.places[4 * number + 3] = this.places[4 * number + 2];
    this.pack();
  }

  /**
   * Forgets the CIDs that can be made again of the bodies, which hash to them. Afterwards no block
   * is found by its CID.
   */
  forgetCIDs() {
    const { places } = this;
    for (let number = 0; number < this.count; number++) {
      const [at, page] = [4 * number, this.pages[places[4 * number]]];
      const isRecord = isCommon(page, places[at + 1]) && page[places[at + 1] + 1] === RECORD;
      if (isRecord && this.isChecked[number] === 1 && places[at + 3] > places[at + 2]) places[at + 1] = places[at + 2];
    }
    release(this.slots);
    this.slots = null;
    this.pack();
  }

  /** Moves what is left of blocks together, page by page. */
  pack() {
    const { places } = this;
    for (let first = 0, next; first < this.count; first = next) {
      const number = places[4 * first];
      let [isInOrder, end] = [true, 0];
      for (next = first; next < this.count && places[4 * next] === number; next++) {
        // The blocks of a damaged page may be there twice.
        isInOrder &&= places[4 * next + 1] >= end;
        end = places[4 * next + 3];
      }
      if (isInOrder) this.packPage(number, first, next);
    }
  }

  /** Moves the blocks of a page together, which are those from one number up to another. */
  packPage(number, first, next) {
    const { places } = this;
    const page = this.pages[number];
    let length = 0;
    for (let at = 4 * first; at < 4 * next; at += 4) {
      const start = places[at + 1];
      page.copyWithin(length, start, places[at + 3]);
      for (let i = 1; i < 4; i++) places[at + i] -= start - length;
      length = places[at + 3];
    }
    this.pages[number] = resized(page, length);
  }

  put(number) {
    const mask = this.slots.length - 1;
    const page = this.pages[this.places[4 * number]];
    const { slots } = this;
    let slot = hashOf(page, this.places[4 * number + 2]) & mask;
    for (let probes = 0; slots[slot] >= 0; slot = slot + 1 & mask) {
      if (++probes > MAXIMUM_PROBES) throw new Malformed("the CIDs of blocks were made to be alike");
    }
    slots[slot] = number;
  }

  /** Makes room for so many blocks, so that the table need not grow step by step. */
  reserve(count) {
    if (count > this.isChecked.length) this.grow(Math.max(count, Math.ceil(1.2 * this.isChecked.length)));
  }

  grow(capacity = this.isChecked.length * 2) {
    this.places = resized(this.places, 4 * capacity);
    this.isChecked = resized(this.isChecked, capacity);
    // At most half of the slots are taken; their number is a power of two.
    this.slots = new Int32Array(2 ** Math.ceil(Math.log2(capacity * 2))).fill(-1);
    for (let number = 0; number < this.count; number++) this.put(number);
  }
}

/**
 * How many slots are looked at for one CID: digests spread evenly, so that many more are made to
 * lie together.
 */
const MAXIMUM_PROBES = 512;

/** Whether a CID is of the form that nearly all have: version 1, with a SHA-256 of 32 bytes. */
const isCommon = (bytes, at) => bytes[at] === 1 && bytes[at + 1] < 128 && bytes[at + 2] === 0x12 && bytes[at + 3] === 0x20;

/** Where the SHA-256 of a CID begins; -1 if it has another digest. */
function sha256At(bytes, at) {
  const { hash, digest } = cidAt(bytes, at);
  return hash === 0x12 ? digest : -1;
}

/** A number for the last bytes of a CID, which are those of a digest. */
function hashOf(bytes, end) {
  const low = bytes[end - 1] | bytes[end - 2] << 8 | bytes[end - 3] << 16 | bytes[end - 4] << 24;
  const high = bytes[end - 5] | bytes[end - 6] << 8 | bytes[end - 7] << 16 | bytes[end - 8] << 24;
  const hash = Math.imul(low ^ Math.imul(high, 0x9e3779b1), 0x85ebca6b);
  return hash ^ hash >>> 15;
}
