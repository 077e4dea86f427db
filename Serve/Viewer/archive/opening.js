// What people open: archives, CARs as Bluesky's "Export my data" gives them, folders of blobs; and
// a sentence for the rest.

import { Archive } from "./archive.js";
import { CARArchive, MAXIMUM_CAR, readCAR } from "./car.js";
import { Malformed } from "./cid.js";
import { beginning, FileSource, URLSource } from "./source.js";
import { FrameError, isZstd } from "./zstd.js";

/** What stands in every archive near its beginning: M of Docs/FORMAT.md, section 3.3. */
const M = [0xf0, 0x9f, 0x9a, 0x97, 0xf0, 0x9f, 0x93, 0xa6, 0xfe, 0xc9, 0x8a, 0xe5, 0xb1, 0xd7, 0x9c, 0x83];

/** How much of a folder's listing is read, and how many of its names are taken. */
const [MAXIMUM_LISTING, MAXIMUM_LISTED] = [4 << 20, 2000];

const NOTHING = "There is no account in it. This page opens archives (.car.zst) and repositories (.car), as Bluesky's \"Export my data\" gives them.";

/**
 * Files that were chosen together as archives: each carpack archive is one, and all CARs are one,
 * with the other files as their blobs.
 */
export const openFiles = (files, notice, progress) => openSources(files.map((file) => new FileSource(file)), notice, progress);

/** What lies at addresses as archives, like files that were chosen together. */
export async function openAddresses(urls, notice, progress) {
  const sources = [];
  for (const url of urls) sources.push(await URLSource.open(url));
  return openSources(sources, notice, progress);
}

async function openSources(sources, notice, progress) {
  const [archives, cars, others] = [[], [], []];
  let why = null;
  for (const source of sources) {
    const kind = await kindOf(source);
    if (kind === "archive") {
      archives.push(await Archive.open(source, notice));
    } else if (kind === "car") {
      const bytes = await carIn(source);
      if (bytes) cars.push({ bytes, source, name: source.name, modified: source.file?.lastModified ?? Date.now() });
      else others.push(source);
    } else {
      why ??= kind;
      others.push(source);
    }
  }
  if (cars.length) {
    const files = others.flatMap(({ file }) => file ?? []);
    archives.push(Object.assign(await CARArchive.open(cars, files, progress), { source: cars[0].source }));
    if (files.length === 0) notice("A CAR has no pictures and videos in it. If you have them as files, open them together with it, or the folder with all of them.");
  }
  if (archives.length === 0) throw new Malformed(sources.length === 1 ? why ?? NOTHING : NOTHING);
  return archives;
}

/**
 * The addresses of archives and CARs that the listing of a folder names, as web servers write one;
 * none outside of the folder.
 */
export async function listFolder(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  const text = await beginning(answer, MAXIMUM_LISTING);
  const found = new Set();
  for (const [, one, other] of text.matchAll(/href\s*=\s*(?:"([^"]*)"|'([^']*)')/gi)) {
    try {
      const { href, pathname } = new URL((one ?? other).replaceAll("&amp;", "&"), url);
      if (href.startsWith(url) && /\.car(\.zst|\.gz)?$/.test(pathname)) found.add(href);
    } catch { /* no address */ }
  }
  if (found.size === 0) throw new Malformed("There are no archives in this folder, or the server does not list them.");
  return [...found].sort().slice(0, MAXIMUM_LISTED);
}

/**
 * "archive", "car" for what may be one, or a sentence that says what else it is; null for what is
 * unknown.
 */
async function kindOf(file) {
  const head = await file.read(0, Math.min(4096, file.size));
  const text = String.fromCharCode(...head.subarray(0, 64));
  if (isZstd(head) && (contains(head, M) || await endsWithFooter(file))) return "archive";
  if (file.size <= MAXIMUM_CAR && (isZstd(head) || (head[0] === 0x1f && head[1] === 0x8b) || text.slice(0, 40).includes("eroots"))) return "car";
  if (text.startsWith("age-encryption.org/")) return `${file.name} is encrypted with age. Decrypt it first: age --decrypt -o ${file.name.replace(/\.age$/, "")} ${file.name}`;
  if (text.startsWith("-----BEGIN PGP") || /\.(gpg|pgp)$/.test(file.name)) return `${file.name} is encrypted with GnuPG. Decrypt it first: gpg --output ${file.name.replace(/\.(gpg|pgp)$/, "")} --decrypt ${file.name}`;
  if (text.startsWith("PK\x03\x04")) return `${file.name} is a ZIP file. Unpack it first, and open what was in it.`;
  if (file.size > MAXIMUM_CAR && text.slice(0, 40).includes("eroots")) return `${file.name} is larger than this page reads. "carpack pack" makes an archive of it, of which it reads what it shows.`;
  if (file.size === 0) return `${file.name} is empty.`;
  return null;
}

async function carIn(source) {
  try {
    return await readCAR(await source.read(0, source.size));
  } catch (error) {
    // A file that only looks like one.
    if (error instanceof FrameError) return null;
    throw error;
  }
}

/** Archives of version 1.0 have no note, but end with a footer. */
async function endsWithFooter(source) {
  const tail = await source.read(Math.max(0, source.size - 528), source.size);
  return contains(tail, M);
}

function contains(bytes, part) {
  for (let at = 0; at + part.length <= bytes.length; at++) if (part.every((byte, i) => bytes[at + i] === byte)) return true;
  return false;
}
