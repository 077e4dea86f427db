import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { File } from "node:buffer";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { Account } from "../account/account.js";
import { prove } from "../account/proving.js";
import { Archive } from "../archive/archive.js";
import { CID } from "../archive/cid.js";
import { LEVELS } from "../archive/proof.js";
import { Repository } from "../archive/repository.js";
import { FileSource } from "../archive/source.js";

const root = new URL("../../../", import.meta.url).pathname;
const carpack = process.env.CARPACK_BIN ?? `${root}.build/release/carpack`;
const isThere = existsSync(carpack);
const folder = mkdtempSync(join(tmpdir(), "carpack-proof-"));
after(() => rmSync(folder, { recursive: true }));

/** What the page finds out about a snapshot, step by step; `blobs` compares the blobs, too. */
async function proven(bytes, number = 0, hasBlobs = true) {
  const archive = await Archive.open(new FileSource(new File([bytes], "a.car.zst")));
  const history = await archive.history();
  const manifest = history[number];
  const steps = [];
  const account = new Account(await Repository.read(archive, manifest));
  const proof = await prove(archive, account, async () => history, (found) => steps.push(structuredClone(found)));
  if (hasBlobs) await proof.compareBlobs();
  return { ...steps.at(-1), steps, manifest };
}

/** The same by the command, which exits with other than 0 where something is wrong. */
function verified(path, manifest) {
  const { stdout } = spawnSync(carpack, ["verify", "--json", path], { maxBuffer: 1 << 28 });
  const report = JSON.parse(stdout);
  const snapshot = report.snapshots.find((one) => one.manifest === manifest);
  const levels = Object.fromEntries(snapshot.levels.map(({ level, holds, why }) => [level, { isHeld: holds, why }]));
  const isDoubtful = ["signed", "identity-proven", "continuous"].some((level) => levels[level].isHeld === false);
  return { levels, verdict: snapshot.verdict === "damaged" ? "damaged" : isDoubtful ? "not genuine" : snapshot.verdict, snapshot };
}

async function agrees(path, bytes = readFileSync(path)) {
  const found = await proven(bytes);
  const expected = verified(path, found.manifest.cid.text);
  for (const level of LEVELS) {
    assert.equal(found.levels[level].isHeld, expected.levels[level].isHeld, `${level}: ${found.levels[level].why}; expected ${expected.levels[level].why}`);
    // Which of several faults is named first is left open.
    if (expected.verdict !== "damaged") assert.equal(found.levels[level].why, expected.levels[level].why);
  }
  const word = expected.verdict === "intact" && expected.levels.signed.isHeld === null ? "signature not known" : expected.verdict;
  assert.equal(found.verdict, word);
  return found;
}

if (isThere) {
  const forged = execFileSync("python3", [`${root}Serve/Viewer/tests/forgeries.py`, carpack, folder]).toString().trim().split("\n");
  const genuine = new Set(["genuine", "genuine-by-hand", "former-key", "future-revision", "log-without-times", "document-only"]);
  for (const path of forged) {
    const name = path.split("/").at(-1).replace(".car.zst", "");
    test(`an archive with ${name.replaceAll("-", " ")} is what verify says`, async () => {
      const found = await agrees(path);
      assert.equal(found.verdict === "intact", genuine.has(name), found.verdict);
      // Nothing is green before the end.
      for (const step of found.steps.slice(0, -2)) assert.notEqual(step.verdict, "intact");
      if (name === "lost-record") assert.deepEqual(found.damage.filter((what) => what.includes("lost")), ["1 record is damaged or lost"]);
    });
  }
  for (const name of readdirSync(`${root}Fixtures/archives`).filter((one) => one.endsWith(".car.zst") && !one.includes("unknown-required"))) {
    test(`${name} is what verify says`, () => agrees(`${root}Fixtures/archives/${name}`));
  }
  test("a snapshot before which one is lost is what verify says", async () => {
    const bytes = readFileSync(`${root}Fixtures/archives/several.car.zst`);
    const archive = await Archive.open(new FileSource(new File([bytes], "a.car.zst")));
    const history = await archive.history();
    const { start, end } = archive.range(archive.frameOf(archive.ordinals(history.at(-1).cid.bytes)[0]));
    bytes[(start + end) >> 1] ^= 1;
    const path = join(folder, "lost-snapshot.car.zst");
    writeFileSync(path, bytes);
    for (const number of history.slice(0, -1).keys()) {
      const found = await proven(bytes, number, false);
      const expected = verified(path, found.manifest.cid.text).levels.continuous;
      assert.deepEqual([found.levels.continuous.isHeld, found.levels.continuous.why], [expected.isHeld, expected.why]);
    }
  });
  const corpus = process.env.CARPACK_CORPUS;
  for (const car of corpus ? readdirSync(`${corpus}/repos`, { recursive: true }).filter((one) => one.endsWith(".car") && !/malformed|v1\//.test(one)) : []) {
    const path = join(folder, `corpus-${car.replaceAll("/", "-")}.zst`);
    const { status } = spawnSync(carpack, ["pack", "-q", `${corpus}/repos/${car}`, ...identity(`${corpus}/repos/${car}`), "-o", path]);
    if (![0, 10, 12].includes(status)) continue;
    test(`${car} is what verify says`, () => agrees(path));
  }
} else {
  test("the command is not there", { skip: true }, () => {});
}

/** The DID document and log that lie beside a repository of the corpus. */
function identity(car) {
  const beside = car.slice(0, car.lastIndexOf("/"));
  const options = [];
  for (const [option, names] of [["--did-document", ["did.json"]], ["--plc-log", ["plc_audit_log.json", "bnewbold.robocracy.org.plc_audit_log.json", "wish.freakybob.site_plc.json"]]]) {
    const found = names.map((name) => `${beside}/${name}`).find((name) => existsSync(name) && (!name.includes("bnewbold") || car.includes("bnewbold")));
    if (found && statSync(found).isFile()) options.push(option, found);
  }
  return options;
}

test("a manifest whose figures lie makes the snapshot damaged", async () => {
  const bytes = readFileSync(`${root}Fixtures/archives/one.car.zst`);
  for (const change of [(one) => one.counts.records++, (one) => one.blobs.referenced++, (one) => { one.blobs.held = 99; }, (one) => { one.complete = false; }, (one) => { one.rev = "3lz4kvbgblx2c"; }]) {
    const archive = await Archive.open(new FileSource(new File([bytes], "a.car.zst")));
    const manifest = await archive.newest();
    change(manifest);
    let last;
    await prove(archive, new Account(await Repository.read(archive, manifest)), async () => [manifest], (found) => { last = found; });
    assert.equal(last.verdict, "damaged", String(change));
  }
});

test("a blob whose bytes are others makes the snapshot damaged, and one that is missing incomplete", async () => {
  const bytes = readFileSync(`${root}Fixtures/archives/one.car.zst`);
  const before = await proven(bytes);
  assert.equal(before.verdict, "incomplete");
  const archive = await Archive.open(new FileSource(new File([bytes], "a.car.zst")));
  const account = new Account(await Repository.read(archive, await archive.newest()));
  await account.index();
  const held = [...account.blobs.keys()].map((cid) => CID.parse(cid)).find(({ bytes: cid }) => archive.ordinals(cid).length > 0);
  const body = await archive.body(held.bytes);
  const at = bytes.indexOf(Buffer.from(body.subarray(8, 40)));
  if (at < 0) return;
  bytes[at + 3] ^= 1;
  const found = await proven(bytes);
  assert.equal(found.verdict, "damaged");
  assert.equal(found.levels.intact.why, "blobs are damaged");
});

test("of a damaged archive it is said how many records are left, and of which months", { skip: !isThere }, async () => {
  const source = join(folder, "alice.car.zst");
  spawnSync(carpack, ["pack", "-q", `${root}Fixtures/alice/alice.car`, "-o", source]);
  const good = readFileSync(source);
  let partial = 0;
  for (let at = 300; at < 9000; at += 411) {
    const bytes = Buffer.from(good);
    bytes[at] ^= 0x55;
    let found;
    try {
      found = await proven(bytes);
    } catch {
      continue;
    }
    if (!found.remains) continue;
    assert.equal(found.verdict, "damaged");
    assert.equal(found.remains.of, 45);
    assert.ok(found.remains.records < 45);
    if (found.remains.records > 0) partial++;
    for (const { from, to } of found.remains.months) for (const month of [from, to]) assert.ok(month === null || /^2025-/.test(month));
  }
  assert.ok(partial > 0);
});
