// Many strings one behind the other as UTF-8: as strings they take more memory, and the engine
// moves them about.

import { resized } from "./memory.js";

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });
/** Longer strings are made by the decoder, shorter ones by way of `LETTERS`. */
const SHORT = 300;
const LETTERS = [];
const SCRATCH = new Uint8Array(4096);

/**
 * A list of strings that grows. Invariant: string i ends at `ends[i]` of `bytes`, and begins where
 * the one before it ends.
 */
export class Strings {
  constructor(capacity = 1024) {
    this.bytes = new Uint8Array(1 << 14);
    this.ends = new Uint32Array(Math.max(capacity, 1));
    this.length = 0;
  }

  /** Where a string begins. */
  start(i) {
    return i ? this.ends[i - 1] : 0;
  }

  push(text) {
    const at = this.start(this.length);
    // A unit of UTF-16 takes up to three bytes.
    if (this.bytes.length - at < 3 * text.length) this.bytes = resized(this.bytes, Math.max(at + 3 * text.length, Math.ceil(this.bytes.length * 1.4)));
    if (this.length === this.ends.length) this.ends = resized(this.ends, this.ends.length * 2);
    const { bytes } = this;
    let i = 0;
    for (; i < text.length && text.charCodeAt(i) < 128; i++) bytes[at + i] = text.charCodeAt(i);
    if (i < text.length) {
      // A buffer that the encoder has seen is kept by the browser until its collector comes by.
      const encoded = 3 * text.length > SCRATCH.length ? ENCODER.encode(text) : SCRATCH.subarray(0, ENCODER.encodeInto(text, SCRATCH).written);
      bytes.set(encoded, at);
      i = encoded.length;
    }
    this.ends[this.length++] = at + i;
  }

  /** A string; undefined beyond the list. */
  at(i) {
    if (!(i >= 0 && i < this.length)) return undefined;
    const [from, to, { bytes }] = [this.start(i), this.ends[i], this];
    if (to - from > SHORT) return DECODER.decode(bytes.subarray(from, to));
    LETTERS.length = to - from;
    for (let at = from; at < to; at++) {
      if (bytes[at] > 127) return DECODER.decode(bytes.subarray(from, to));
      LETTERS[at - from] = bytes[at];
    }
    return String.fromCharCode.apply(null, LETTERS);
  }

  /** Whether a string begins with these bytes. */
  begins(i, bytes) {
    const start = this.start(i);
    return this.ends[i] - start >= bytes.length && bytes.every((byte, k) => this.bytes[start + k] === byte);
  }

  *entries() {
    for (let i = 0; i < this.length; i++) yield [i, this.at(i)];
  }

  *[Symbol.iterator]() {
    for (let i = 0; i < this.length; i++) yield this.at(i);
  }

  /** Gives back the memory that no more strings need. */
  finish() {
    this.bytes = resized(this.bytes, this.start(this.length));
    this.ends = resized(this.ends, Math.max(this.length, 1));
  }

  /** Which strings have all of these words in them: 1 or 0 for each; empty ones have none. */
  having(words) {
    const found = new Uint8Array(this.length);
    for (let i = 0; i < this.length; i++) found[i] = this.ends[i] > this.start(i) ? 1 : 0;
    for (const word of words) this.keep(ENCODER.encode(word), found);
    return found;
  }

  /** Leaves in `found` only the strings that have a word. */
  keep(word, found) {
    const { bytes, ends, length } = this;
    const first = word[0];
    for (let i = 0; i < length; i++) {
      if (!found[i]) continue;
      const last = ends[i] - word.length;
      let isThere = false;
      for (let at = i ? ends[i - 1] : 0; at <= last && !isThere; at++) {
        if (bytes[at] !== first) continue;
        let same = 1;
        while (same < word.length && bytes[at + same] === word[same]) same++;
        isThere = same === word.length;
      }
      if (!isThere) found[i] = 0;
    }
  }
}
