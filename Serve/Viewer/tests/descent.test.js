import assert from "node:assert/strict";
import { File } from "node:buffer";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Archive } from "../archive/archive.js";
import { BlockTable } from "../archive/blocks.js";
import { Malformed } from "../archive/cid.js";
import { Descent } from "../archive/descent.js";
import { Repository } from "../archive/repository.js";
import { FileSource } from "../archive/source.js";

const root = new URL("../../../", import.meta.url).pathname;
const source = (bytes) => new FileSource(new File([bytes], "a.car.zst"));

test("the way down finds what the whole tree has, from the last record to the first", async () => {
  for (const name of ["one", "several"]) {
    const archive = await Archive.open(source(readFileSync(`${root}Fixtures/archives/${name}.car.zst`)));
    for (const manifest of await archive.history()) {
      const repository = await Repository.read(archive, manifest);
      const paths = [...repository.paths];
      for (const collection of new Set(paths.map((path) => path.split("/")[0]))) {
        const table = new BlockTable();
        const found = [];
        for await (const record of new Descent(archive, manifest, table).backwards(collection)) {
          assert.equal(record.cid, repository.cid(repository.indexOf(record.path)));
          assert.deepEqual(record.value, repository.value(repository.indexOf(record.path)));
          found.push(record.path);
        }
        assert.deepEqual(found, paths.filter((path) => path.startsWith(`${collection}/`)).reverse());
        // What was read on the way is part of the whole.
        assert.deepEqual([...(await Repository.read(archive, manifest, () => {}, table)).paths], paths);
      }
      const descent = new Descent(archive, manifest, new BlockTable());
      for (const path of paths) assert.equal((await descent.at(path)).path, path);
      for (const path of ["", "app.bsky.feed.post/", "zz.zz/zz", `${paths[0]}0`]) assert.equal(await descent.at(path), null);
      for await (const record of descent.backwards("app.bsky.feed")) assert.fail(record.path);
    }
  }
});

test("the way down through a damaged archive gives records that hold, or ends", async () => {
  const good = readFileSync(`${root}Fixtures/archives/several.car.zst`);
  let ended = 0;
  for (let i = 0; i < 120; i++) {
    const bytes = Buffer.from(good);
    for (let k = 0; k < 1 + i % 3; k++) bytes[(i * 7919 + k * 104729) % bytes.length] ^= 1 + i % 255;
    try {
      const archive = await Archive.open(source(bytes));
      const table = new BlockTable();
      for await (const { cid } of new Descent(archive, await archive.newest(), table).backwards("app.bsky.feed.post")) assert.ok(cid);
    } catch (error) {
      assert.ok(error instanceof Malformed, error.stack);
      ended++;
    }
  }
  assert.ok(ended > 0, "nothing was damaged");
});
