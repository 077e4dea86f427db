// The repository of a snapshot: from the commit down the tree to its records, each block compared with its CID.

import { BlockTable } from "./blocks.js";
import { decode, hasKey } from "./cbor.js";
import { CID, Malformed } from "./cid.js";

const MAXIMUM_KEY = 1024;
/** What stands in front of the CID in a link: tag 42, a byte string of 37 bytes, and the prefix. */
const LINK = [0xd8, 0x2a, 0x58, 0x25, 0];
/** The length of a CID of version 1 with a SHA-256. */
const CID_LENGTH = 36;
const IS_ASCII = /^[\x00-\x7f]*$/;

/** How many records are compared with their CIDs before others may ask. */
const SETTLED_AT_ONCE = 4000;

/**
 * The records of a snapshot.
 *
 * 1. `paths` ascends; record i is block `places[i]` of the table, or missing (-1).
 * 2. Every tree node was compared with its CID before it was read. A record is compared before it is given out, and
 *    all of them by `settle`, which comes after the first ones are on the page.
 */
export class Repository {
  /** Reads a snapshot's repository, all of it but the blobs; `table` may have blocks of other snapshots. */
  static async read(archive, manifest, progress = () => {}, table = new BlockTable()) {
    const repository = new Repository();
    Object.assign(repository, { archive, manifest, table, paths: [], problems: [], places: [] });
    const order = await archive.order(manifest);
    table.reserve(Math.min(order.length, archive.footer.sections) + 1024);
    await archive.load(order, table, progress);
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
    const way = { open: [], nodes: 0, last: "" };
    this.enter(way, await this.intact(this.commit.data));
    for (let missing = this.follow(way); missing; missing = this.follow(way)) {
      const number = await this.intact(missing.cid);
      if (missing.isNode) this.enter(way, number);
      else this.take(missing.key, number);
    }
  }

  enter(way, number) {
    if (++way.nodes > this.table.count + 1) throw new Malformed("the tree of records has no end");
    if (number >= 0) way.open.push(new NodeReader(...this.table.place(number)));
    else this.problems.push("a part of the tree is damaged or lost; the records in it are not shown");
  }

  take(key, number) {
    this.paths.push(IS_ASCII.test(key) ? key : textOf(key));
    this.places.push(number);
  }

  /** Goes on through the tree until its end, or until something is not at hand, which it answers: only that takes a wait. */
  follow(way) {
    const { open } = way;
    const { table } = this;
    while (open.length) {
      const node = open[open.length - 1];
      const step = node.next();
      if (step === END) {
        open.pop();
        continue;
      }
      const { bytes, link, key } = node;
      const number = table.find(bytes, link, link + CID_LENGTH);
      const isNode = step === SUBTREE;
      if (!isNode) {
        if (key <= way.last) throw new Malformed("the tree of records is not in order");
        way.last = key;
      }
      if (isNode ? !this.isIntact(number) : number < 0) return { isNode, key, cid: new CID(bytes.slice(link, link + CID_LENGTH)) };
      if (isNode) this.enter(way, number);
      else this.take(key, number);
    }
    return null;
  }

  /** Compares all records with their CIDs, and looks elsewhere for those that do not hold; answers how many are lost. */
  async settle(progress = () => {}) {
    let lost = 0;
    for (let i = this.places.length - 1; i >= 0; i--) {
      const number = this.places[i];
      if (number >= 0 && !this.isIntact(number)) this.places[i] = await this.intact(new CID(this.table.cid(number)));
      if (this.places[i] < 0) lost++;
      if (i % SETTLED_AT_ONCE === 0) {
        progress(this.places.length - i, this.places.length);
        await new Promise((resolve) => setTimeout(resolve));
      }
    }
    return lost;
  }

  isIntact(number) {
    return number >= 0 && this.table.matches(number) !== false;
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
    if (!this.isIntact(this.places[i])) return null;
    try {
      return decode(this.table.bytes(this.places[i]));
    } catch {
      return null;
    }
  }

  /** Whether a record has a field; it need not have been compared with its CID. */
  hasKey(i, name) {
    if (this.places[i] < 0) return false;
    const bytes = this.table.bytes(this.places[i]);
    try {
      return hasKey(bytes, 0, bytes.length, name);
    } catch {
      return false;
    }
  }

  /** The CID of a record, as text; null for one that is lost. */
  cid(i) {
    return !this.isIntact(this.places[i]) ? null : new CID(this.table.cid(this.places[i])).text;
  }
}

/** What comes next in a node: no more; a subtree, whose link is at `link`; or a record with a key. */
const [END, SUBTREE, RECORD] = [0, 1, 2];

/**
 * Reads a tree node, step by step, without making values of it: {"e": [{"k": bytes, "p": number, "t": link or null,
 * "v": link}], "l": link or null}, which DAG-CBOR writes in one way only. What `l` leads to comes first.
 */
class NodeReader {
  /** A node that lies in `bytes` from `start` up to `end`. */
  constructor(bytes, start, end) {
    [this.bytes, this.at, this.stop, this.key, this.link, this.below] = [bytes, start, end, "", 0, -1];
    const tail = bytes[end - 1] === 0xf6 && bytes[end - 3] === 0x61 && bytes[end - 2] === 0x6c ? 1 : LINK.length + CID_LENGTH;
    this.end = end - tail - 2;
    if (this.end < start + 4 || bytes[this.end] !== 0x61 || bytes[this.end + 1] !== 0x6c) this.fail();
    this.expect(0xa2, 0x61, 0x65);
    this.left = this.number(4);
    if (tail > 1) this.below = this.linkAt(this.end + 2);
  }

  next() {
    if (this.below >= 0) {
      [this.link, this.below] = [this.below, -1];
      return SUBTREE;
    }
    if (this.left-- === 0) {
      if (this.at !== this.end) this.fail();
      return END;
    }
    const { bytes } = this;
    this.expect(0xa4, 0x61, 0x6b);
    const length = this.number(2);
    const start = this.at;
    this.at += length;
    this.expect(0x61, 0x70);
    const shared = this.number(0);
    if (this.at > this.stop || length > MAXIMUM_KEY || shared > this.key.length || shared + length > MAXIMUM_KEY) this.fail();
    const suffix = String.fromCharCode.apply(null, bytes.subarray(start, start + length));
    this.key = shared ? this.key.slice(0, shared) + suffix : suffix;
    this.expect(0x61, 0x74);
    if (bytes[this.at] === 0xf6) {
      this.at++;
    } else {
      this.below = this.linkAt(this.at);
      this.at = this.below + CID_LENGTH;
    }
    this.expect(0x61, 0x76);
    this.link = this.linkAt(this.at);
    this.at = this.link + CID_LENGTH;
    return RECORD;
  }

  /** Where the CID of the link is that begins here. */
  linkAt(at) {
    for (let i = 0; i < LINK.length; i++) if (this.bytes[at + i] !== LINK[i]) this.fail();
    if (at + LINK.length + CID_LENGTH > this.stop) this.fail();
    return at + LINK.length;
  }

  expect(one, two, three) {
    const { bytes } = this;
    if (bytes[this.at++] !== one || bytes[this.at++] !== two || (three !== undefined && bytes[this.at++] !== three)) this.fail();
  }

  number(major) {
    const head = this.bytes[this.at++];
    if (head >> 5 !== major) this.fail();
    if ((head & 31) < 24) return head & 31;
    if ((head & 31) > 26) this.fail();
    let value = 0;
    for (let left = 1 << (head & 31) - 24; left > 0; left--) value = value * 256 + (this.bytes[this.at++] ?? this.fail());
    return value;
  }

  fail() {
    throw new Malformed("a tree node is none");
  }
}

/** A key that is not all ASCII as text: each character of it stands for a byte. */
function textOf(key) {
  return new TextDecoder().decode(Uint8Array.from(key, (char) => char.charCodeAt(0)));
}
