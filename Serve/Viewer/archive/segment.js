// Index segments (Docs/FORMAT.md, section 4.1): which ordinal a CID has, and in which frame a
// section lies.
//
//   28 a, form, 2 zeros │ 32 base │ 40 n │ 44 m │ 48 fan-out, 4 · 2^a │ marks (packed) │ entries │ 24 · m frames │ XXH64

import { Malformed } from "./cid.js";
import { xxh64 } from "./xxh64.js";

const M = [0xf0, 0x9f, 0x9a, 0x97, 0xf0, 0x9f, 0x93, 0xa6, 0xfe, 0xc9, 0x8a, 0xe5, 0xb1, 0xd7, 0x9c, 0x83];

/** How many bits a number has. */
const widthOf = (number) => number < 2 ** 32 ? 32 - Math.clz32(number) : 32 + widthOf(Math.floor(number / 2 ** 32));
/** How many bits of a key are kept for an ordinal in the packed form. */
const keptBits = (ordinal) => ordinal < 2 ** 18 ? 28 : Math.min(48, 12 + widthOf(ordinal));
/** How many bytes a row of bits takes: 127 in each 16 bytes. */
const rowLength = (bits) => Math.ceil(bits / 127) * 16;

/** How many bits of a byte are set. */
const ONES = Uint8Array.from({ length: 256 }, (_, byte) => [...byte.toString(2)].filter((bit) => bit === "1").length);

/** Whether a skippable frame of this kind with M begins at `at`. */
export function isSkippable(bytes, at, kind) {
  return bytes[at] === 0x5c && bytes[at + 1] === 0x2a && bytes[at + 2] === 0x4d && bytes[at + 3] === 0x18
    && bytes[at + 24] === kind && bytes[at + 25] === 0 && bytes[at + 26] === 0 && bytes[at + 27] === 0
    && M.every((byte, i) => bytes[at + 8 + i] === byte);
}

/** Whether the XXH64 at the end of a skippable frame is that of the rest. */
export function isSound(frame) {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.length);
  return view.getUint32(4, true) === frame.length - 8
    && xxh64(frame.subarray(0, -8)) === view.getBigUint64(frame.length - 8, true);
}

/**
 * The length of a packed segment's frame, by how many ordinals and frames it covers and where it
 * begins.
 */
function shape(base, n, isPacked, a) {
  if (!isPacked) return { a, marks: 48 + 4 * 2 ** a, entries: 48 + 4 * 2 ** a, table: 48 + 4 * 2 ** a + 8 * n };
  const w = widthOf(n - 1);
  const b = Math.min(w, 28);
  const k = keptBits(base + n - 1);
  const fan = Math.max(b - 9, 0);
  const marks = 48 + 4 * 2 ** fan;
  const entries = marks + rowLength(n + 2 ** b);
  return { a: fan, w, b, k, marks, entries, table: entries + rowLength(n * (k - b + w)) };
}

/** One live segment, all of it read. */
export class Segment {
  a; w; b; k; marks; entries; table; bytes; view; base; n; m; isPacked;

  /** The length of the frame, to be read; of a wide one its fan-out bits have to be known. */
  static lengthOf({ base, n, m }, isPacked, a) {
    return shape(base, n, isPacked, a).table + 24 * m + 8;
  }

  constructor(bytes, { base, n, m }, isPacked) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const known = shape(base, n, isPacked, bytes[28]);
    if (!isSkippable(bytes, 0, 1) || bytes[28] !== known.a || bytes[29] !== (isPacked ? 1 : 0)
      || Number(view.getBigUint64(32, true)) !== base || view.getUint32(40, true) !== n || view.getUint32(44, true) !== m
      || bytes.length !== known.table + 24 * m + 8 || !isSound(bytes)) {
      throw new Malformed("the archive's index is damaged");
    }
    Object.assign(this, known, { bytes, view, base, n, m, isPacked });
  }

  /** The ordinals whose entries agree with a key; a hint, for the CID in the section decides. */
  ordinals(key) {
    return this.isPacked ? this.packedOrdinals(key) : this.wideOrdinals(key);
  }

  fan(i) {
    return i < 0 ? 0 : this.view.getUint32(48 + 4 * i, true);
  }

  wideOrdinals(key) {
    const found = [];
    const kept = (key[0] << 24 | key[1] << 16 | key[2] << 8 | key[3]) >>> 0;
    const first = this.a === 0 ? 0 : kept >>> 32 - this.a;
    for (let e = this.fan(first - 1); e < Math.min(this.fan(first), this.n); e++) {
      const at = this.entries + 8 * e;
      if (this.view.getUint32(at, true) === kept) found.push(this.base + this.view.getUint32(at + 4, true));
    }
    return found;
  }

  packedOrdinals(key) {
    const { a, b, w, k, n, base } = this;
    const prefix = keyBits(key, 0, b);
    const group = Math.floor(prefix / 2 ** (b - a));
    let entry = this.fan(group - 1);
    let mark = group * 2 ** (b - a) + entry;
    for (let i = group * 2 ** (b - a); i < prefix;) {
      const bit = mark % 127;
      const ones = bit < 120 && (bit & 7) === 0 ? ONES[this.bytes[this.marks + 16 * Math.floor(mark / 127) + (bit >> 3)]] : 9;
      // Eight marks at once, as long as the last one of them is not the last one of all.
      if (i + 8 - ones < prefix && ones < 9) {
        [i, mark, entry] = [i + 8 - ones, mark + 8, entry + ones];
      } else if (this.bit(this.marks, mark++)) {
        entry++;
      } else {
        i++;
      }
      if (entry > n) return [];
    }
    const found = [];
    for (; entry < n && this.bit(this.marks, mark); entry++, mark++) {
      const at = entry * (k - b + w);
      const ordinal = base + this.number(at, w);
      const kept = keptBits(ordinal);
      if (this.number(at + w, k - b) === keyBits(key, b, kept) * 2 ** (k - kept)) found.push(ordinal);
    }
    return found;
  }

  bit(row, place) {
    const block = Math.floor(place / 127);
    const bit = place - block * 127;
    return this.bytes[row + 16 * block + (bit >> 3)] >> (bit & 7) & 1;
  }

  /** A number of the row of entries, its lowest bit first. */
  number(place, count) {
    let value = 0;
    for (let i = count - 1; i >= 0; i--) value = value * 2 + this.bit(this.entries, place + i);
    return value;
  }

  /**
   * Hands over the frames, in the order of their ordinals: the ordinal of the first section, offset
   * and stored length.
   */
  eachFrame(take) {
    for (let i = 0, at = this.table; i < this.m; i++, at += 24) {
      take(this.base + this.view.getUint32(at + 16, true), Number(this.view.getBigUint64(at, true)), this.view.getUint32(at + 20, true));
    }
  }
}

/** Bits of a key from one to another, counted from the highest of its first byte, as a number. */
function keyBits(key, from, to) {
  let value = 0;
  for (let i = from; i < to; i++) value = value * 2 + (key[i >> 3] >> 7 - (i & 7) & 1);
  return value;
}
