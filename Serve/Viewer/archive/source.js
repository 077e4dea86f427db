// Where an archive's bytes come from: one seam, bytes from offset to offset.

/** A file that the reader of the page chose. */
export class FileSource {
  constructor(file) {
    [this.file, this.size, this.name] = [file, file.size, file.name];
  }

  async read(start, end) {
    return new Uint8Array(await this.file.slice(start, end).arrayBuffer());
  }
}

/** A read up to so many bytes brings what lies before it, too: manifests and index segments lie side by side. */
const SMALL = 4096;
/** How much is brought with the end of the file, and with other small reads; and how much so altogether. */
const [WITH_END, WITH_SMALL, ALTOGETHER] = [64 << 10, 32 << 10, 96 << 10];

/** A file on a web server that answers requests for ranges. Invariant: what is kept is at most `ALTOGETHER` and small reads. */
export class URLSource {
  constructor(url, size) {
    [this.url, this.size] = [url, size];
    this.name = decodeURIComponent(new URL(url).pathname.split("/").pop() || url);
    [this.requests, this.bytes] = [0, 0];
    [this.kept, this.allowance] = [[], ALTOGETHER];
  }

  /** Asks how long it is, and whether ranges are answered. */
  static async open(url) {
    const answer = await fetch(url, { headers: { Range: "bytes=0-0" } });
    await answer.arrayBuffer();
    const size = Number(/\/(\d+)$/.exec(answer.headers.get("Content-Range") ?? "")?.[1]);
    if (answer.status !== 206 || !Number.isSafeInteger(size)) {
      throw new Error(answer.ok ? "the server does not answer requests for a part of the file" : `the server answered ${answer.status}`);
    }
    return new URLSource(url, size);
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
    const answer = await fetch(this.url, { headers: { Range: `bytes=${start}-${end - 1}` } });
    if (answer.status !== 206) throw new Error(`the server answered ${answer.status}`);
    return new Uint8Array(await answer.arrayBuffer());
  }
}

/** The bytes from offset to offset, all of them. */
export async function readExactly(source, start, end) {
  if (!(start >= 0 && start <= end && end <= source.size)) throw new Error("the archive names bytes that it does not have");
  const bytes = await source.read(start, end);
  if (bytes.length !== end - start) throw new Error("the archive ended too early; it may be being written to: open it again");
  return bytes;
}
