// An archive: its footer, its index, its sections (Docs/FORMAT.md, sections 2 to 6.2).

import { decode } from "./cbor.js";
import { CID, cidAt, Malformed, varint } from "./cid.js";
import { isSkippable, isSound, Segment } from "./segment.js";
import { hasDigest, sha256 } from "./sha256.js";
import { largeBlob } from "./media.js";
import { decompressNatively } from "./native.js";
import { eachLeft, rawContent } from "./remains.js";
import { readExactly } from "./source.js";
import { decompressPart } from "./zstd.js";

const MAXIMUM_FOOTER = 528;
const MAXIMUM_MANIFEST = 4 << 20;
const MAXIMUM_ORDER = 64 << 20;
const LARGE = 65536;
const CHUNK = 4 << 20;
/** Ranges with less than this between them are read as one. */
const GAP = 1 << 17;
/** The required features that are known: repaired, undigested, packed index. */
const KNOWN_FEATURES = 7n;

/** The mandatory fields of a manifest that are used here. */
const MANIFEST = { carpack: "number", did: "string", createdAt: "string", tool: "string", complete: "boolean" };

/**
 * An archive that is open. Invariant: `firsts` ascends; frame i begins with, or continues, the
 * section `firsts[i]`.
 */
export class Archive {
  source; notice; segments; manifests; flaws; footer; firsts; offsets; lengths; whole; last;

  /** Opens an archive by its footer; `notice` is told what a person should know. */
  static async open(source, notice = () => {}) {
    const archive = new Archive();
    Object.assign(archive, { source, notice, segments: [], manifests: new Map(), flaws: new Set() });
    archive.footer = await findFooter(source, notice);
    await archive.readIndex();
    return archive;
  }

  // The index

  async readIndex() {
    const { segments, isPacked, sections } = this.footer;
    let base = 0;
    const ranges = [];
    for (const { offset, n, m } of segments) {
      const at = { base, n, m };
      const a = isPacked ? 0 : (await readExactly(this.source, offset, offset + 48))[28];
      if (n < 1 || a > 24) throw new Malformed("the archive's index is damaged");
      ranges.push({ start: offset, end: offset + Segment.lengthOf(at, isPacked, a), at });
      base += n;
    }
    if (base !== sections) throw new Malformed("the archive's index does not cover all of it");
    await this.readRanges(ranges, (bytes, { at }) => this.segments.push(new Segment(bytes, at, isPacked)));
    this.segments.sort((left, right) => left.base - right.base);
    const count = this.segments.reduce((sum, segment) => sum + segment.m, 0);
    this.firsts = new Float64Array(count);
    this.offsets = new Float64Array(count);
    this.lengths = new Uint32Array(count);
    let i = 0;
    for (const segment of this.segments) {
      segment.eachFrame((ordinal, offset, length) => {
        if (ordinal < (i ? this.firsts[i - 1] : 0)) throw new Malformed("the archive's index is damaged");
        [this.firsts[i], this.offsets[i], this.lengths[i]] = [ordinal, offset, length];
        i++;
      });
    }
  }

  /**
   * The frame in which a section begins: the first that begins with it, or else the last that
   * begins before it.
   */
  frameOf(ordinal) {
    let [low, high] = [0, this.firsts.length];
    while (low < high) {
      const middle = low + high >> 1;
      if (this.firsts[middle] < ordinal) low = middle + 1;
      else high = middle;
    }
    return this.firsts[low] === ordinal ? low : low - 1;
  }

  /** The ordinals that a CID may have, the latest first. */
  ordinals(cid) {
    const { hash, digest, end } = cidAt(cid, 0);
    const key = hash === 0x12 && end - digest === 32 ? cid.subarray(digest) : sha256(cid);
    const found = [];
    for (const segment of this.segments) found.push(...segment.ordinals(key));
    return found.sort((left, right) => right - left);
  }

  // Bytes

  /**
   * Reads ranges, neighbouring ones at once, and hands over the bytes of each in the order of their
   * offsets.
   */
  async readRanges(ranges, take) {
    const sorted = [...ranges].sort((left, right) => left.start - right.start);
    for (let first = 0; first < sorted.length;) {
      let last = first;
      let end = sorted[first].end;
      while (last + 1 < sorted.length && sorted[last + 1].start <= end + GAP
        && Math.max(end, sorted[last + 1].end) - sorted[first].start <= this.source.longest) {
        end = Math.max(end, sorted[++last].end);
      }
      const { start } = sorted[first];
      const bytes = await readExactly(this.source, start, end);
      for (const range of sorted.slice(first, last + 1)) {
        await take(bytes.subarray(range.start - start, range.end - start), range);
      }
      first = last + 1;
    }
  }

  /**
   * The content of a frame, of which a part is wrong if it is damaged; null for what is no frame.
   */
  async content(stored) {
    try {
      const whole = await decompressNatively(stored);
      if (whole) return whole;
      const { content, error } = decompressPart(stored);
      if (!error) return content;
      this.flaw("part of the archive is damaged");
      // Its content may be right, and only a header wrong.
      const raw = rawContent(stored);
      return raw?.holds ? raw.content : content;
    } catch {
      this.flaw("part of the archive is damaged");
      return rawContent(stored)?.content ?? null;
    }
  }

  /**
   * Notes what is damaged of the file. Around what is damaged, a repaired file has been written
   * again.
   */
  flaw(what) {
    if (!this.footer.isRepaired) this.flaws.add(what);
  }

  range(frame) {
    return { start: this.offsets[frame], end: this.offsets[frame] + this.lengths[frame], frame };
  }

  /**
   * Reads the sections with these ordinals into a table, and whatever else is in their frames; of
   * frames that are there, nothing.
   */
  async load(ordinals, table, progress = (..._) => {}) {
    const frames = new Set();
    for (const ordinal of ordinals) {
      const frame = this.frameOf(ordinal);
      if (frame < 0 || table.frames.has(frame)) continue;
      table.frames.add(frame);
      frames.add(frame);
      for (let next = frame + 1; this.firsts[next] === this.firsts[frame] && this.firsts[frame] === ordinal; next++) frames.add(next);
    }
    const total = [...frames].reduce((sum, frame) => sum + this.lengths[frame], 0);
    const sections = [...frames].reduce((sum, frame) => sum + (this.firsts[frame + 1] ?? this.footer.sections) - this.firsts[frame], 0);
    // However many the frames say they have, the index has no more.
    table.reserve(table.count + Math.min(sections, this.footer.sections));
    const large = new Map();
    let done = 0;
    await this.readRanges([...frames].map((frame) => this.range(frame)), async (stored, { frame }) => {
      progress(done += stored.length, total);
      const content = await this.content(stored);
      if (!content) return;
      const first = this.firsts[frame];
      const isAlone = this.firsts[frame + 1] === first || this.firsts[frame - 1] === first;
      if (isAlone) {
        large.set(frame, content);
        return;
      }
      if (table.addPack(content)) return;
      this.flaw("part of the archive is damaged");
      table.addDamaged(content);
    });
    for (const [frame, content] of large) {
      if (this.firsts[frame - 1] === this.firsts[frame]) continue;
      const joined = joinLarge(content, (i) => large.get(frame + i));
      if (joined) table.addPack(joined);
    }
  }

  /** The body of a section, compared with its CID; null if the archive does not hold it intact. */
  async body(cid, limit = Infinity) {
    for (const ordinal of this.ordinals(cid)) {
      const frame = this.frameOf(ordinal);
      if (frame < 0) continue;
      const body = await this.bodyIn(frame, ordinal, cid, limit);
      if (body && await matches(body, cid)) return body;
    }
    for (const ordinal of this.ordinals(cid)) {
      const body = await this.left(this.frameOf(ordinal), cid);
      if (body && body.length <= limit) return body;
    }
    return null;
  }

  /** The body of a section by what is left of a damaged frame; null if it is not there. */
  async left(frame, cid) {
    const content = frame < 0 ? null : await this.contentOf(frame);
    let found = null;
    if (content) {
      eachLeft(content, (start, end) => {
        if (isSame(content.subarray(start, start + 36), cid)) found = content.subarray(start + 36, end);
      });
    }
    if (found) this.flaw("part of the archive is damaged");
    return found;
  }

  /** The content of a frame; the last one is kept, for what is shown together lies in one pack. */
  contentOf(frame) {
    if (this.last?.frame !== frame) {
      const { start, end } = this.range(frame);
      const content = readExactly(this.source, start, end).then((stored) => this.content(stored));
      const last = { frame, content };
      this.last = last;
      content.catch(() => {
        if (this.last === last) this.last = null;
      });
    }
    return this.last.content;
  }

  async bodyIn(frame, ordinal, cid, limit) {
    const content = await this.contentOf(frame);
    try {
      return content && await this.section(content, frame, ordinal, cid, limit);
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      return null;
    }
  }

  /**
   * The body of the section with an ordinal in a frame's content; null if that is another one, or
   * longer than `limit`.
   */
  async section(content, frame, ordinal, cid, limit) {
    let at = 0;
    for (let i = this.firsts[frame]; i < ordinal; i++) {
      const [length, next] = varint(content, at);
      at = next + length;
    }
    const [length, section] = varint(content, at);
    const { end: body } = cidAt(content, section);
    if (!isSame(content.subarray(section, body), cid) || section + length - body > limit) return null;
    if (section + length <= content.length) return content.subarray(body, section + length);
    // A large section: the rest of it is in frames of its own, each of 4 MiB but the last.
    const parts = [];
    const count = Math.ceil((section + length - body) / CHUNK);
    const ranges = [];
    for (let i = 1; i < count; i++) {
      if (this.firsts[frame + i] !== ordinal) return null;
      ranges.push(this.range(frame + i));
    }
    await this.readRanges(ranges, async (stored) => parts.push(await this.content(stored)));
    if (parts.includes(null)) return null;
    const whole = new Uint8Array(section + length - body);
    let place = 0;
    for (const part of [content.subarray(body), ...parts]) {
      if (place + part.length > whole.length) return null;
      whole.set(part, place);
      place += part.length;
    }
    return place === whole.length ? whole : null;
  }

  /**
   * The content of a blob that takes up several frames as a Blob, compared with its CID; null for
   * others. Throws `TooLarge`.
   */
  large(cid, progress) {
    return largeBlob(this, cid, progress);
  }

  // Manifests

  /** The newest manifest; null if nothing was committed. */
  async newest() {
    const { digest } = this.footer;
    return digest ? this.manifest(CID.parse(new CID(Uint8Array.of(1, 0x71, 0x12, 0x20, ...digest)).text)) : null;
  }

  /** A manifest by its CID. */
  async manifest(cid) {
    const known = this.manifests.get(cid.text);
    if (known) return known;
    const bytes = await this.body(cid.bytes, MAXIMUM_MANIFEST);
    if (!bytes) throw new Malformed(`the snapshot ${cid.text} is damaged or lost`);
    const fields = decode(bytes);
    for (const [name, type] of Object.entries(MANIFEST)) {
      if (typeof fields?.[name] !== type) throw new Malformed(`the snapshot ${cid.text} lacks the field ${name}`);
    }
    if (!(fields.commit instanceof CID) || !(fields.car?.order) || !(fields.blobs) || !(fields.counts)) {
      throw new Malformed(`the snapshot ${cid.text} lacks a field`);
    }
    const texts = (list) => (Array.isArray(list) ? list : []).filter((item) => typeof item === "string");
    const text = (value) => typeof value === "string" ? value : undefined;
    const manifest = {
      ...fields, cid, handle: text(fields.handle), pds: text(fields.pds), rev: text(fields.rev), doubts: texts(fields.doubts),
      missing: Array.isArray(fields.missing) ? fields.missing : [],
    };
    this.manifests.set(cid.text, manifest);
    return manifest;
  }

  /**
   * All snapshots that the newest leads to, the newest first; stops at one that is damaged, which
   * is said.
   */
  async history() {
    const found = [];
    try {
      for (let manifest = await this.newest(); manifest;) {
        found.push(manifest);
        if (found.length > this.footer.sections) throw new Malformed("the chain of snapshots has no end");
        manifest = manifest.prev instanceof CID ? await this.manifest(manifest.prev) : null;
      }
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      this.flaws.add(error.message);
    }
    return found;
  }

  /** The ordinals of the sections of a snapshot's CAR, in their order. */
  async order(manifest) {
    const chain = [];
    for (let one = manifest; ;) {
      chain.push(one);
      const { order } = one.car;
      if (order.kind === "absolute") break;
      if (order.kind !== "relative" || !(order.base instanceof CID) || chain.length > 31) {
        throw new Malformed("the order of a snapshot's blocks does not hold");
      }
      one = await this.manifest(order.base);
    }
    let base = null;
    for (const one of chain.reverse()) base = resolve(await this.runs(one), one.car, base, this.footer.sections);
    return base;
  }

  async runs(manifest) {
    const { runs, pages } = manifest.car.order;
    if (runs instanceof Uint8Array) return runs;
    if (!Array.isArray(pages)) throw new Malformed("the order of a snapshot's blocks is not there");
    const parts = [];
    let length = 0;
    for (const page of pages) {
      const part = await this.body(page.bytes, 1 << 20);
      if (!part || (length += part.length) > MAXIMUM_ORDER) throw new Malformed("the order of a snapshot's blocks is damaged");
      parts.push(part);
    }
    return concatenate(parts, length);
  }
}

/** Finds the footer: at the end, or else the last that holds before it (FORMAT 5 and A.2). */
async function findFooter(source, notice) {
  if (source.size < 144) throw new Malformed("this is no archive: it is too short");
  const from = Math.max(0, source.size - MAXIMUM_FOOTER);
  const tail = await readExactly(source, from, source.size);
  const own = Number(new DataView(tail.buffer, tail.byteOffset).getBigUint64(tail.length - 16, true));
  const last = own >= from && own < source.size ? readFooter(tail, own - from, own) : null;
  if (last && own + last.length === source.size) return last;
  for (let end = source.size; end > 0;) {
    const start = Math.max(0, end - (4 << 20));
    const stop = Math.min(source.size, end + MAXIMUM_FOOTER);
    const bytes = await readExactly(source, start, stop);
    for (let at = end - start - 1; at >= 0; at--) {
      if (bytes[at] !== 0x5c || !isSkippable(bytes, at, 2)) continue;
      const footer = readFooter(bytes, at, start + at);
      if (footer) {
        notice("the end of the archive is an unfinished write, or damaged; what was committed before is shown");
        return footer;
      }
    }
    end = start;
  }
  throw new Malformed("this is no archive, or its end is lost; \"carpack repair\" may help");
}

function readFooter(bytes, at, offset) {
  if (at + 144 > bytes.length || !isSkippable(bytes, at, 2)) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, Math.min(MAXIMUM_FOOTER, bytes.length - at));
  const length = view.getUint32(4, true) + 8;
  const count = (length - 144) / 24;
  if (!Number.isInteger(count) || count < 0 || count > 16 || at + length > bytes.length) return null;
  const frame = bytes.subarray(at, at + length);
  const number = (place) => Number(view.getBigUint64(place, true));
  if (!isSound(frame) || number(length - 16) !== offset) return null;
  if (view.getUint16(28, true) !== 1) throw new Malformed("the archive is of a later version; this page does not know it");
  const features = view.getBigUint64(32, true);
  if (features & ~KNOWN_FEATURES) throw new Malformed("the archive needs features that this page does not know");
  const segments = [];
  for (let i = 0, place = 128; i < count; i++, place += 24) {
    segments.push({ offset: number(place), n: view.getUint32(place + 8, true), m: view.getUint32(place + 12, true) });
  }
  const digest = frame.slice(96, 128);
  return {
    length, offset, segments, isPacked: (features & 4n) !== 0n, isRepaired: (features & 1n) !== 0n, generation: number(48), sections: number(64),
    digest: digest.some((byte) => byte !== 0) ? digest : null,
  };
}

/** The ordinals that runs of positions stand for (FORMAT 6.1). */
function resolve(runs, car, base, sections) {
  const count = car.blocks;
  if (!Number.isSafeInteger(count) || count < 0 || count > 2 * sections + 65536) {
    throw new Malformed("the order of a snapshot's blocks is too long");
  }
  const ordinals = new Uint32Array(count);
  const first = car.order.first ?? 0;
  let [at, place, expected] = [0, 0, 0];
  while (at < runs.length) {
    const [code, next] = varint(runs, at);
    const [length, end] = varint(runs, next);
    let position = expected + (code % 2 ? -(code + 1) / 2 : code / 2);
    if (length < 1 || place + length > count || position < 0) throw new Malformed("the order of a snapshot's blocks does not hold");
    expected = position + length;
    for (; position < expected; position++) {
      const ordinal = base === null ? position : position < base.length ? base[position] : first + position - base.length;
      if (!(ordinal < sections)) throw new Malformed("the order of a snapshot's blocks does not hold");
      ordinals[place++] = ordinal;
    }
    at = end;
  }
  if (place !== count) throw new Malformed("the order of a snapshot's blocks does not hold");
  return ordinals;
}

/**
 * The section whose first frame has this content, with the content of the frames behind it; null if
 * one is missing.
 */
function joinLarge(content, frame) {
  const [length, start] = varint(content, 0);
  const parts = [content];
  let have = content.length;
  for (let i = 1; have < start + length; i++) {
    const part = frame(i);
    if (!part) return null;
    parts.push(part);
    have += part.length;
  }
  return have === start + length ? concatenate(parts, have) : null;
}

function concatenate(parts, length) {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function isSame(left, right) {
  return left.length === right.length && left.every((byte, i) => byte === right[i]);
}

/** Whether bytes hash to a CID; large ones are hashed by the browser, where it offers that. */
async function matches(bytes, cid) {
  const { hash, digest } = cidAt(cid, 0);
  if (hash === 0) return isSame(bytes, cid.subarray(digest));
  if (hash !== 0x12) return true;
  if (bytes.length < LARGE || !globalThis.crypto?.subtle) return hasDigest(bytes, 0, bytes.length, cid, digest);
  return isSame(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)), cid.subarray(digest));
}
