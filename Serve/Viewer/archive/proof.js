// What is proven of a snapshot, one level upon the other: the levels and sentences of `carpack
// verify`.
//
// A finding is {isHeld, why}: true, false, or null where nothing tells. What has not been looked at
// yet has none.

import { decode } from "./cbor.js";
import { CID, Malformed } from "./cid.js";
import { checkLog, readLog } from "./plc.js";
import { judgeByDocument, judgeByHistory, readDocument } from "./signer.js";

/** The levels, in their order. */
export const LEVELS = ["intact", "well-formed", "signed", "identity-proven", "continuous", "complete"];
/** How much is told of the same kind. */
const MAXIMUM_TOLD = 100;
const MAXIMUM_DOCUMENT = 4 << 20;

const finding = (isHeld, why) => ({ isHeld, why });

/**
 * What the archive holds about an account: its PLC history, what speaks against it, and its
 * documents, the oldest first.
 */
async function evidenceOf(archive, did, history) {
  const documents = [];
  const logs = [];
  const faults = [];
  const oldestFirst = history.toReversed();
  const read = async (link) => {
    const bytes = await archive.body(link.bytes, MAXIMUM_DOCUMENT);
    if (!bytes) throw new Malformed(`the document ${link.text} is damaged or lost`);
    return bytes;
  };
  let last = null;
  for (const [i, manifest] of oldestFirst.entries()) {
    if (manifest.did !== did || manifest.unvouched === true) continue;
    const { plcLog, didDocument } = manifest.identity ?? {};
    if (plcLog instanceof CID && logs.at(-1)?.text !== plcLog.text) logs.push(plcLog);
    if (!(didDocument instanceof CID) || didDocument.text === last) continue;
    last = didDocument.text;
    documents.push({ snapshot: i, document: readDocument(await read(didDocument)) });
  }
  if (logs.length === 0) return { plc: null, faults, documents };
  try {
    const entriesOf = async (link) => readLog(await read(link), did);
    const isAudit = (entries) => entries.every((entry) => entry.isAudit);
    const all = [];
    for (const link of logs) all.push(await entriesOf(link));
    let newest = all.at(-1);
    const history = checkLogOf(newest, did, faults);
    const known = new Set(history?.operations.map(({ cid }) => cid) ?? newest.map(({ cid }) => cid));
    // A log without times says no more than an older one with them whose operations are all it has.
    const older = !isAudit(newest) && history && all.slice(0, -1).findLast((one) => isAudit(one) && history.operations.every(({ cid }) => one.some((entry) => entry.cid === cid)));
    if (older) return { plc: checkLogOf(older, did, faults), faults, documents };
    const unknown = isAudit(newest) ? all.flat().find(({ cid }) => typeof cid === "string" && !known.has(cid)) : null;
    if (!unknown) return { plc: history, faults, documents };
    faults.push(`an older PLC log has the operation ${unknown.cid}, which the newest log lacks: there are two histories`);
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    faults.push(error.message);
  }
  return { plc: null, faults, documents };
}

function checkLogOf(entries, did, faults) {
  try {
    return checkLog(entries, did);
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    faults.push(`the PLC log is not valid: ${error.message}`);
    return null;
  }
}

const signatureLength = ({ sig }) => `the commit's field "sig" is malformed: it has ${sig.length} bytes instead of 64`;

/** Who signed a snapshot's commit, and whether that key follows from the DID: two findings. */
export async function judgeSignature(archive, manifest, commit, history) {
  if (!commit) return Array(2).fill(finding(null, "the commit cannot be read"));
  if (commit.sig.length !== 64) {
    return Array(2).fill(finding(false, signatureLength(commit)));
  }
  let evidence;
  try {
    evidence = await evidenceOf(archive, manifest.did, history);
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    const why = `the account's identity documents cannot be read: ${error.message}`;
    return [finding(null, why), finding(false, why)];
  }
  const { plc, faults, documents } = evidence;
  if (plc) {
    const signed = judgeByHistory(plc, commit);
    return [signed, signed.isHeld ? finding(true, "the key follows from the DID, by the PLC directory's log") : signed];
  }
  const identity = faults.length ? finding(false, faults[0]) : finding(null, "the archive has no history of the account's keys");
  const number = history.length - 1 - history.findIndex(({ cid }) => cid.text === manifest.cid.text);
  const named = documents.filter(({ document }) => document?.signingKey);
  const found = named.findLast(({ snapshot }) => snapshot <= number) ?? named.find(({ snapshot }) => snapshot > number);
  if (found) return [judgeByDocument(found.document, commit), identity];
  return [finding(null, manifest.doubts.includes("unsigned") ? "no key of the account was known when it was backed up"
    : `${manifest.isCAR ? "a CAR" : "the archive"} does not say which key the account had`), identity];
}

/** Doubts that speak against nobody. */
const ODD = {
  behind: "has a newer commit: its server named it, but sent this older one; the next backup asks again",
  future: "has a revision whose time is in the future",
};

/** Whether a snapshot follows from the one before it; `history` has the newest first. */
export function judgeContinuity(manifest, history) {
  if (manifest.unvouched === true) return finding(null, "no footer leads to it");
  const all = history.toReversed();
  const [accepted, revisions] = [{}, new Map()];
  const own = [];
  for (const [i, one] of all.entries()) {
    if (one.did !== manifest.did) continue;
    own.push([i, one]);
    for (const doubt of Array.isArray(one.accepted) ? one.accepted : []) accepted[doubt] = i;
  }
  const reasons = [];
  let [areAccepted, before, isFirst] = [true, null, true];
  for (const [i, one] of own) {
    if (one.unvouched === true) continue;
    const isThis = one.cid.text === manifest.cid.text;
    const say = (kind, text) => {
      if (!isThis) return;
      const isAccepted = (accepted[kind] ?? -1) >= i;
      areAccepted &&= isAccepted;
      reasons.push(text + (isAccepted ? ", which was accepted" : ""));
    };
    if (isThis) isFirst = before === null;
    if (one.rev !== undefined) {
      if (before?.rev !== undefined && one.rev < before.rev) {
        say("rollback", `its revision is older than that of the earlier snapshot ${before.number}: a rollback`);
      }
      const same = revisions.get(one.rev) ?? [];
      if (!same.some(({ commit }) => commit === one.commit.text)) {
        if (same.length) say("fork", `its commit differs from that of snapshot ${same.at(-1).number}, which has the same revision: a fork`);
        revisions.set(one.rev, [...same, { commit: one.commit.text, number: i + 1 }]);
      }
    }
    before = { rev: one.rev, number: i + 1 };
  }
  if (reasons.length) return finding(areAccepted, reasons.join("; "));
  // The list ends where a snapshot cannot be read.
  if (isFirst && all[0]?.prev) return finding(null, "a snapshot before it is lost, so it is not known what it follows from");
  const odd = Object.keys(ODD).filter((doubt) => manifest.doubts.includes(doubt)).map((doubt) => `; the account ${ODD[doubt]}`);
  return finding(true, (isFirst ? "it is the account's first snapshot" : "it follows from the one before it") + odd.join(""));
}

/**
 * What the ledger says of missing blobs: {reasons: CID → text, accepted: CIDs, listed: CIDs that
 * only the server named}, and what is damaged.
 */
export async function readLedger(archive, manifest) {
  const found = { reasons: new Map(), accepted: new Set(), listed: new Set(), damage: [] };
  const pages = async (links, take) => {
    for (const page of Array.isArray(links) ? links : []) {
      const body = page instanceof CID ? await archive.body(page.bytes, 1 << 20) : null;
      try {
        const entries = body && decode(body);
        if (!Array.isArray(entries)) throw new Malformed("");
        entries.forEach(take);
      } catch {
        found.damage.push(`a page of the blobs' ledger is damaged or lost: ${page?.text ?? ""}`);
      }
    }
  };
  await pages(manifest.missing, (entry) => {
    if (!(entry?.cid instanceof CID)) return;
    const { text } = entry.cid;
    found.reasons.set(text, String(entry.reason));
    if (entry.accepted) found.accepted.add(text);
    if (entry.referenced === false && archive.ordinals(entry.cid.bytes).length === 0) found.listed.add(text);
  });
  await pages(manifest.extras, (link) => {
    if (link instanceof CID && archive.ordinals(link.bytes).length === 0) found.damage.push(`the extra blob ${link.text} is lost`);
  });
  for (const link of Object.values(manifest.identity ?? {})) {
    if (link instanceof CID && !await archive.body(link.bytes, MAXIMUM_DOCUMENT)) found.damage.push(`the document ${link.text} is lost`);
  }
  return found;
}

/**
 * What is damaged of a snapshot: what the archive, its tree and its figures say. `found` is what
 * was counted.
 */
function damageOf(archive, repository, found) {
  const { manifest, faults, problems } = repository;
  const told = (sentences, further) => sentences.length > MAXIMUM_TOLD
    ? [...sentences.slice(0, MAXIMUM_TOLD), `${further}: ${sentences.length - MAXIMUM_TOLD}`] : sentences;
  const isWhole = problems.length === 0 && found.lost === 0;
  // A CAR says nothing of itself: what it lacks it never had.
  if (manifest.isCAR) manifest.complete = isWhole;
  const damage = [...archive.flaws, ...told(faults, "further problems of the tree")];
  if (manifest.complete && !isWhole) {
    damage.push(...new Set(problems));
    if (found.lost > 0) damage.push(found.lost === 1 ? "1 record is damaged or lost" : `${found.lost} records are damaged or lost`);
  }
  const { commit } = repository;
  if (commit && commit.sig.length !== 64) damage.push(signatureLength(commit));
  if (commit && (commit.did !== manifest.did || commit.rev !== manifest.rev)) damage.push("the manifest describes a commit other than the CAR's");
  const hasRightBlobs = found.blobs === undefined || (found.unreadable ? found.blobs >= manifest.blobs.referenced : found.blobs === manifest.blobs.referenced);
  const isRight = manifest.isCAR || repository.paths.length === manifest.counts.records && isWhole === manifest.complete && hasRightBlobs;
  if (!isRight && damage.length === 0) damage.push("the manifest's figures do not match the repository");
  if (isWhole && !manifest.isCAR && found.missing !== undefined && found.blobs - found.missing < manifest.blobs.held) {
    damage.push(`the manifest counts ${manifest.blobs.held} blobs, but only ${found.blobs - found.missing} are here`);
  }
  return damage.concat(found.damage ?? []);
}

/** The levels that the repository and its blobs decide. */
export function judgeContent(archive, repository, found) {
  const damage = damageOf(archive, repository, found);
  const { manifest } = repository;
  const count = found.unaccepted;
  const intact = damage.length ? finding(false, damage[0])
    : found.damagedBlobs ? finding(false, "blobs are damaged")
      : finding(true, found.areBlobsChecked ? "every byte matches its CID" : "the tree and every record match their CIDs; blobs are compared as they are shown");
  const wellFormed = finding(damage.length === 0 && manifest.complete,
    damage[0] ?? (manifest.complete ? "the tree is valid and complete" : "tree nodes or records are missing"));
  const listFault = manifest.blobs.listFault;
  const complete = count > 0 ? finding(false, count === 1 ? "1 blob is missing" : `${count} blobs are missing`)
    : listFault ? finding(false, `the server's list of blobs is incomplete: ${String(listFault.reason)}`)
      : !manifest.complete ? finding(false, "tree nodes or records are missing, which may refer to blobs that are not known")
        : found.unreadable && (manifest.unreadable?.partlySearched ?? 1) > 0
          ? finding(false, "records that cannot be read may refer to blobs that are not known")
          : finding(true, found.accepted ? "nothing is missing but what is accepted as lost" : "no blob is missing");
  return { damage, levels: { intact, "well-formed": wellFormed, complete } };
}

/**
 * What levels come to, in the words of `carpack verify`, the worst first; "checking" while
 * something is not known yet.
 */
export function verdictOf(levels, isDone) {
  const fails = (...names) => names.some((name) => levels[name]?.isHeld === false);
  if (fails("intact")) return "damaged";
  if (fails("signed", "identity-proven", "continuous")) return "not genuine";
  if (fails("well-formed", "complete")) return "incomplete";
  if (!isDone) return "checking";
  return levels.signed?.isHeld ? "intact" : "signature not known";
}
