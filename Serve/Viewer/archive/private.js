// Private data of a snapshot (Docs/FORMAT.md, section 6.6).

import { decode } from "./cbor.js";
import { CID, Malformed } from "./cid.js";

const [MAXIMUM_LIST, MAXIMUM_PIECE, MAXIMUM_ANSWERS] = [4 << 20, (1 << 20) + 64, 64 << 20];

/**
 * What each method gave: {endpoint, fetchedAt, answers, fault}; the answers are values of JSON, or
 * texts of what is none.
 */
export async function readPrivate(archive, manifest) {
  if (!(manifest.private instanceof CID)) return [];
  const bytes = await archive.body(manifest.private.bytes, MAXIMUM_LIST);
  const list = bytes && decode(bytes);
  if (list?.did !== manifest.did || !Array.isArray(list.carpackPrivate)) throw new Malformed("the list of private data is damaged or lost");
  let left = MAXIMUM_ANSWERS;
  const found = [];
  for (const one of list.carpackPrivate) {
    const answers = [];
    let fault = one?.fault ? `not all of it is here: ${String(one.fault.why ?? one.fault.kind)}` : null;
    for (const links of Array.isArray(one?.answers) ? one.answers : []) {
      const parts = [];
      for (const link of Array.isArray(links) ? links : []) {
        const body = link instanceof CID ? await archive.body(link.bytes, MAXIMUM_PIECE) : null;
        const piece = body && decode(body)?.carpackPrivate;
        if (!(piece instanceof Uint8Array) || (left -= piece.length) < 0) {
          fault = left < 0 ? "there is more than this page shows" : "part of it is damaged or lost";
          parts.length = 0;
          break;
        }
        parts.push(piece);
      }
      if (parts.length) answers.push(valueOf(await new Blob(parts).text()));
    }
    found.push({ endpoint: String(one?.endpoint), fetchedAt: String(one?.fetchedAt), answers, fault });
  }
  return found;
}

function valueOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
