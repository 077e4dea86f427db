import assert from "node:assert/strict";
import test from "node:test";
import { CID } from "../archive/cid.js";
import { readContext, readPiece } from "../archive/context.js";

// DAG-CBOR of what these tests need.
const head = (major, length) => length < 24 ? [major << 5 | length] : length < 256 ? [major << 5 | 24, length] : [major << 5 | 25, length >> 8, length & 255];
function encode(value) {
  if (typeof value === "number") return head(0, value);
  if (typeof value === "string") return [...head(3, Buffer.byteLength(value)), ...Buffer.from(value)];
  if (value instanceof CID) return [0xd8, 0x2a, ...head(2, value.bytes.length + 1), 0, ...value.bytes];
  if (value instanceof Uint8Array) return [...head(2, value.length), ...value];
  if (Array.isArray(value)) return [...head(4, value.length), ...value.flatMap(encode)];
  const entries = Object.entries(value).sort(([a], [b]) => a.length - b.length || (a < b ? -1 : 1));
  return [...head(5, entries.length), ...entries.flatMap(([key, one]) => [...encode(key), ...encode(one)])];
}

const blocks = new Map();
const archive = { body: async (bytes) => blocks.get(Buffer.from(bytes).toString("hex")) ?? null };
function put(value) {
  const cid = new CID(Uint8Array.of(1, 0x71, 0x12, 0x20, ...new Uint8Array(31), blocks.size));
  blocks.set(Buffer.from(cid.bytes).toString("hex"), Uint8Array.from(encode(value)));
  return cid;
}
const page = (...items) => ({ page: put({ carpackContext: items }), items: items.length });
const did = "did:plc:alice";
const list = (...pages) => ({ did, context: put({ did, carpackContext: { pages, pieceBytes: 0 } }) });

test("of what app views showed, the last page counts", async () => {
  const piece = put({ carpackContext: Uint8Array.of(1, 2) });
  const old = page({ person: "did:plc:b", displayName: "Old" }, { post: "at://did:plc:b/c/d", record: "{\"text\":\"words\"}", seenAt: "2026" });
  const found = await readContext(archive, list(old, page({ person: "did:plc:b", displayName: "New", handle: "b.test", avatar: { piece } })));
  assert.deepEqual(found.people.get("did:plc:b"), { handle: "b.test", name: "New", avatar: piece.text });
  assert.equal(found.posts.get("at://did:plc:b/c/d").value.text, "words");
  assert.ok(found.pieces.has(piece.text));
  assert.deepEqual([...await readPiece(archive, piece)], [1, 2]);
});

test("what is malformed of it is nothing", async () => {
  const found = await readContext(archive, list(page({ person: 7 }, 3, "x", { post: "p", record: "<html>" }), { page: 3 }, { page: new CID(Uint8Array.of(1, 0x71, 0x12, 0x20, ...new Uint8Array(31), 99)) }));
  assert.equal(found.people.size, 0);
  assert.equal(found.posts.get("p").value, null);
  await assert.rejects(readContext(archive, { did: "did:plc:other", context: list().context }));
  assert.equal((await readContext(archive, { did })).people.size, 0);
  assert.equal(await readPiece(archive, put({ carpackContext: "text" })), null);
});
