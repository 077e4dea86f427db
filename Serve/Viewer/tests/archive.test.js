import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { File } from "node:buffer";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import test from "node:test";
import { Archive } from "../archive/archive.js";
import { CID } from "../archive/cid.js";
import { Repository } from "../archive/repository.js";
import { Digest, sha256 } from "../archive/sha256.js";
import { FileSource } from "../archive/source.js";
import { xxh64 } from "../archive/xxh64.js";
import { forger } from "./forging.js";

const root = new URL("../../../", import.meta.url).pathname;
const carpack = process.env.CARPACK_BIN ?? `${root}.build/release/carpack`;
const source = (bytes) => new FileSource(new File([bytes], "a.car.zst"));
// Some of the archives lack blobs, which the exit status says.
const run = (...args) => spawnSync(carpack, args, { maxBuffer: 1 << 28 }).stdout.toString();

test("digests are those of others", () => {
  for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 1000, 100000]) {
    const bytes = Uint8Array.from({ length }, (_, i) => i * 7 + (i >> 8));
    assert.deepEqual(Buffer.from(sha256(bytes)), createHash("sha256").update(bytes).digest());
  }
  assert.equal(xxh64(new Uint8Array(0)), 0xef46db3751d8e999n);
  assert.equal(xxh64(Buffer.from("abc")), 0x44bc2cf5ad770999n);
});

test("a digest of pieces is that of the whole, also when others are made in between", () => {
  for (const length of [0, 1, 55, 63, 64, 65, 127, 128, 1000]) {
    const bytes = Uint8Array.from({ length }, (_, i) => i * 7 + (i >> 8));
    const digest = createHash("sha256").update(bytes).digest();
    for (const piece of [1, 7, 63, 64, 65, 500]) {
      const [one, other] = [new Digest(), new Digest()];
      for (let at = 0; at < length; at += piece) {
        one.update(bytes, at, Math.min(length, at + piece));
        other.update(Uint8Array.of(1, 2, 3), 0, 3);
      }
      assert.ok(one.isThat(digest, { hash: 0x12, digest: 0 }), `${length} in pieces of ${piece}`);
      if (length) assert.ok(!other.isThat(digest, { hash: 0x12, digest: 0 }));
    }
  }
});

const archives = readdirSync(`${root}Fixtures/archives`).filter((name) => name.endsWith(".car.zst") && !name.includes("unknown-required"));

for (const name of archives) {
  const path = `${root}Fixtures/archives/${name}`;
  test(`${name}: every record of every snapshot is as the command reads it`, { skip: !existsSync(carpack) }, async () => {
    const archive = await Archive.open(source(readFileSync(path)));
    const history = await archive.history();
    const log = run("log", "--json", path).trim().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual(history.map(({ cid }) => cid.text).sort(), log.map(({ manifest }) => manifest).sort());
    for (const { number, manifest } of log) {
      const snapshot = history.find(({ cid }) => cid.text === manifest);
      const repository = await Repository.read(archive, snapshot);
      assert.deepEqual(repository.problems, []);
      assert.deepEqual(await repository.settle(), []);
      const listed = run("ls", "--records", "--json", "--at", String(number), path).trim().split("\n").filter(Boolean)
        .map((line) => JSON.parse(line));
      assert.equal(repository.paths.length, snapshot.counts.records);
      for (const { path: record, cid } of listed) {
        const i = repository.indexOf(record);
        assert.ok(i >= 0, record);
        assert.equal(repository.cid(i), cid);
        assert.notEqual(repository.value(i), null);
      }
    }
  });
}

test("an archive with required features that are unknown is refused", async () => {
  const bytes = readFileSync(`${root}Fixtures/archives/unknown-required.car.zst`);
  await assert.rejects(Archive.open(source(bytes)), /features/);
});

test("blobs come out as they went in, and nothing for others", { skip: !existsSync(carpack) }, async () => {
  const path = `${root}Fixtures/archives/one.car.zst`;
  const archive = await Archive.open(source(readFileSync(path)));
  const blobs = run("ls", "--blobs", "--json", path).trim().split("\n").map((line) => JSON.parse(line)).filter(({ cid }) => cid);
  assert.ok(blobs.length > 0);
  let held = 0;
  for (const { cid } of blobs) {
    const body = await archive.body(CID.parse(cid).bytes);
    if (!body) continue;
    held++;
    assert.equal(createHash("sha256").update(body).digest("hex"), Buffer.from(CID.parse(cid).bytes.subarray(4)).toString("hex"));
  }
  assert.ok(held > 0);
  assert.equal(await archive.body(CID.parse("bafkreiat7v5hiqxt4vtxukqrqqsar5ce2slonr37aeimgrha34ygxy6zua").bytes), null);
});

test("a pack is read once for all that is asked of it, and again if that failed", async () => {
  const archive = await Archive.open(source(readFileSync(`${root}Fixtures/archives/one.car.zst`)));
  const { cid } = await archive.newest();
  const { read } = archive.source;
  archive.last = null;
  archive.source.read = () => Promise.reject(new Error("gone"));
  await assert.rejects(archive.body(cid.bytes), /gone/);
  let reads = 0;
  archive.source.read = (...range) => read.apply(archive.source, range).finally(() => reads++);
  const bodies = await Promise.all([1, 2, 3].map(() => archive.body(cid.bytes)));
  assert.ok(bodies.every(Boolean));
  assert.ok(await archive.body(cid.bytes));
  assert.equal(reads, 1);
});

test("a record that does not hold is never given out, and is looked for elsewhere", async () => {
  const bytes = readFileSync(`${root}Fixtures/archives/one.car.zst`);
  const archive = await Archive.open(source(bytes));
  const repository = await Repository.read(archive, await archive.newest());
  const [number] = repository.places;
  const { table } = repository;
  const content = table.bytes(number);
  const good = content[5];
  content[5] ^= 1;
  table.isChecked[number] = 0;
  assert.equal(repository.value(0), null);
  assert.equal(repository.cid(0), null);
  // It is read from the archive again, where it is as it was.
  assert.deepEqual(await repository.settle(), []);
  assert.notEqual(repository.value(0), null);
  content[5] = good;
});

test("a damaged archive gives an error or what is intact of it, and never another record", async () => {
  const path = `${root}Fixtures/archives/one.car.zst`;
  const good = readFileSync(path);
  const expected = await Repository.read(await Archive.open(source(good)), await (await Archive.open(source(good))).newest());
  let refused = 0;
  for (let i = 0; i < 300; i++) {
    const bytes = Buffer.from(i % 5 ? good : good.subarray(0, good.length - i * 17 % good.length));
    if (i % 5) for (let k = 0; k < 1 + i % 3; k++) bytes[(i * 7919 + k * 104729) % bytes.length] ^= 1 + i % 255;
    try {
      const archive = await Archive.open(source(bytes));
      const newest = await archive.newest();
      if (!newest) continue;
      const repository = await Repository.read(archive, newest);
      [...repository.paths].forEach((record, place) => {
        const cid = repository.cid(place);
        const at = expected.indexOf(record);
        if (newest.commit.text === expected.manifest.commit.text && cid) assert.equal(cid, expected.cid(at));
      });
    } catch (error) {
      assert.ok(error instanceof Error && !(error instanceof TypeError || error instanceof RangeError), error.stack);
      refused++;
    }
  }
  assert.ok(refused > 0 && refused < 300, `${refused}`);
});

test("forged footers and indexes, whose checksums hold, give an error at once or what is there", { timeout: 300_000 }, async () => {
  const next = forger(readFileSync(`${root}Fixtures/archives/several.car.zst`));
  let shown = 0;
  for (let i = 0; i < 600; i++) {
    const bytes = next();
    const begun = performance.now();
    try {
      const archive = await Archive.open(source(bytes));
      const newest = await archive.newest();
      if (newest) {
        await (await Repository.read(archive, newest)).settle();
        shown++;
      }
    } catch (error) {
      assert.ok(error instanceof Error && !(error instanceof TypeError), error.stack);
      assert.ok(!/allocation|Invalid array length/i.test(error.message), error.stack);
    }
    assert.ok(performance.now() - begun < 3000, `case ${i}`);
  }
  assert.ok(shown < 600);
});
