// CIDs in binary form: 12 20 and 32 bytes (version 0), or the varints 1, codec, hash function,
// digest length and the digest.

/** Bytes that are not what they must be. */
export class Malformed extends Error {}

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
const BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/** No digest is longer (FORMAT 8). */
const MAXIMUM_DIGEST = 2048;

/**
 * An unsigned varint; answers [value, end]. Values beyond 2^53 are refused, as no archive has any.
 */
export function varint(bytes, at) {
  let value = 0;
  for (let i = 0, scale = 1; i < 8; i++, scale *= 128) {
    const byte = bytes[at + i];
    if (byte === undefined) break;
    value += (byte & 127) * scale;
    if (byte < 128) {
      if ((i > 0 && byte === 0) || value > Number.MAX_SAFE_INTEGER) break;
      return [value, at + i + 1];
    }
  }
  throw new Malformed("a varint does not hold");
}

/**
 * Where the CID that begins at `at` ends, and what it says: {end, codec, hash, digest (where it
 * begins)}.
 */
export function cidAt(bytes, at) {
  if (bytes[at] === 0x12 && bytes[at + 1] === 0x20) return { end: at + 34, codec: 0x70, hash: 0x12, digest: at + 2 };
  // Nearly all: version 1, raw or dag-cbor, sha2-256.
  if (bytes[at] === 1 && bytes[at + 1] < 128 && bytes[at + 2] === 0x12 && bytes[at + 3] === 0x20) {
    return { end: at + 36, codec: bytes[at + 1], hash: 0x12, digest: at + 4 };
  }
  const [version, one] = varint(bytes, at);
  const [codec, two] = varint(bytes, one);
  const [hash, three] = varint(bytes, two);
  const [length, digest] = varint(bytes, three);
  if (version !== 1 || length > MAXIMUM_DIGEST) throw new Malformed("a CID does not hold");
  return { end: digest + length, codec, hash, digest };
}

/** A CID. */
export class CID {
  known;

  constructor(bytes) {
    this.bytes = bytes;
  }

  /** As text: base32 of version 1, base58btc of version 0. */
  get text() {
    return this.known ??= this.bytes[0] === 0x12 ? base58(this.bytes) : "b" + base32(this.bytes);
  }

  /** The same, by the name that links have in AT Protocol's JSON. */
  get $link() {
    return this.text;
  }

  toJSON() {
    return { $link: this.text };
  }

  /** Reads the text of a CID of version 1. */
  static parse(text) {
    if (typeof text !== "string" || !text.startsWith("b") || text.length > 4096) throw new Malformed("a CID does not hold");
    const bytes = new Uint8Array((text.length - 1) * 5 >> 3);
    let [bits, value, at] = [0, 0, 0];
    for (let i = 1; i < text.length; i++) {
      const digit = ALPHABET.indexOf(text[i]);
      if (digit < 0) throw new Malformed("a CID does not hold");
      value = value << 5 | digit;
      bits += 5;
      if (bits >= 8) {
        bits -= 8;
        bytes[at++] = value >> bits & 255;
        value &= (1 << bits) - 1;
      }
    }
    if (value !== 0 || cidAt(bytes, 0).end !== bytes.length) throw new Malformed("a CID does not hold");
    return new CID(bytes);
  }
}

/**
 * Base 32 without padding. Made at once: of a text that grows letter by letter, engines keep an
 * object for each letter.
 */
export function base32(bytes) {
  const letters = [];
  let [bits, value] = [0, 0];
  for (const byte of bytes) {
    value = value << 8 | byte;
    bits += 8;
    for (; bits >= 5; value &= (1 << bits) - 1) {
      bits -= 5;
      letters.push(ALPHABET.charCodeAt(value >> bits));
    }
  }
  if (bits) letters.push(ALPHABET.charCodeAt(value << 5 - bits));
  return String.fromCharCode.apply(null, letters);
}

function base58(bytes) {
  let number = bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
  let text = "";
  for (; number > 0n; number /= 58n) text = BASE58[Number(number % 58n)] + text;
  return text;
}
