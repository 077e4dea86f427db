import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { File } from "node:buffer";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { Account } from "../account/account.js";
import { prove } from "../account/proving.js";
import { openFiles } from "../archive/opening.js";
import { Repository } from "../archive/repository.js";
import { decompressFile } from "../archive/zstd.js";

const root = new URL("../../../", import.meta.url).pathname;
const fixture = (name) => readFileSync(`${root}Fixtures/${name}`);
const notices = [];
const open = (...files) => openFiles(files, (text) => notices.push(text));
const file = (bytes, name) => new File([bytes], name);
const zstd = (bytes, ...options) => execFileSync("zstd", ["-q", "-c", ...options], { input: bytes, maxBuffer: 1 << 30 });

async function shown(archive) {
  const account = new Account(await Repository.read(archive, await archive.newest()));
  let last;
  await prove(archive, account, () => archive.history(), (found) => { last = found; });
  return { account, ...last };
}

const car = fixture("alice/alice.car");
for (const [name, bytes] of [["alice.car", car], ["alice.car.gz", gzipSync(car)], ["alice.car.zst", zstd(car)], ["fast.car.zst", zstd(car, "--fast=5")], ["no-size.car.zst", zstd(car, "-19", "--no-check")],
  ["two-frames.car.zst", Buffer.concat([zstd(car.subarray(0, 5000)), zstd(car.subarray(5000))])]]) {
  test(`a repository opens by itself: ${name}`, async () => {
    const [archive] = await open(file(bytes, name));
    const { account, verdict, levels, damage } = await shown(archive);
    assert.equal(account.repository.paths.length, 45);
    assert.equal(account.list("posts").length > 5, true);
    assert.deepEqual(damage, []);
    assert.equal(verdict, "incomplete");
    assert.equal(levels.complete.isHeld, false);
    assert.equal(levels.signed.isHeld, null);
    assert.match(notices.at(-1), /no pictures/);
  });
}

test("a CAR with its blobs, by their names or their bytes, is whole", async () => {
  const blobs = readdirSync(`${root}Fixtures/alice/blobs`).map((name) => file(fixture(`alice/blobs/${name}`), name));
  const [archive] = await open(file(car, "alice.car"), ...blobs);
  const { verdict, levels } = await shown(archive);
  assert.equal(levels.complete.isHeld, true);
  assert.equal(verdict, "signature not known");
});

test("several CARs of an account are its snapshots, several archives are several accounts", async () => {
  const [archive] = await open(file(car, "alice.car"), file(fixture("alice/alice-later.car"), "alice-later.car"));
  const history = await archive.history();
  assert.equal(history.length, 2);
  assert.ok(history[0].rev > history[1].rev);
  const later = await Repository.read(archive, history[0]);
  const earlier = await Repository.read(archive, history[1]);
  assert.notEqual(later.commit.rev, earlier.commit.rev);
  const both = await open(file(fixture("archives/one.car.zst"), "one.car.zst"), file(car, "alice.car"));
  assert.equal(both.length, 2);
  assert.notEqual((await both[0].newest()).did, (await both[1].newest()).did);
});

test("a CAR that is cut off or changed is damaged", async () => {
  for (const bytes of [car.subarray(0, -3000), Buffer.from(car).fill(0, 6000, 6040), gzipSync(car, { level: 0 }).subarray(0, -4000)]) {
    const [archive] = await open(file(bytes, "alice.car"));
    const { verdict, remains } = await shown(archive);
    assert.equal(verdict, "damaged");
    assert.ok(remains.records < 45);
  }
});

for (const [name, bytes, sentence] of [
  ["holiday.jpg", Buffer.from([0xff, 0xd8, 0xff, 0xe0, 1, 2]), /There is no account in it\..*Export my data/],
  ["empty.car", Buffer.alloc(0), /empty\.car is empty/],
  ["alice.car.zst.age", Buffer.from("age-encryption.org/v1\n-> X25519 abc\n"), /encrypted with age.*age --decrypt -o alice\.car\.zst alice\.car\.zst\.age/],
  ["alice.car.gpg", Buffer.from([0x85, 1, 0xc]), /gpg --output alice\.car --decrypt/],
  ["export.zip", Buffer.from("PK\x03\x04 and more"), /ZIP file. Unpack/],
  ["text.gz", gzipSync("no car"), /There is no account/],
  ["text.zst", zstd(Buffer.from("no car")), /There is no account/],
]) {
  test(`a sentence says what ${name} is`, () => assert.rejects(open(file(bytes, name)), sentence));
}

test("a CAR of something else is said to be one", { skip: !process.env.CARPACK_CORPUS }, async () => {
  const path = `${process.env.CARPACK_CORPUS}/car/iroh-car/testv1.car`;
  if (existsSync(path)) await assert.rejects(open(file(readFileSync(path), "testv1.car")), /not of an account's repository|There is no account|does not hold/);
});

test("frames of all forms and windows come out as they went in, and no more than is allowed", () => {
  let state = 7;
  const words = Array.from({ length: 400_000 }, () => ["carpack", "posts", "and", "pictures", "of", "an", "account", "\n"][(state = Math.imul(state, 1664525) + 1013904223 >>> 0) >>> 29]).join(" ");
  const content = Buffer.concat([Buffer.from(words), Buffer.from(words)]);
  for (const options of [["-1"], ["-19"], ["--ultra", "-22"], ["--long=27"], ["--fast=9", "--no-check"], ["--stream-size=1", "-3"].slice(1)]) {
    assert.ok(Buffer.from(decompressFile(zstd(content, ...options), 1 << 28)).equals(content), options.join(" "));
  }
  assert.throws(() => decompressFile(zstd(content), 1 << 20), /more than/);
  assert.throws(() => decompressFile(zstd(content).subarray(0, 900), 1 << 28), /does not hold/);
});
