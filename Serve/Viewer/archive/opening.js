// What people open: archives, CARs as Bluesky's "Export my data" gives them, folders of blobs; and a sentence for the rest.

import { Archive } from "./archive.js";
import { CARArchive, MAXIMUM_CAR, readCAR } from "./car.js";
import { Malformed } from "./cid.js";
import { FileSource } from "./source.js";
import { FrameError, isZstd } from "./zstd.js";

/** What stands in every archive near its beginning: M of Docs/FORMAT.md, section 3.3. */
const M = [0xf0, 0x9f, 0x9a, 0x97, 0xf0, 0x9f, 0x93, 0xa6, 0xfe, 0xc9, 0x8a, 0xe5, 0xb1, 0xd7, 0x9c, 0x83];

const NOTHING = "There is no account in it. This page opens archives (.car.zst) and repositories (.car), as Bluesky's \"Export my data\" gives them.";

/** Files that were chosen together as archives: each carpack archive is one, and all CARs are one, with the other files as their blobs. */
export async function openFiles(files, notice, progress) {
  const [archives, cars, others] = [[], [], []];
  let why = null;
  for (const file of files) {
    const kind = await kindOf(file);
    if (kind === "archive") {
      archives.push(await Archive.open(new FileSource(file), notice));
    } else if (kind === "car") {
      const bytes = await carIn(file);
      if (bytes) cars.push({ bytes, name: file.name, modified: file.lastModified ?? Date.now() });
      else others.push(file);
    } else {
      why ??= kind;
      others.push(file);
    }
  }
  if (cars.length) {
    archives.push(Object.assign(await CARArchive.open(cars, others, progress), { source: new FileSource(files.find((file) => cars.some(({ name }) => name === file.name))) }));
    if (others.length === 0) notice("A CAR has no pictures and videos in it. If you have them as files, open them together with it, or the folder with all of them.");
  }
  if (archives.length === 0) throw new Malformed(files.length === 1 ? why ?? NOTHING : NOTHING);
  return archives;
}

/** "archive", "car" for what may be one, or a sentence that says what else it is; null for what is unknown. */
async function kindOf(file) {
  const head = new Uint8Array(await file.slice(0, 4096).arrayBuffer());
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

async function carIn(file) {
  try {
    return await readCAR(new Uint8Array(await file.arrayBuffer()));
  } catch (error) {
    // A file that only looks like one.
    if (error instanceof FrameError) return null;
    throw error;
  }
}

/** Archives of version 1.0 have no note, but end with a footer. */
async function endsWithFooter(file) {
  const tail = new Uint8Array(await file.slice(Math.max(0, file.size - 528)).arrayBuffer());
  return contains(tail, M);
}

function contains(bytes, part) {
  for (let at = 0; at + part.length <= bytes.length; at++) if (part.every((byte, i) => bytes[at + i] === byte)) return true;
  return false;
}
