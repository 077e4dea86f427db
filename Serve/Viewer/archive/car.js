// CAR files (https://ipld.io/specs/transport/car/carv1/), plain or compressed, with the files of
// blobs beside them; to its readers the same as an archive, each CAR a snapshot.

import { BlockTable } from "./blocks.js";
import { decode } from "./cbor.js";
import { CID, Malformed, varint } from "./cid.js";
import { comparedFile } from "./media.js";
import { sha256 } from "./sha256.js";
import { decompressFile, isZstd } from "./zstd.js";

/** No larger CAR is read, in bytes. */
export const MAXIMUM_CAR = 1 << 30;
/** Files of blobs that are longer stay where they are, in bytes. */
const LARGE = 4 << 20;
/** How many blocks are compared before others may ask. */
const CHECKED_AT_ONCE = 4000;
const DIGITS = "234567abcdefghijklmnopqrstuvwxyz";

/**
 * The bytes of a CAR from a file's, which may be compressed by gzip or zstd; null if there is no
 * CAR in them.
 */
export async function readCAR(bytes) {
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
    const stream = new Blob([bytes]).stream().pipeThrough(new globalThis.DecompressionStream("gzip"));
    bytes = await collect(stream.getReader());
  } else if (isZstd(bytes)) {
    bytes = decompressFile(bytes, MAXIMUM_CAR);
  }
  return bytes && headerOf(bytes) ? bytes : null;
}

/**
 * All that a stream gives, of one that breaks off what came before; null for more than a CAR may
 * have.
 */
async function collect(reader) {
  const parts = [];
  let length = 0;
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      parts.push(part.value);
      if ((length += part.value.length) > MAXIMUM_CAR) {
        await reader.cancel();
        return null;
      }
    }
  } catch { /* What is missing shows in the CAR. */ }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** The root of a CAR and where its sections begin; null for what is none. */
function headerOf(bytes) {
  try {
    const [length, start] = varint(bytes, 0);
    if (length < 1 || length > 1 << 16 || start + length > bytes.length) return null;
    const header = decode(bytes, start, start + length);
    const root = Array.isArray(header?.roots) ? header.roots[0] : null;
    return header?.version === 1 && root instanceof CID ? { root, start: start + length } : null;
  } catch {
    return null;
  }
}

/** The time of a revision in milliseconds; NaN without. */
function timeOf(rev) {
  if (typeof rev !== "string" || !/^[2-7a-z]{13}$/.test(rev)) return NaN;
  return Number([...rev].reduce((value, digit) => value << 5n | BigInt(DIGITS.indexOf(digit)), 0n) >> 10n) / 1000;
}

/**
 * CARs that were opened together. The sections of CAR number i have the ordinals from
 * `cars[i].base` on.
 */
export class CARArchive {
  table; flaws; cars; blobs; blobBytes; footer; source;

  /**
   * `cars` are {bytes, name, modified}, from `readCAR`; `blobs` files, of which some may be blobs.
   * Throws `Malformed`.
   */
  static async open(cars, blobs, progress = (..._) => {}) {
    const archive = new CARArchive();
    Object.assign(archive, { table: new BlockTable(), flaws: new Set(), cars: [], blobs: new Map(), blobBytes: 0, footer: { sections: 0 } });
    for (const car of cars) archive.add(car);
    archive.cars.sort((left, right) => left.manifest.rev < right.manifest.rev ? 1 : -1);
    for (const [done, file] of blobs.entries()) {
      progress(done, blobs.length);
      await archive.addBlob(file);
    }
    for (const { manifest } of archive.cars) manifest.blobs.heldBytes = archive.blobBytes;
    return archive;
  }

  add({ bytes, name, modified }) {
    const { root, start } = headerOf(bytes);
    const content = bytes.subarray(start);
    const base = this.table.count;
    const isWhole = this.table.addPack(content);
    if (!isWhole) {
      this.table.addDamaged(content);
      this.flaws.add(`${name} is cut off or damaged`);
    }
    const number = this.table.find(root.bytes);
    if (number < 0) throw new Malformed(`${name} does not hold the block that it begins with`);
    const commit = decode(this.table.bytes(number));
    if (typeof commit?.did !== "string" || !(commit.data instanceof CID)) throw new Malformed(`${name} is a CAR, but not of an account's repository`);
    const time = timeOf(commit.rev);
    const manifest = {
      isCAR: true, cid: root, commit: root, did: commit.did, rev: typeof commit.rev === "string" ? commit.rev : undefined, doubts: [], missing: [], identity: {},
      createdAt: new Date(time > 0 && time < 4e12 ? time : modified).toISOString(), tool: "", complete: true, counts: { records: 0 }, blobs: { referenced: 0, held: 0, missing: 0 },
    };
    this.cars.push({ content, base, isWhole, manifest });
    this.footer.sections = this.table.count;
  }

  /** Takes a file for the blob that its name says, or its bytes. */
  async addBlob(file) {
    const name = /^(b[a-z2-7]{40,})(\.\w+)?$/.exec(file.name)?.[1];
    const cid = name ?? new CID(Uint8Array.of(1, 0x55, 0x12, 0x20, ...sha256(new Uint8Array(await file.arrayBuffer())))).text;
    if (!this.blobs.has(cid)) this.blobBytes += file.size;
    this.blobs.set(cid, file);
  }

  /** How many bytes the CARs have. */
  get length() {
    return this.cars.reduce((sum, { content }) => sum + content.length, 0);
  }

  /** The newest snapshot. */
  async newest() {
    return this.cars[0].manifest;
  }

  async history() {
    return this.cars.map(({ manifest }) => manifest);
  }

  async manifest(cid) {
    const car = this.cars.find(({ manifest }) => manifest.cid.text === cid.text);
    if (!car) throw new Malformed(`there is no snapshot ${cid.text}`);
    return car.manifest;
  }

  /** One ordinal stands for all of a CAR. */
  async order(manifest) {
    return [this.cars.find((car) => car.manifest === manifest).base];
  }

  async load(ordinals, table) {
    if (table === this.table) return;
    for (const { base, content, isWhole } of this.cars) {
      if (!ordinals.includes(base) || table.frames.has(base)) continue;
      table.frames.add(base);
      if (isWhole) table.addPack(content);
      else table.addDamaged(content);
    }
  }

  ordinals(bytes) {
    return this.table.find(bytes) >= 0 || this.blobs.has(new CID(bytes).text) ? [-1] : [];
  }

  /** The body of a block or blob, compared with its CID; null without. */
  async body(bytes, limit = Infinity) {
    const number = this.table.find(bytes);
    if (number >= 0) return this.table.matches(number) !== false && this.table.bytes(number).length <= limit ? this.table.bytes(number) : null;
    const file = this.blobs.get(new CID(bytes).text);
    if (!file || file.size > limit) return null;
    const content = new Uint8Array(await file.arrayBuffer());
    const own = new Uint8Array(bytes.length + content.length);
    own.set(bytes);
    own.set(content, bytes.length);
    const alone = new BlockTable();
    return alone.matches(alone.add(own, 0, bytes.length, own.length)) === false ? null : content;
  }

  /** The file of a blob, compared with its CID; null without. */
  async large(bytes, progress) {
    const file = this.blobs.get(new CID(bytes).text);
    return file?.size > LARGE ? comparedFile(file, bytes, progress) : null;
  }

  /**
   * Compares every block with its CID, those included that no tree names: a CAR has no checksums.
   */
  async checkBlocks() {
    for (let number = 0; number < this.table.count; number++) {
      if (this.table.matches(number) === false) this.flaws.add(`the bytes stored for ${new CID(this.table.cid(number)).text} do not hash to it`);
      if (number % CHECKED_AT_ONCE === 0) await new Promise((resolve) => setTimeout(resolve));
    }
  }

  /** Notes what is damaged. */
  flaw(what) {
    this.flaws.add(what);
  }
}
