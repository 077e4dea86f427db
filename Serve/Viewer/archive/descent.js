// The way down the tree to a few records, before all of it is read: to one path, and to the last
// records of a collection.
//
// Only the frames on the way are read, into a table from which the whole repository is read
// afterwards. Each block is compared with its CID; whether the tree keeps its rules is found out by
// `Repository` later.

import { decode } from "./cbor.js";
import { CID, Malformed } from "./cid.js";

/**
 * No tree of 128 layers needs more nodes on one way; and no more nodes are looked at before the
 * whole is read.
 */
const [DEEPEST, MAXIMUM_NODES] = [130, 4000];
/** How many records of a node are read at once. */
const AT_ONCE = 8;

/** A tree of records whose blocks are fetched as they are needed. */
export class Descent {
  /** The tree of a snapshot; `table` receives what is read. */
  constructor(archive, manifest, table) {
    this.archive = archive;
    this.manifest = manifest;
    this.table = table;
    this.nodes = 0;
  }

  /** Reads the frames in which blocks lie, together. */
  async fetch(cids) {
    const absent = cids.filter((cid) => this.table.find(cid.bytes) < 0);
    await this.archive.load(absent.flatMap((cid) => this.archive.ordinals(cid.bytes).slice(0, 1)), this.table);
  }

  /**
   * What a block says, compared with its CID; throws `Malformed` for one that is not at hand or
   * does not hold.
   */
  value(cid) {
    const number = this.table.find(cid.bytes);
    if (number < 0 || !this.table.matches(number)) throw new Malformed(`the block ${cid.text} is not at hand`);
    return decode(this.table.bytes(number));
  }

  /** The commit's tree: the CID of its root. */
  async root() {
    await this.fetch([this.manifest.commit]);
    const { data } = this.value(this.manifest.commit) ?? {};
    if (!(data instanceof CID)) throw new Malformed("the root of the tree is not a commit");
    return data;
  }

  /** A node: {left, entries: [{key, value, right}]}. */
  async node(cid) {
    if (++this.nodes > MAXIMUM_NODES) throw new Malformed("too many nodes were looked at");
    await this.fetch([cid]);
    const { e, l } = this.value(cid) ?? {};
    if (!Array.isArray(e)) throw new Malformed("a block is not a tree node");
    let key = "";
    const entries = e.map((entry) => {
      if (!(entry?.k instanceof Uint8Array) || !(entry.v instanceof CID) || !(entry.p <= key.length)) throw new Malformed("a block is not a tree node");
      key = key.slice(0, entry.p) + String.fromCharCode(...entry.k.subarray(0, 1024));
      return { key, value: entry.v, right: entry.t instanceof CID ? entry.t : null };
    });
    return { left: l instanceof CID ? l : null, entries };
  }

  /** The record of a path: {path, cid, value}; null if there is none. */
  async at(path) {
    let next = await this.root();
    for (let depth = 0; next; depth++) {
      if (depth > DEEPEST) throw new Malformed("the tree is deeper than any valid tree");
      const { left, entries } = await this.node(next);
      const i = entries.findIndex(({ key }) => key >= path);
      if (i >= 0 && entries[i].key === path) return this.record(entries[i]);
      const before = i < 0 ? entries.length : i;
      next = before === 0 ? left : entries[before - 1].right;
    }
    return null;
  }

  async record({ key, value }) {
    await this.fetch([value]);
    return { path: key, cid: value.text, value: this.value(value) };
  }

  /** The records of a collection, the last key first: {path, cid, value}. */
  async *backwards(collection) {
    const [from, to] = [`${collection}/`, `${collection}0`];
    // On the stack are nodes with the place that comes next: above 0 the entry before it, at 0 what
    // is left of all.
    const stack = [];
    const enter = async (cid) => {
      if (stack.length > DEEPEST) throw new Malformed("the tree is deeper than any valid tree");
      const node = await this.node(cid);
      const end = node.entries.findIndex(({ key }) => key >= to);
      const at = end < 0 ? node.entries.length : end;
      const own = node.entries.slice(Math.max(0, at - AT_ONCE), at).filter(({ key }) => key > from);
      await this.fetch(own.map(({ value }) => value));
      stack.push({ node, at, isBelow: true });
    };
    await enter(await this.root());
    while (stack.length) {
      const top = stack.at(-1);
      const entry = top.node.entries[top.at - 1];
      if (top.isBelow) {
        top.isBelow = false;
        const below = entry ? entry.right : top.node.left;
        if (below) await enter(below);
        continue;
      }
      if (!entry) {
        stack.pop();
        continue;
      }
      if (entry.key <= from) return;
      top.at--;
      top.isBelow = true;
      yield this.record(entry);
    }
  }
}
