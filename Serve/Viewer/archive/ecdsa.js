// Signatures of AT Protocol: ECDSA over SHA-256 on secp256k1 and P-256, and the public keys that
// check them.
//
// `crypto.subtle` has no secp256k1, and is absent on pages that came over plain http: one verifier
// serves both curves. Only public numbers are handled, so no operation needs to take the same time
// for all of them. Sources: SEC 1, section 4.1.4; https://atproto.com/specs/cryptography

import { sha256 } from "./sha256.js";

const number = (hex) => BigInt(`0x${hex}`);

/**
 * y² = x³ + ax + b modulo p, and a generator of order n. `prefix` is the curve's multicodec as a
 * varint.
 */
const K256 = {
  name: "k256", prefix: [0xe7, 0x01], a: 0n, b: 7n,
  p: number("fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f"),
  n: number("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"),
  g: [number("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"),
    number("483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8")],
};
const P256 = {
  name: "p256", prefix: [0x80, 0x24], a: -3n,
  b: number("5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b"),
  p: number("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff"),
  n: number("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"),
  g: [number("6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"),
    number("4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5")],
};

/** @type {(x: bigint, m: bigint) => bigint} */
const modulo = (x, m) => { const rest = x % m; return rest < 0n ? rest + m : rest; };

function power(base, exponent, m) {
  let result = 1n;
  for (let square = modulo(base, m); exponent > 0n; exponent >>= 1n, square = square * square % m) {
    if (exponent & 1n) result = result * square % m;
  }
  return result;
}

/** The inverse modulo a prime. */
const inverse = (x, m) => power(x, m - 2n, m);

/** Big-endian bytes as a number. */
const integer = (bytes) => number([...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("") || "0");

// Points as [X, Y, Z] with x = X / Z² and y = Y / Z³; Z = 0 is the point at infinity.

/** @type {(point: bigint[], curve: any) => bigint[]} */
function double([x, y, z], { a, p }) {
  if (z === 0n || y === 0n) return [1n, 1n, 0n];
  const yy = y * y % p;
  const zz = z * z % p;
  const s = 4n * x * yy % p;
  const m = (3n * x * x + a * zz * zz) % p;
  const x2 = modulo(m * m - 2n * s, p);
  return [x2, modulo(m * (s - x2) - 8n * yy * yy, p), 2n * y * z % p];
}

/** @type {(left: bigint[], right: bigint[], curve: any) => bigint[]} */
function add(left, right, curve) {
  const { p } = curve;
  const [x1, y1, z1] = left;
  const [x2, y2, z2] = right;
  if (z1 === 0n) return right;
  if (z2 === 0n) return left;
  const [z11, z22] = [z1 * z1 % p, z2 * z2 % p];
  const [u1, u2] = [x1 * z22 % p, x2 * z11 % p];
  const [s1, s2] = [y1 * z22 * z2 % p, y2 * z11 * z1 % p];
  const h = modulo(u2 - u1, p);
  const r = modulo(s2 - s1, p);
  if (h === 0n) return r === 0n ? double(left, curve) : [1n, 1n, 0n];
  const hh = h * h % p;
  const [hhh, v] = [h * hh % p, u1 * hh % p];
  const x3 = modulo(r * r - hhh - 2n * v, p);
  return [x3, modulo(r * (v - x3) - s1 * hhh, p), h * z1 * z2 % p];
}

/** u · G + v · Q, bit by bit for both at once. */
function combine(u, v, q, curve) {
  const [one, other] = [[...curve.g, 1n], [...q, 1n]];
  const choices = [null, one, other, add(one, other, curve)];
  let sum = [1n, 1n, 0n];
  for (let bit = 255n; bit >= 0n; bit--) {
    sum = double(sum, curve);
    const choice = choices[Number(u >> bit & 1n | (v >> bit & 1n) << 1n)];
    if (choice) sum = add(sum, choice, curve);
  }
  return sum;
}

/** A public key: a point of one of the two curves. `id` is the same for the same key only. */
export class PublicKey {
  curve; point; id;

  /** A point of 33 bytes (compressed) or 65; null for what is none, or lies beside the curve. */
  static fromPoint(bytes, curve) {
    const { a, b, p } = curve;
    const isCompressed = bytes.length === 33 && (bytes[0] === 2 || bytes[0] === 3);
    if (!isCompressed && !(bytes.length === 65 && bytes[0] === 4)) return null;
    const x = integer(bytes.subarray(1, 33));
    if (x >= p) return null;
    const square = modulo(x * x * x + a * x + b, p);
    // Both primes are 3 modulo 4.
    let y = isCompressed ? power(square, (p + 1n) / 4n, p) : integer(bytes.subarray(33));
    if (y >= p || y * y % p !== square) return null;
    if (isCompressed && (y & 1n) !== BigInt(bytes[0] & 1)) y = modulo(-y, p);
    return Object.assign(new PublicKey(), { curve, point: [x, y], id: `${curve.name} ${x.toString(16)} ${y & 1n}` });
  }

  /**
   * A Multikey: `z`, and in base 58 the curve's multicodec and a compressed point; null for what is
   * none.
   */
  static fromMultikey(text) {
    const bytes = fromBase58(text);
    const curve = bytes && [K256, P256].find(({ prefix }) => prefix.every((byte, i) => bytes[i] === byte));
    return curve && bytes.length === 35 ? PublicKey.fromPoint(bytes.subarray(2), curve) : null;
  }

  /** `did:key:` and a Multikey. */
  static fromDIDKey(text) {
    return typeof text === "string" && text.startsWith("did:key:") ? PublicKey.fromMultikey(text.slice(8)) : null;
  }

  /** The `publicKeyMultibase` of the key types of 2022 and 2023, whose name says which curve. */
  static fromLegacy(text, curveName) {
    const bytes = fromBase58(text);
    return bytes && PublicKey.fromPoint(bytes, curveName === "k256" ? K256 : P256);
  }

  /**
   * Whether the key signed a message. Of the two values of s that would do, only the lower is
   * taken.
   */
  verifies(signature, message) {
    const { n, p } = this.curve;
    if (signature.length !== 64) return false;
    const [r, s] = [integer(signature.subarray(0, 32)), integer(signature.subarray(32))];
    if (r < 1n || r >= n || s < 1n || s > n / 2n) return false;
    const w = inverse(s, n);
    const [x, , z] = combine(integer(sha256(message)) * w % n, r * w % n, this.point, this.curve);
    if (z === 0n) return false;
    const affine = x * power(inverse(z, p), 2n, p) % p;
    return affine % n === r;
  }
}

const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/** The bytes of a multibase text in base 58; null for what is none, or longer than any key. */
function fromBase58(text) {
  if (typeof text !== "string" || text[0] !== "z" || text.length > 120) return null;
  let value = 0n;
  let zeros = 0;
  for (const char of text.slice(1)) {
    const digit = ALPHABET.indexOf(char);
    if (digit < 0) return null;
    if (digit === 0 && value === 0n) zeros++;
    value = value * 58n + BigInt(digit);
  }
  const hex = value === 0n ? "" : value.toString(16);
  const bytes = (hex.length % 2 ? `0${hex}` : hex).match(/../g) ?? [];
  return Uint8Array.from([...Array(zeros).fill(0), ...bytes.map((byte) => parseInt(byte, 16))]);
}
