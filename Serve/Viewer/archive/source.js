// Where an archive's bytes come from: one seam, bytes from offset to offset. Ranges that are read
// together are no longer than `longest`.

import { resized } from "./memory.js";

/** A file that the reader of the page chose. */
export class FileSource {
  constructor(file) {
    this.file = file;
    this.size = file.size;
    this.name = file.name;
    this.longest = 1 << 20;
  }

  async read(start, end) {
    try {
      return new Uint8Array(await this.file.slice(start, end).arrayBuffer());
    } catch {
      // A browser refuses to read on in a file that was written to.
      throw new Error("the file was changed or moved while it was being read: open it again");
    }
  }
}

/**
 * A read up to so many bytes brings what lies before it, too: manifests and index segments lie side
 * by side.
 */
const SMALL = 4096;
/**
 * How much is brought with the end of the file, and with other small reads; and how much so
 * altogether.
 */
const [WITH_END, WITH_SMALL, ALTOGETHER] = [64 << 10, 32 << 10, 96 << 10];

/** Files up to so many bytes are taken whole from a server that answers no requests for parts. */
const MAXIMUM_WHOLE = 128 << 20;

/** So much room is made for an answer before it comes, in bytes. */
const EXPECTED = 8 << 20;

/** All of an answer: compressed on its way, it may be much longer than its Content-Length says. */
async function body(answer, most) {
  const [parts, reader] = [[], answer.body.getReader()];
  let rest = most;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return new Blob(parts);
    rest -= value.length;
    if (rest < 0) {
      await reader.cancel();
      throw new Error("the server does not answer requests for a part of the file");
    }
    parts.push(value);
  }
}

/** The beginning of an answer, of so many bytes and a little more, as text. */
export async function beginning(answer, most) {
  const [parts, reader] = [[], answer.body.getReader()];
  for (let left = most; left > 0;) {
    const { value, done } = await reader.read();
    if (done) break;
    parts.push(value);
    left -= value.length;
  }
  await reader.cancel();
  return new Blob(parts).text();
}

/** The bytes of an answer to a request for so many. Of a server that sends more no more is read. */
async function part(answer, length) {
  let bytes = new Uint8Array(Math.min(length, EXPECTED));
  const reader = answer.body.getReader();
  for (let at = 0; ;) {
    const { value, done } = await reader.read();
    if (done) return bytes.subarray(0, at);
    const end = at + value.length;
    if (end > length) {
      await reader.cancel();
      throw new Error("the server sent more than it was asked for");
    }
    if (end > bytes.length) bytes = resized(bytes, Math.min(length, Math.max(end, 2 * bytes.length)));
    bytes.set(value, at);
    at = end;
  }
}

/** The file is not the one any more that was opened. */
export class Replaced extends Error {
  constructor() {
    super("the archive was replaced while it was being read: open it again");
  }
}

/** A name as people read it; one with a stray % stays as it is. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * What tells which state of the file an answer is of: its ETag, when it was changed, its length.
 * Each is null if the server does not say.
 */
function version(answer) {
  const size = /\/(\d+)$/.exec(answer.headers.get("Content-Range") ?? "")?.[1];
  return { tag: answer.headers.get("ETag"), modified: answer.headers.get("Last-Modified"), size: size === undefined ? null : Number(size) };
}

/**
 * Whether a request may have headers of its own: to another origin they need its leave, which
 * buckets seldom give.
 */
const isOwn = (url) => !globalThis.location || new URL(url).origin === globalThis.location.origin;

/**
 * A file on a web server that answers requests for ranges. Invariants: what is kept is at most
 * `ALTOGETHER` and small reads; all that is read is of the version that was opened.
 */
export class URLSource {
  constructor(url, version) {
    this.url = url;
    this.version = version;
    this.size = version.size;
    this.name = decoded(new URL(url).pathname.split("/").pop() || url);
    // A weak tag never matches (RFC 9110, section 13.1.1).
    this.condition = version.tag?.startsWith('"') && isOwn(url) ? { "If-Match": version.tag } : {};
    this.requests = 0;
    this.bytes = 0;
    this.longest = 8 << 20;
    this.kept = [];
    this.allowance = ALTOGETHER;
  }

  /**
   * Asks how long it is, and whether ranges are answered; of a server that answers with all of a
   * small file, that file.
   */
  static async open(url) {
    const answer = await fetch(url, { headers: { Range: "bytes=0-0" } });
    const found = version(answer);
    if (answer.status === 206 && Number.isSafeInteger(found.size)) {
      await part(answer, 1);
      return new URLSource(url, found);
    }
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    if (!(Number(answer.headers.get("Content-Length") ?? NaN) <= MAXIMUM_WHOLE)) {
      await answer.body?.cancel();
      throw new Error("the server does not answer requests for a part of the file");
    }
    return new FileSource(new File([await body(answer, MAXIMUM_WHOLE)], decoded(new URL(url).pathname.split("/").pop() || url)));
  }

  async read(start, end) {
    if (start === end) return new Uint8Array(0);
    const known = this.kept.find((one) => one.start <= start && end <= one.start + one.bytes.length);
    if (known) return known.bytes.slice(start - known.start, end - known.start);
    const first = Math.max(0, Math.min(start, end - (end === this.size ? WITH_END : WITH_SMALL)));
    if (end - start <= SMALL && first < start && start - first <= this.allowance) {
      this.allowance -= start - first;
      const bytes = await this.fetch(first, end);
      this.kept.push({ start: first, bytes });
      return bytes.slice(start - first);
    }
    return this.fetch(start, end);
  }

  async fetch(start, end) {
    this.requests++;
    this.bytes += end - start;
    const answer = await fetch(this.url, { headers: { Range: `bytes=${start}-${end - 1}`, ...this.condition } });
    // A file that has no such bytes any more is another one, too.
    if (answer.status === 412 || answer.status === 416) throw new Replaced();
    if (answer.status !== 206) throw new Error(`the server answered ${answer.status}`);
    const found = version(answer);
    const differs = (name) => this.version[name] !== null && found[name] !== null && this.version[name] !== found[name];
    // A tag says all, where both answers have one; without, the time and the length have to do.
    if (differs("tag") || differs("size") || ((this.version.tag ?? found.tag) === null && differs("modified"))) throw new Replaced();
    return part(answer, end - start);
  }
}

/** The bytes from offset to offset, all of them. */
export async function readExactly(source, start, end) {
  if (!(start >= 0 && start <= end && end <= source.size)) throw new Error("the archive names bytes that it does not have");
  const bytes = await source.read(start, end);
  if (bytes.length !== end - start) throw new Error("the archive ended too early; it may be being written to: open it again");
  return bytes;
}
