// SHA-256 (FIPS 180-4), for blocks: `crypto.subtle` takes longer to be asked than a small block
// takes to hash, and is absent on pages that came over plain http.

const K = Int32Array.of(
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
  0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
  0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
  0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
  0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
  0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
  0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
  0xc67178f2);
const words = new Int32Array(64);
const block = new Uint8Array(128);
const BLOCK = new DataView(block.buffer);
const sum = new Int32Array(8);

function mix(bytes, at) {
  const w = words;
  for (let i = 0; i < 16; i++, at += 4) w[i] = bytes[at] << 24 | bytes[at + 1] << 16 | bytes[at + 2] << 8 | bytes[at + 3];
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15];
    const y = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + ((x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3)
      + ((y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10) | 0;
  }
  let a = sum[0], b = sum[1], c = sum[2], d = sum[3], e = sum[4], f = sum[5], g = sum[6], h = sum[7];
  for (let i = 0; i < 64; i++) {
    const one = h + ((e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7)) + (g ^ e & (f ^ g)) + K[i] + w[i] | 0;
    const two = ((a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10)) + (a & b | c & (a | b)) | 0;
    h = g;
    g = f;
    f = e;
    e = d + one | 0;
    d = c;
    c = b;
    b = a;
    a = one + two | 0;
  }
  sum[0] += a;
  sum[1] += b;
  sum[2] += c;
  sum[3] += d;
  sum[4] += e;
  sum[5] += f;
  sum[6] += g;
  sum[7] += h;
}

const BEGINNING = Int32Array.of(
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19);

function hash(bytes, start, end) {
  sum.set(BEGINNING);
  let at = start;
  for (; at + 64 <= end; at += 64) mix(bytes, at);
  finish(bytes, at, end, end - start);
}

/** Mixes in the last bytes, fewer than 64, and the length of all. */
function finish(bytes, at, end, length) {
  const rest = end - at;
  block.fill(0);
  for (let i = 0; i < rest; i++) block[i] = bytes[at + i];
  block[rest] = 0x80;
  const size = rest < 56 ? 64 : 128;
  BLOCK.setUint32(size - 8, Math.floor(length / 0x20000000));
  BLOCK.setUint32(size - 4, length << 3 >>> 0);
  mix(block, 0);
  if (size === 128) mix(block, 64);
}

/** The digest of `bytes` from `start` up to `end`. */
export function sha256(bytes, start = 0, end = bytes.length) {
  hash(bytes, start, end);
  const digest = new Uint8Array(32);
  const view = new DataView(digest.buffer);
  for (let i = 0; i < 8; i++) view.setInt32(4 * i, sum[i]);
  return digest;
}

/** The digest of bytes that come in pieces, between which others may be hashed. */
export class Digest {
  constructor() {
    this.sum = BEGINNING.slice();
    this.rest = new Uint8Array(64);
    this.left = 0;
    this.length = 0;
  }

  update(bytes, start, end) {
    sum.set(this.sum);
    this.length += end - start;
    let at = start;
    if (this.left) {
      const taken = Math.min(64 - this.left, end - at);
      this.rest.set(bytes.subarray(at, at + taken), this.left);
      at += taken;
      if ((this.left += taken) === 64) {
        mix(this.rest, 0);
        this.left = 0;
      }
    }
    for (; at + 64 <= end; at += 64) mix(bytes, at);
    if (at < end) {
      this.rest.set(bytes.subarray(at, end));
      this.left = end - at;
    }
    this.sum.set(sum);
  }

  /** Whether it is the digest of a CID, of which `cidAt` says the parts. */
  isThat(cid, { hash: name, digest }) {
    if (name !== 0x12) return true;
    sum.set(this.sum);
    finish(this.rest, 0, this.left, this.length);
    return isSum(cid, digest);
  }
}

/** How many zero bits the digest of `bytes` from `start` up to `end` begins with. */
export function leadingZeros(bytes, start, end) {
  hash(bytes, start, end);
  let zeros = 0;
  for (const word of sum) {
    zeros += Math.clz32(word);
    if (word !== 0) break;
  }
  return zeros;
}

/** Whether bytes have the digest that stands at `place` of `digests`. */
export function hasDigest(bytes, start, end, digests, place) {
  hash(bytes, start, end);
  return isSum(digests, place);
}

/** Whether the digest that was made last stands at `place`. */
function isSum(digests, place) {
  for (let i = 0; i < 8; i++, place += 4) {
    if (sum[i] !== (digests[place] << 24 | digests[place + 1] << 16 | digests[place + 2] << 8 | digests[place + 3])) return false;
  }
  return true;
}
