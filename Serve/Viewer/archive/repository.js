// The repository of a snapshot: from the commit down the tree to its records, each block compared with its CID.

import { BlockTable } from "./blocks.js";
import { decode } from "./cbor.js";
import { CID, Malformed } from "./cid.js";

const MAXIMUM_KEY = 1024;
const latin = new TextDecoder("utf-8");

/** The records of a snapshot. Invariant: `paths` ascends; record i is block `places[i]` of the table, or missing (-1). */
export class Repository {
  /** Reads a snapshot's repository, all of it but the blobs; `table` may have blocks of other snapshots. */
  static async read(archive, manifest, progress = () => {}, table = new BlockTable()) {
    const repository = new Repository();
    Object.assign(repository, { archive, manifest, table, paths: [], problems: [], places: [] });
    await archive.load(await archive.order(manifest), table, progress);
    await repository.walk();
    return repository;
  }

  /** The number of a block that is there and hashes to its CID; -1 without. */
  async intact(cid) {
    const number = this.table.find(cid.bytes);
    if (number >= 0 && this.table.matches(number) !== false) return number;
    // It may have been written again, behind the one that the order names.
    const body = await this.archive.body(cid.bytes);
    if (!body) return -1;
    const content = new Uint8Array(cid.bytes.length + body.length);
    content.set(cid.bytes);
    content.set(body, cid.bytes.length);
    const again = this.table.add(content, 0, cid.bytes.length, content.length);
    this.table.isChecked[again] = 1;
    return again;
  }

  async walk() {
    const root = await this.intact(this.manifest.commit);
    if (root < 0) throw new Malformed("the commit is damaged or lost");
    this.commit = decode(this.table.bytes(root));
    if (this.commit?.did !== this.manifest.did || !(this.commit.data instanceof CID)) {
      throw new Malformed("the commit is not one of this account");
    }
    let [nodes, last] = [0, ""];
    // What is still to be done, the next last: a node to enter, or a record.
    const open = [{ node: this.commit.data }];
    while (open.length) {
      const { node, path, record } = open.pop();
      if (node) {
        if (++nodes > this.table.count + 1) throw new Malformed("the tree of records has no end");
        const number = await this.intact(node);
        if (number < 0) {
          this.problems.push("a part of the tree is damaged or lost; the records in it are not shown");
          continue;
        }
        this.enter(decode(this.table.bytes(number)), open);
      } else {
        if (path <= last) throw new Malformed("the tree of records is not in order");
        last = path;
        this.paths.push(path);
        this.places.push(this.quick(record) ?? await this.intact(record));
      }
    }
  }

  /** What nearly every record needs: it is in the table, and intact. */
  quick(cid) {
    const number = this.table.find(cid.bytes);
    return number >= 0 && this.table.matches(number) !== false ? number : null;
  }

  enter(node, open) {
    if (!Array.isArray(node?.e) || !(node.l === null || node.l instanceof CID)) throw new Malformed("a tree node is none");
    const steps = [];
    if (node.l) steps.push({ node: node.l });
    let key = new Uint8Array(0);
    for (const { p, k, v, t } of node.e) {
      if (!(k instanceof Uint8Array) || !(v instanceof CID) || !(p >= 0 && p <= key.length) || p + k.length > MAXIMUM_KEY) {
        throw new Malformed("a tree node is none");
      }
      const whole = new Uint8Array(p + k.length);
      whole.set(key.subarray(0, p));
      whole.set(k, p);
      key = whole;
      steps.push({ path: latin.decode(key), record: v });
      if (t instanceof CID) steps.push({ node: t });
    }
    for (let i = steps.length - 1; i >= 0; i--) open.push(steps[i]);
  }

  /** The place of a path among the records; -1 if there is none. */
  indexOf(path) {
    const place = this.lowerBound(path);
    return this.paths[place] === path ? place : -1;
  }

  /** The first record whose path is not before this one. */
  lowerBound(path) {
    let [low, high] = [0, this.paths.length];
    while (low < high) {
      const middle = low + high >> 1;
      if (this.paths[middle] < path) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The records of a collection: from where to where. */
  collection(name) {
    return [this.lowerBound(`${name}/`), this.lowerBound(`${name}0`)];
  }

  /** What a record says; null for one that is damaged, or cannot be read. */
  value(i) {
    if (this.places[i] < 0) return null;
    try {
      return decode(this.table.bytes(this.places[i]));
    } catch {
      return null;
    }
  }

  /** The CID of a record, as text; null for one that is lost. */
  cid(i) {
    return this.places[i] < 0 ? null : new CID(this.table.cid(this.places[i])).text;
  }
}
