// XXH64 with seed 0, for the checksums of footers and index segments, which are short.
// Source: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md

const MASK = (1n << 64n) - 1n;
const [P1, P2, P3, P4, P5] = [
  0x9e3779b185ebca87n, 0xc2b2ae3d27d4eb4fn, 0x165667b19e3779f9n, 0x85ebca77c2b2ae63n, 0x27d4eb2f165667c5n];
/** @type {(x: bigint, by: bigint) => bigint} */
const turn = (x, by) => (x << by | x >> 64n - by) & MASK;
const round = (sum, lane) => turn(sum + lane * P2 & MASK, 31n) * P1 & MASK;

/** The checksum, as a BigInt. */
export function xxh64(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  let sum = P5;
  if (bytes.length >= 32) {
    const sums = [P1 + P2 & MASK, P2, 0n, -P1 & MASK];
    for (; at + 32 <= bytes.length; at += 32) {
      for (let i = 0; i < 4; i++) sums[i] = round(sums[i], view.getBigUint64(at + 8 * i, true));
    }
    sum = turn(sums[0], 1n) + turn(sums[1], 7n) + turn(sums[2], 12n) + turn(sums[3], 18n) & MASK;
    for (const one of sums) sum = (sum ^ round(0n, one)) * P1 + P4 & MASK;
  }
  sum = sum + BigInt(bytes.length) & MASK;
  for (; at + 8 <= bytes.length; at += 8) {
    sum = turn(sum ^ round(0n, view.getBigUint64(at, true)), 27n) * P1 + P4 & MASK;
  }
  if (at + 4 <= bytes.length) {
    sum = turn(sum ^ BigInt(view.getUint32(at, true)) * P1 & MASK, 23n) * P2 + P3 & MASK;
    at += 4;
  }
  for (; at < bytes.length; at++) sum = turn(sum ^ BigInt(bytes[at]) * P5 & MASK, 11n) * P1 & MASK;
  sum = (sum ^ sum >> 33n) * P2 & MASK;
  sum = (sum ^ sum >> 29n) * P3 & MASK;
  return sum ^ sum >> 32n;
}
