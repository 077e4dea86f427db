// Archives as an attacker makes them: footers and indexes whose checksums hold and whose numbers
// lie, flipped bits, cuts.
//
// Usage: forging.js ARCHIVE FOLDER COUNT writes so many into a folder.

import { readFileSync, writeFileSync } from "node:fs";
import { xxh64 } from "../archive/xxh64.js";

const view = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);

/** A function that answers one forged archive after the other. */
export function forger(good, seed = 3) {
  const own = Number(view(good).getBigUint64(good.length - 16, true));
  const segment = Number(view(good).getBigUint64(own + 128, true));
  const places = [[own, good.length - own], [segment, view(good).getUint32(segment + 4, true) + 8]];
  const odd = [0n, 1n, 0xffn, 0xffffn, 0x7fffffffn, 0xffffffffn, 0x7fffffffffffffffn, 0xffffffffffffffffn, BigInt(own), BigInt(good.length)];
  let state = seed;
  const next = (below) => (state = Math.imul(state, 1664525) + 1013904223 >>> 0) % below;
  let count = 0;
  return () => {
    const bytes = Buffer.from(good);
    const [start, length] = places[count++ % 2];
    for (let k = 0; k <= next(2); k++) {
      const at = start + 28 + next(length - 36 - 8);
      if (next(2)) view(bytes).setBigUint64(at, odd[next(odd.length)], true);
      else view(bytes).setUint32(at, Number(odd[next(odd.length)] & 0xffffffffn), true);
    }
    // The footer knows the segment by its checksum, which is not compared here: the segment has one
    // of its own.
    view(bytes).setBigUint64(start + length - 8, xxh64(bytes.subarray(start, start + length - 8)), true);
    return bytes;
  };
}

if (process.argv[1]?.endsWith("forging.js")) {
  const [, , archive, folder, count] = process.argv;
  const next = forger(readFileSync(archive), 11);
  for (let i = 0; i < Number(count); i++) writeFileSync(`${folder}/forged-${i}.car.zst`, next());
}
