// The repository of a snapshot: from the commit down the tree to its records, each block compared
// with its CID.

import { BlockTable } from "./blocks.js";
import { decode, decodeSome, hasKey, without } from "./cbor.js";
import { CID, Malformed } from "./cid.js";
import { resized } from "./memory.js";
import { leadingZeros } from "./sha256.js";
import { Strings } from "./strings.js";

const MAXIMUM_KEY = 1024;
/** What stands in front of the CID in a link: tag 42, a byte string of 37 bytes, and the prefix. */
const LINK = [0xd8, 0x2a, 0x58, 0x25, 0];
/** The length of a CID of version 1 with a SHA-256. */
const CID_LENGTH = 36;
const IS_ASCII = /^[\x00-\x7f]*$/;
/** `COLLECTION/RKEY`: two segments, neither of them `.` or `..`. */
const IS_PATH = /^(?!\.{1,2}\/)[\w.:~-]+\/(?!\.{1,2}$)[\w.:~-]+$/;
/** No key lies higher: a digest has 256 bits. */
const MAXIMUM_LAYER = 128;
/** Texts that a reference to a blob has in it, in its newer or its older form. */
const MARKS_OF_BLOBS = ["blob", "mimeType"].map((word) => new TextEncoder().encode(word));

/** How many records are compared with their CIDs before others may ask. */
const SETTLED_AT_ONCE = 4000;

/**
 * The records of a snapshot.
 *
 * 1. `paths` ascends; record i is block `places[i]` of the table, or missing (-1), and stands in
 * node `owners[i]`. For each
 *    block that is a node, `levels` has one more than there are nodes above it, and 0 for the others; `leftmost` has the first
 *    node below so many others.
 * 2. Every tree node was compared with its CID before it was read. A record is compared before it
 * is given out, and
 *    all of them by `settle`, which comes after the first ones are on the page.
 * 3. `problems` says what is lost, and `gaps` behind which records; `faults` which rules the tree
 * breaks.
 */
export class Repository {
  archive; manifest; table; paths; places; owners; levels; leftmost; problems; faults; gaps; commit;
  areLayersChecked = false; isAlone = false;

  /**
   * Reads a snapshot's repository, all of it but the blobs; `table` may have blocks of other
   * snapshots.
   */
  static async read(archive, manifest, progress = (..._) => {}, table = new BlockTable()) {
    const order = await archive.order(manifest);
    const repository = new Repository();
    Object.assign(repository, {
      archive, manifest, table, paths: new Strings(order.length), places: new Int32Array(order.length),
      owners: new Int32Array(order.length), levels: new Uint8Array(1024),
      leftmost: [], problems: [], faults: [], gaps: [], commit: null,
    });
    await archive.load(order, table, progress);
    await repository.walk();
    repository.paths.finish();
    repository.resize(repository.paths.length);
    return repository;
  }

  /**
   * Gives back the memory of all blocks that are no records of it, and of the records' CIDs once
   * they were compared. Nothing else may be read into its table or from it afterwards.
   */
  keepRecords() {
    this.table.keep(this.places);
    this.isAlone = true;
  }

  /** The number of a block that is there and hashes to its CID; -1 without. */
  async intact(cid) {
    const number = this.table.find(cid.bytes);
    if (number >= 0 && this.table.matches(number) !== false) return number;
    // It may have been written again, behind the one that the order names.
    const body = await this.archive.body(cid.bytes);
    if (!body && number >= 0) this.archive.flaw(`the bytes stored for ${cid.text} do not hash to it`);
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
    if (root < 0) {
      this.lose("the commit is damaged or lost");
      return;
    }
    try {
      this.commit = readCommit(this.table.bytes(root));
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      this.lose(`the commit is malformed: ${error.message}`);
      return;
    }
    const way = { open: [], last: "" };
    for (let missing = { isNode: true, cid: this.commit.data }; missing; missing = this.follow(way)) {
      const number = await this.intact(missing.cid);
      if (missing.isNode) this.enter(way, number);
      else this.take(missing.key, number, way.open.at(-1).id);
    }
  }

  /** Enters a node, if it may stand here. */
  enter({ open }, number) {
    if (number < 0) return this.lose("tree nodes are damaged or lost, and all records below them");
    if (this.levels[number]) return this.fault("the node occurs twice in the tree", number);
    if (open.length > MAXIMUM_LAYER + 1) return this.fault("the tree is deeper than any valid tree", number);
    if (number >= this.levels.length) this.levels = resized(this.levels, Math.max(this.table.count, number + 1));
    this.levels[number] = open.length + 1;
    this.leftmost[open.length] ??= number;
    try {
      const node = new NodeReader(number, ...this.table.place(number));
      if (node.left === 0 && open.length > 0 && node.below < 0) this.fault("the node is empty", number);
      if (node.left === 0 && open.length === 0 && node.below >= 0) this.fault("the root has no keys of its own", number);
      open.push(node);
    } catch (error) {
      this.broken(number, error);
    }
  }

  /** Goes on behind a node that is none. */
  broken(number, error) {
    if (!(error instanceof Malformed)) throw error;
    this.fault(error.message, number);
    this.lose("tree nodes are not what they must be");
  }

  /** Notes that the tree breaks a rule: which, in which node, at which key. */
  fault(what, node, key) {
    const place = key === undefined ? "" : `, key ${shown(key)}`;
    this.faults.push(`the tree of records: ${what}: node ${new CID(this.table.cid(node)).text}${place}`);
  }

  /** Notes that records are lost behind the last one. */
  lose(why) {
    this.gaps.push(this.paths.length);
    this.problems.push(why);
  }

  take(key, number, owner) {
    const path = IS_ASCII.test(key) ? key : textOf(key);
    const i = this.paths.length;
    if (i === this.places.length) this.resize(Math.max(1024, Math.ceil(i * 1.4)));
    this.paths.push(path);
    this.places[i] = number;
    this.owners[i] = owner;
    if (!IS_PATH.test(path)) this.fault("the key is not a legal record path", owner, key);
  }

  /** Makes room for so many records. */
  resize(count) {
    this.places = resized(this.places, count);
    this.owners = resized(this.owners, count);
  }

  /**
   * Goes on through the tree until its end, or until something is not at hand, which it answers:
   * only that takes a wait.
   */
  follow(way) {
    const { open } = way;
    const { table } = this;
    while (open.length) {
      const node = open[open.length - 1];
      let step;
      try {
        step = node.next();
      } catch (error) {
        open.pop();
        this.broken(node.id, error);
        continue;
      }
      if (step === END) {
        open.pop();
        continue;
      }
      const { bytes, link, key } = node;
      const number = table.find(bytes, link, link + CID_LENGTH);
      if (step === SUBTREE) {
        if (!this.isIntact(number)) return { isNode: true, cid: new CID(bytes.slice(link, link + CID_LENGTH)) };
        this.enter(way, number);
        continue;
      }
      if (key <= way.last) {
        // Whatever its links say, nothing is walked twice.
        this.fault("the key does not sort after the one before it", node.id, key);
        open.pop();
        continue;
      }
      way.last = key;
      if (node.sharesMore) this.fault("the key's shared prefix has the wrong length", node.id, key);
      if (number < 0) return { isNode: false, key, cid: new CID(bytes.slice(link, link + CID_LENGTH)) };
      this.take(key, number, node.id);
    }
    return null;
  }

  /**
   * Compares all records with their CIDs, looks elsewhere for those that do not hold, and compares
   * the layer of each key with its place in the tree; answers the places of the records that are
   * lost.
   */
  async settle(pause = () => new Promise((resolve) => setTimeout(resolve))) {
    const lost = [];
    const isNew = !this.areLayersChecked;
    this.areLayersChecked = true;
    const layer = (i) => leadingZeros(this.paths.bytes, this.paths.start(i), this.paths.ends[i]) >> 1;
    const first = this.owners.findIndex((owner) => this.levels[owner] === 1);
    const top = first < 0 ? Infinity : layer(first);
    for (let i = 0; i < this.places.length; i++) {
      const number = this.places[i];
      if (number >= 0 && !this.isIntact(number)) this.places[i] = await this.intact(new CID(this.table.cid(number)));
      if (this.places[i] < 0) lost.push(i);
      if (isNew && first >= 0 && layer(i) + this.levels[this.owners[i]] - 1 !== top) {
        this.fault("the key or node is in the wrong layer", this.owners[i], this.paths.at(i));
      }
      if (i % SETTLED_AT_ONCE === 0) await pause();
    }
    if (isNew) {
      const low = this.leftmost[top + 1];
      if (low !== undefined) this.fault("the key or node is in the wrong layer", low);
    }
    if (isNew && this.isAlone) this.table.forgetCIDs();
    return lost;
  }

  isIntact(number) {
    return number >= 0 && this.table.matches(number) !== false;
  }

  /** The place of a path among the records; -1 if there is none. */
  indexOf(path) {
    const place = this.lowerBound(path);
    return this.paths.at(place) === path ? place : -1;
  }

  /** The first record whose path is not before this one. */
  lowerBound(path) {
    let [low, high] = [0, this.paths.length];
    while (low < high) {
      const middle = low + high >> 1;
      if (this.paths.at(middle) < path) low = middle + 1;
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
    return this.read(i, decode);
  }

  /**
   * What a record says in the fields with these names, which takes less; all of it if the others
   * may refer to blobs.
   */
  some(i, names) {
    return this.read(i, (bytes) => decodeSome(bytes, names, MARKS_OF_BLOBS));
  }

  read(i, decoded) {
    if (!this.isIntact(this.places[i])) return null;
    try {
      return decoded(this.table.bytes(this.places[i]));
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

/** A commit, with the bytes that its signature is over; throws `Malformed`. */
function readCommit(bytes) {
  const commit = decode(bytes);
  const { did, data, sig, version, rev } = commit ?? {};
  const isCommit = typeof did === "string" && data instanceof CID && sig instanceof Uint8Array && (version === 3 || version === 2);
  if (!isCommit || (typeof rev !== "string" && (version === 3 || rev !== undefined))) throw new Malformed("the root of the tree is not a commit");
  return { did, data, sig, version, rev, unsigned: without(bytes, "sig") };
}

/**
 * What comes next in a node: no more; a subtree, whose link is at `link`; or a record with a key.
 */
const [END, SUBTREE, RECORD] = [0, 1, 2];

/**
 * Reads a tree node, step by step, without making values of it: {"e": [{"k": bytes, "p": number,
 * "t": link or null, "v": link}], "l": link or null}, which DAG-CBOR writes in one way only. What
 * `l` leads to comes first.
 */
class NodeReader {
  /** The node in block `id`, which lies in `bytes` from `start` up to `end`. */
  constructor(id, bytes, start, end) {
    this.id = id;
    this.bytes = bytes;
    this.at = start;
    this.stop = end;
    this.key = "";
    this.link = 0;
    this.below = -1;
    this.sharesMore = false;
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
    this.sharesMore = length > 0 && shared < this.key.length && this.key.charCodeAt(shared) === bytes[start];
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
    throw new Malformed("a block is not a tree node");
  }
}

/** A key as messages show it: in ASCII. */
const shown = (key) => key.slice(0, 1025).replace(/[^\x21-\x5b\x5d-\x7e]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`);

/**
 * A key that is not all ASCII as text: each character of it stands for a byte.
 * @param {string} key
 */
function textOf(key) {
  return new TextDecoder().decode(Uint8Array.from(key, (char) => char.charCodeAt(0)));
}
