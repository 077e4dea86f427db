// DAG-CBOR: https://ipld.io/specs/codecs/dag-cbor/spec/
//
// Values become: null, booleans, numbers (BigInt beyond 2^53), strings, Uint8Array, arrays, objects
// without a prototype, and CIDs.

import { CID, cidAt, Malformed } from "./cid.js";

/** Records are not nested deeper. */
const MAXIMUM_DEPTH = 256;
/** Texts up to so many bytes are read by hand if they are ASCII, by way of `LETTERS`. */
const SHORT = 300;
const LETTERS = [];
const SCRATCH = new Uint8Array(4096);
/** Keys that were read before, at places that their bytes decide. */
const KEYS = new Array(256).fill("");
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The value that takes up `bytes` from `start` up to `end`. */
export function decode(bytes, start = 0, end = bytes.length) {
  const reader = new Reader(bytes, start, end);
  const value = reader.value(0);
  if (reader.at !== end) throw new Malformed("there is something behind a value");
  return value;
}

/**
 * The same, but of a map only the entries with these names: the others are read, and refused where
 * `decode` refuses them. All entries, if one of the texts or keys in the others is one of `marks`.
 */
export function decodeSome(bytes, names, marks) {
  const reader = new Reader(bytes, 0, bytes.length);
  if (bytes[0] >> 5 !== 5) return decode(bytes);
  reader.marks = marks;
  const value = Object.create(null);
  for (let left = reader.count(bytes[reader.at++] & 31, 0); left > 0; left--) {
    const name = reader.key();
    if (names.has(name)) value[name] = reader.value(1);
    else reader.check(1);
  }
  if (reader.at !== bytes.length) throw new Malformed("there is something behind a value");
  return reader.isMarked ? decode(bytes) : value;
}

/** Whether a map has a key, found without making values of the others; false for what is no map. */
export function hasKey(bytes, start, end, name) {
  const reader = new Reader(bytes, start, end);
  const head = bytes[reader.at++];
  if (head >> 5 !== 5) return false;
  for (let left = reader.number(head & 31); left > 0; left--) {
    const key = bytes[reader.at++];
    const at = reader.skip(reader.number(key & 31));
    if (reader.at - at === name.length && name.every((byte, i) => bytes[at + i] === byte)) return true;
    reader.skipValue();
  }
  return false;
}

/**
 * The bytes of a map without one of its entries, the others as they stand: what a signature in that
 * entry is over. Throws `Malformed` for a map whose keys are not in DAG-CBOR's order, or not each
 * once.
 */
export function without(bytes, name) {
  const reader = new Reader(bytes, 0, bytes.length);
  const head = bytes[reader.at++];
  const count = reader.number(head & 31);
  if (head >> 5 !== 5 || count > 23) throw new Malformed("a value is not a small map");
  const parts = [Uint8Array.of(0xa0 | count)];
  let before = null;
  for (let left = count; left > 0; left--) {
    const from = reader.at;
    const key = reader.value(0);
    if (typeof key !== "string") throw new Malformed("a key is no text");
    if (before !== null && (key.length < before.length || key.length === before.length && key <= before)) {
      throw new Malformed("the keys of a map are not in order");
    }
    before = key;
    reader.skipValue();
    if (key === name) parts[0][0]--;
    else parts.push(bytes.subarray(from, reader.at));
  }
  if (reader.at !== bytes.length) throw new Malformed("there is something behind a value");
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

class Reader {
  constructor(bytes, at, end) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
    this.marks = [];
    this.isMarked = false;
  }

  value(depth) {
    if (this.at >= this.end) throw new Malformed("a value is cut short");
    const head = this.bytes[this.at++];
    const info = head & 31;
    switch (head >> 5) {
      case 0: return this.number(info);
      case 1: {
        const number = this.number(info);
        return typeof number === "bigint" ? -1n - number : -1 - number;
      }
      case 2: {
        const at = this.skip(this.number(info));
        return this.bytes.slice(at, this.at);
      }
      case 3: return this.text(info);
      case 4: {
        const count = this.count(info, depth);
        const list = [];
        for (let i = 0; i < count; i++) list.push(this.value(depth + 1));
        return list;
      }
      case 5: {
        const count = this.count(info, depth);
        const map = Object.create(null);
        for (let i = 0; i < count; i++) {
          const key = this.key();
          map[key] = this.value(depth + 1);
        }
        return map;
      }
      // A copy, and no part of one: engines keep the parts of short arrays elsewhere, at a price
      // for each.
      case 6: return new CID(this.bytes.slice(this.link(info), this.at));
      default: return this.simple(info);
    }
  }

  /** Reads a value without making it, and refuses what `value` refuses. */
  check(depth) {
    if (this.at >= this.end) throw new Malformed("a value is cut short");
    const head = this.bytes[this.at++];
    const info = head & 31;
    switch (head >> 5) {
      case 0: case 1: this.number(info); break;
      case 2: this.skip(this.number(info)); break;
      case 3: this.checkText(info); break;
      case 4:
        for (let left = this.count(info, depth); left > 0; left--) this.check(depth + 1);
        break;
      case 5:
        for (let left = this.count(info, depth); left > 0; left--) {
          this.checkText(this.keyHead());
          this.check(depth + 1);
        }
        break;
      case 6: this.link(info); break;
      default: this.simple(info);
    }
  }

  checkText(info) {
    const at = this.skip(this.number(info));
    const { bytes, at: end } = this;
    for (const mark of this.marks) if (mark.length === end - at) this.isMarked ||= mark.every((byte, i) => bytes[at + i] === byte);
    for (let i = at; i < end; i++) {
      if (bytes[i] < 128) continue;
      this.decoded(at);
      return;
    }
  }

  /** The head of a key, which has to be a text. */
  keyHead() {
    const head = this.at < this.end ? this.bytes[this.at++] : 0;
    if (head >> 5 !== 3) throw new Malformed("a key is no text");
    return head & 31;
  }

  /** A key; most are those of other records, too. */
  key() {
    const head = this.keyHead();
    const { bytes, at } = this;
    if (head < 1 || head > 23 || at + head > this.end) return this.text(head);
    const place = (bytes[at] * 5 + bytes[at + head - 1] * 3 + head) & KEYS.length - 1;
    const known = KEYS[place];
    if (known?.length === head) {
      let same = 0;
      while (same < head && known.charCodeAt(same) === bytes[at + same]) same++;
      if (same === head) {
        this.at += head;
        return known;
      }
    }
    const text = this.text(head);
    if (text.length === head) KEYS[place] = text;
    return text;
  }

  /** Steps over a link; answers where its CID begins. */
  link(info) {
    if (this.number(info) !== 42) throw new Malformed("a tag is no link");
    const head = this.bytes[this.at++];
    const at = head >> 5 === 2 && this.at <= this.end ? this.skip(this.number(head & 31)) : this.at;
    if (this.at === at || this.bytes[at] !== 0 || cidAt(this.bytes, at + 1).end !== this.at) throw new Malformed("a link does not hold");
    return at + 1;
  }

  /** Steps over a value, whatever it is. */
  skipValue() {
    for (let left = 1; left > 0; left--) {
      if (this.at >= this.end) throw new Malformed("a value is cut short");
      const head = this.bytes[this.at++];
      const info = head & 31;
      switch (head >> 5) {
        case 2: case 3: this.skip(this.number(info)); break;
        case 4: left += this.count(info, 0); break;
        case 5: left += 2 * this.count(info, 0); break;
        case 6: this.number(info); left++; break;
        case 7: if (info > 23) this.skip(1 << info - 24); break;
        default: this.number(info);
      }
    }
  }

  simple(info) {
    switch (info) {
      case 20: return false;
      case 21: return true;
      case 22: return null;
      case 27: {
        const at = this.skip(8);
        return new DataView(this.bytes.buffer, this.bytes.byteOffset + at, 8).getFloat64(0);
      }
      default: throw new Malformed("a value is none of DAG-CBOR's");
    }
  }

  number(info) {
    if (info < 24) return info;
    if (info > 27) throw new Malformed("a value has no length");
    const width = 1 << info - 24;
    const at = this.skip(width);
    let value = 0;
    for (let i = 0; i < width; i++) value = value * 256 + this.bytes[at + i];
    if (value <= Number.MAX_SAFE_INTEGER) return value;
    return new DataView(this.bytes.buffer, this.bytes.byteOffset + at, 8).getBigUint64(0);
  }

  text(info) {
    const at = this.skip(this.number(info));
    const { bytes, at: end } = this;
    if (end - at <= SHORT) {
      // Most texts are short and ASCII; a browser makes objects of its own for each text that its
      // decoder reads.
      const letters = end - at < 24 ? null : LETTERS;
      let text = "";
      let i = at;
      if (letters) {
        letters.length = end - at;
        for (; i < end && bytes[i] < 128; i++) letters[i - at] = bytes[i];
        if (i === end) return String.fromCharCode.apply(null, letters);
      } else {
        for (; i < end && bytes[i] < 128; i++) text += String.fromCharCode(bytes[i]);
        if (i === end) return text;
      }
    }
    return this.decoded(at);
  }

  /** The text that begins at `at` and has been stepped over. */
  decoded(at) {
    const bytes = this.bytes.subarray(at, this.at);
    try {
      // A buffer that the decoder has seen is kept by the browser until its collector comes by.
      if (bytes.length > SCRATCH.length) return utf8.decode(bytes);
      SCRATCH.set(bytes);
      return utf8.decode(SCRATCH.subarray(0, bytes.length));
    } catch {
      throw new Malformed("a text is not UTF-8");
    }
  }

  count(info, depth) {
    const count = this.number(info);
    if (depth >= MAXIMUM_DEPTH) throw new Malformed("values are nested too deeply");
    // Each item takes a byte at least.
    if (count > this.end - this.at) throw new Malformed("a list is cut short");
    return count;
  }

  /** Steps over so many bytes; answers where they begin. */
  skip(count) {
    const at = this.at;
    if (typeof count !== "number" || count > this.end - at) throw new Malformed("a value is cut short");
    this.at += count;
    return at;
  }
}
