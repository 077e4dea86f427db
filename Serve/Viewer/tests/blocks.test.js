import assert from "node:assert/strict";
import test from "node:test";
import { BlockTable } from "../archive/blocks.js";
import { decode, decodeSome } from "../archive/cbor.js";
import { CID } from "../archive/cid.js";
import { sha256 } from "../archive/sha256.js";

/** A page of sections with these bodies. */
function page(bodies) {
  const parts = bodies.map((body) => [36 + body.length, 1, 0x71, 0x12, 0x20, ...sha256(Uint8Array.from(body)), ...body]);
  return Uint8Array.from(parts.flat());
}

const bodies = (from, to) => Array.from({ length: to - from }, (_, i) => new Array(1 + (from + i) % 50).fill(from + i));

test("of blocks that are not kept only the CIDs stay, and the others keep every byte", () => {
  const table = new BlockTable();
  const all = [...bodies(0, 20), ...bodies(20, 40), ...bodies(40, 60)];
  for (let i = 0; i < 60; i += 20) assert.ok(table.addPack(page(all.slice(i, i + 20))));
  // What a damaged page has is there twice, and stays as it is.
  const broken = page(bodies(60, 70)).slice(0, -1);
  assert.ok(!table.addPack(broken));
  table.addDamaged(broken);
  const cids = Array.from({ length: table.count }, (_, number) => table.cid(number));
  const isKept = (number) => number >= 20 && number % 3 > 0;
  for (let number = 0; number < table.count; number++) assert.equal(table.matches(number), true);
  const before = table.pages.map(({ length }) => length);
  table.keep([-1, ...cids.keys()].filter((number) => number < 0 || isKept(number)));
  assert.ok(table.pages[0].length < before[0] && table.pages[1].length < before[1]);
  assert.equal(table.pages[3].length, before[3]);
  for (const [number, cid] of cids.entries()) {
    assert.deepEqual(table.cid(number), cid);
    if (number < 60) assert.equal(table.find(cid), number);
    if (number < 60) assert.deepEqual([...table.bytes(number)], isKept(number) ? all[number] : []);
    if (isKept(number)) assert.deepEqual(sha256(table.bytes(number)), cid.slice(4));
  }
  // A table goes on growing afterwards.
  table.addPack(page(bodies(70, 90)));
  table.reserve(10_000);
  for (const [number, cid] of cids.entries()) if (number < 60) assert.equal(table.find(cid), number);
  // CIDs are made again of the bodies, but only of those that were compared.
  const packed = table.pages[1].length;
  table.forgetCIDs();
  assert.equal(table.pages[1].length, packed - 36 * 13);
  for (const [number, cid] of cids.entries()) {
    assert.deepEqual(table.cid(number), cid);
    assert.equal(table.matches(number), true);
    if (number < 60) assert.deepEqual([...table.bytes(number)], isKept(number) ? all[number] : []);
  }
  for (let number = cids.length; number < table.count; number++) assert.deepEqual(sha256(table.bytes(number)), table.cid(number).slice(4));
});

const bytes = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));
const NAMES = new Set(["a"]);
const MARKS = [[...Buffer.from("blob")]];

test("some fields of a map are what they are in all of it", () => {
  // {"a": "x", "b": [1, "é", {"c": null}], "cc": link}
  const value = bytes(`a3616161786162830162c3a9a16163f6626363d82a58250001711220${"07".repeat(32)}`);
  assert.deepEqual({ ...decodeSome(value, NAMES, MARKS) }, { a: "x" });
  assert.ok(decode(value).cc instanceof CID);
  // {"a": 1, "b": {"t": "blob"}}: what tells of a blob brings all of it.
  assert.deepEqual(Object.keys(decodeSome(bytes("a261610161 62a1617464626c6f62".replaceAll(" ", "")), NAMES, MARKS)), ["a", "b"]);
  assert.deepEqual(decodeSome(bytes("820102"), NAMES, MARKS), [1, 2]);
});

test("what is refused in all of a map is refused in a part that is left out", () => {
  const wrong = {
    "a text that is not UTF-8": "61ff", "a key that is none": "a10102", "a key that is not UTF-8": "a161ff01", "a tag": "c101", "a link without a CID": "d82a4100",
    "an undefined value": "f7", "a half float": "f93c00", "a list cut short": "8201", "an endless list": "9f01ff", "a text cut short": "6461", "too deep": `${"81".repeat(300)}01`,
    "too much": "0101", "nothing": "",
  };
  for (const [name, hex] of Object.entries(wrong)) {
    const value = bytes(`a16162${hex}`);
    assert.throws(() => decode(value), undefined, name);
    assert.throws(() => decodeSome(value, NAMES, MARKS), undefined, name);
  }
  for (const hex of ["f5", "fb3ff0000000000000", "1bffffffffffffffff", "3863", "4201ff", "80", "a0", "60", `${"81".repeat(254)}01`]) {
    const value = bytes(`a16162${hex}`);
    decode(value);
    assert.deepEqual(Object.keys(decodeSome(value, NAMES, MARKS)), []);
  }
});
