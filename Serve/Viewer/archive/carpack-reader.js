/**
 * Reads carpack archives and CARs: what other programs import. No module that it leads to knows a
 * document.
 *
 * ```js
 * import { CID, openArchive, prove, Repository } from "./carpack-reader.js";
 *
 * const [archive] = await openArchive(file);                        // a File, several of them, or the address of one
 * const [newest] = await archive.history();                         // snapshots, the newest first
 * const repository = await Repository.read(archive, newest);
 * for (const [i, path] of repository.paths.entries()) console.log(path, repository.value(i));
 * const picture = await archive.body(CID.parse("bafkrei…").bytes);  // a blob's bytes, compared with its CID; null without
 * await prove(archive, repository, (found) => console.log(found.verdict, found.levels));
 * ```
 *
 * A value is of DAG-CBOR: maps are objects without a prototype, links `CID`, bytes `Uint8Array`,
 * integers beyond 2^53 `BigInt`. Whatever is read was compared with its CID. `Malformed` is thrown
 * for what is no archive, or damaged beyond reading.
 */

import { Account } from "../account/account.js";
import { prove as proveAccount } from "../account/proving.js";
import { openAddresses, openFiles } from "./opening.js";

export { CID, Malformed } from "./cid.js";
export { Repository } from "./repository.js";

/**
 * Opens files, or the file at an address on a server that answers requests for ranges; answers
 * archives.
 * @param {File | File[] | string} source
 * @param {(sentence: string) => void} [notice] is called with what a person should know
 */
export async function openArchive(source, notice = () => {}) {
  if (typeof source === "string") return openAddresses([source], notice);
  return openFiles(Array.isArray(source) ? source : [source], notice);
}

/**
 * Finds out what `carpack verify` says of a snapshot; `tell` is called after each step with
 * {verdict, isDone, levels, damage}.
 * @param {(found: object) => void} tell
 */
export async function prove(archive, repository, tell) {
  const proof = await proveAccount(archive, new Account(repository), () => archive.history(), tell);
  await proof.compareBlobs();
}
