import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import { eachLeft, rawContent } from "../archive/remains.js";
import { xxh64 } from "../archive/xxh64.js";

const magic = Buffer.from("f09f9a97f09f93a6fec98ae5b1d79c83", "hex");
const random = (length, seed) => Buffer.concat(
  Array.from({ length: Math.ceil(length / 32) }, (_, i) => createHash("sha256").update(`${seed} ${i}`).digest())).subarray(0, length);

function varint(value) {
  const bytes = [];
  for (; value > 127; value >>= 7) bytes.push(value & 127 | 128);
  return Buffer.from([...bytes, value]);
}

const section = (body) => Buffer.concat([
  varint(36 + body.length), Buffer.from([1, 0x55, 0x12, 0x20]), createHash("sha256").update(body).digest(), body]);

/** A raw frame (FORMAT 3.1, 3.3, A.1). */
function frame(content) {
  const [size, head] = content.length < 256 ? [content.length, [0x24]] : content.length < 65792 ? [content.length - 256, [0x64]] : [content.length, [0xa4]];
  const parts = [Buffer.from([0x28, 0xb5, 0x2f, 0xfd, ...head, size & 255, ...(head[0] > 0x24 ? [size >> 8 & 255] : []), ...(head[0] > 0x64 ? [size >> 16, 0] : [])])];
  for (let at = 0; at < content.length;) {
    const found = content.indexOf(magic, Math.max(0, at - 7));
    const end = Math.min(at + (1 << 17), found < 0 ? Infinity : found + 8, content.length);
    const header = end - at << 3 | (end === content.length ? 1 : 0);
    parts.push(Buffer.from([header & 255, header >> 8 & 255, header >> 16]), content.subarray(at, end));
    at = end;
  }
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32LE(Number(xxh64(content) & 0xffffffffn));
  return Buffer.concat([...parts, checksum]);
}

const bodies = (content) => {
  const found = [];
  eachLeft(content, (start, end) => found.push(Buffer.from(content.subarray(start + 36, end)).toString("hex")));
  return found;
};

test("the content of a raw frame comes out, whatever its headers say", () => {
  for (const content of [random(100, 1), random(3000, 2), random(300000, 3), Buffer.concat([random(500, 4), magic, random(200000, 5), magic, magic])]) {
    const stored = frame(content);
    assert.deepEqual(rawContent(stored), { content: new Uint8Array(content), holds: true });
    for (const at of [0, 4, 5, 6, 7, 8, 9, 10, 11]) {
      const bytes = Buffer.from(stored);
      bytes[at] ^= 0x5a;
      const found = rawContent(bytes);
      const isContent = at >= stored.length - 4 - content.length;
      assert.ok(isContent || found.holds && content.equals(found.content), `byte ${at}`);
    }
  }
});

test("sections come back whose lengths, or whose neighbours, are damaged", () => {
  const all = [random(90, 6), random(0, 7), random(700, 8), random(3000, 9), random(20, 10)];
  const content = Buffer.concat(all.map(section));
  assert.deepEqual(bodies(content), all.map((body) => body.toString("hex")));
  let place = 0;
  for (const [i, body] of all.entries()) {
    const width = varint(36 + body.length).length;
    for (let at = 0; at < width + 36 + body.length; at += at < width ? 1 : 13) {
      const bytes = Buffer.from(content);
      bytes[place + at] ^= 0x81;
      const left = all.filter((_, k) => k !== i || at < width);
      assert.deepEqual(bodies(bytes), left.map((body) => body.toString("hex")), `section ${i}, byte ${at}`);
    }
    place += width + 36 + body.length;
  }
});
