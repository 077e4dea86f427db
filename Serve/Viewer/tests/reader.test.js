import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { File } from "node:buffer";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { CID, openArchive, prove, Repository } from "../archive/carpack-reader.js";

const root = new URL("../../../", import.meta.url).pathname;

test("the reader is a module of its own: it opens, reads and proves", async () => {
  const [archive] = await openArchive(new File([readFileSync(`${root}Fixtures/archives/one.car.zst`)], "one.car.zst"));
  const [newest] = await archive.history();
  const repository = await Repository.read(archive, newest);
  assert.equal(repository.paths.length, 3);
  assert.equal(repository.value(repository.indexOf("app.bsky.actor.profile/self")).displayName, "Bob");
  const { avatar } = repository.value(0);
  assert.equal((await archive.body(CID.parse(avatar.ref.text).bytes)).length, avatar.size);
  let last;
  await prove(archive, repository, (found) => { last = found; });
  assert.equal(last.verdict, "incomplete");
});

test("no module of the reader knows a document", () => {
  for (const folder of ["archive", "account"]) {
    for (const name of readdirSync(`${root}Serve/Viewer/${folder}`)) {
      const source = readFileSync(`${root}Serve/Viewer/${folder}/${name}`, "utf8").replace(/^ *(\/\/|\/?\*).*$/gm, "");
      assert.ok(!/\b(document\.(body|head|create|querySelector|getElement)|window\.|localStorage|innerHTML|HTMLElement|navigator)/.test(source), `${folder}/${name}`);
    }
  }
});

test("each module begins with a line that says what it is for", () => {
  for (const name of readdirSync(`${root}Serve/Viewer`, { recursive: true }).filter((one) => /^(archive|account|page)\/|^worker/.test(one) && one.endsWith(".js"))) {
    assert.match(readFileSync(`${root}Serve/Viewer/${name}`, "utf8"), /^(\/\/ [A-Z]|\/\*\*\n \* [A-Z])/, name);
  }
});

const tsc = spawnSync("tsc", ["--version"], { encoding: "utf8" });

test("names, types and imports are right, by TypeScript", { skip: tsc.error !== undefined }, () => {
  const found = spawnSync("tsc", ["-p", `${root}Serve/Viewer`, "--pretty", "false"], { encoding: "utf8" }).stdout.split("\n").filter(Boolean);
  // Of types other versions may say more than 4.8, which Debian has; of names and imports all say
  // the same.
  const isOfNames = (line) => /error TS(1\d{3}|2304|2305|2307|2451|2552|2614):/.test(line);
  assert.deepEqual(tsc.stdout.startsWith("Version 4.") ? found : found.filter(isOfNames), []);
});
