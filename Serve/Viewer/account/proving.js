// Checks a snapshot step by step while the page is used, the most telling first; what is known is
// told after each step.

import { BlockTable } from "../archive/blocks.js";
import { CID } from "../archive/cid.js";
import { isLarge, largeBlob } from "../archive/media.js";
import { release } from "../archive/memory.js";
import { judgeContent, judgeContinuity, judgeSignature, readLedger, verdictOf } from "../archive/proof.js";
import { split, tidTime } from "./account.js";

/**
 * How much is read at once to compare blobs with their CIDs, in bytes, and how much a file of its
 * own is counted as.
 */
const [AT_ONCE, OWN_FILE] = [2 << 20, 1 << 17];
/** Blobs of a file on this device are compared without being asked for up to so many bytes. */
const COMPARED_UNASKED = 64 << 20;

/**
 * Checks an account's snapshot. `tell` is called with the state after each step: {verdict, isDone,
 * levels, damage, remains, blobs}; `history` gives all snapshots, the newest first.
 */
export async function prove(archive, account, history, tell) {
  const { repository } = account;
  const { manifest } = repository;
  const state = { cid: manifest.cid.text, levels: {}, damage: [], isDone: false, remains: null, blobs: null };
  const found = { lost: 0 };
  const judge = () => {
    const { damage, levels } = judgeContent(archive, repository, found);
    state.damage = damage;
    // What is not known yet counts for nothing, unless it is bad already.
    for (const [name, one] of Object.entries(levels)) if (found.missing !== undefined || damage.length && name !== "complete") state.levels[name] = one;
  };
  const say = () => tell({ ...state, verdict: verdictOf(state.levels, state.isDone) });
  const remains = (lost) => ({
    records: repository.paths.length - lost.length, of: manifest.isCAR ? repository.paths.length : manifest.counts.records, months: lostMonths(repository, lost),
  });
  if (repository.problems.length) state.remains = remains([]);
  judge();
  say();
  const all = await history();
  state.levels.continuous = judgeContinuity(manifest, all);
  [state.levels.signed, state.levels["identity-proven"]] = await judgeSignature(archive, manifest, repository.commit, all);
  say();
  const lost = await repository.settle();
  await archive.checkBlocks?.();
  found.lost = lost.length;
  if (repository.problems.length || lost.length) state.remains = remains(lost);
  judge();
  say();
  await account.index();
  const ledger = await readLedger(archive, manifest);
  const [blobs, missing] = [[], []];
  for (const text of account.blobs) {
    const cid = parsed(text);
    if (!cid) continue;
    blobs.push(text);
    if (archive.ordinals(cid.bytes).length === 0) missing.push(text);
  }
  Object.assign(found, {
    blobs: blobs.length, missing: missing.length, unreadable: account.unreadable, damage: ledger.damage, damagedBlobs: 0,
    accepted: [...missing, ...ledger.listed].filter((cid) => ledger.accepted.has(cid)).length,
    unaccepted: [...missing, ...ledger.listed].filter((cid) => !ledger.accepted.has(cid)).length,
  });
  state.blobs = { count: blobs.length - missing.length, bytes: manifest.blobs.heldBytes ?? 0, compared: 0 };
  judge();
  state.isDone = true;
  say();
  return {
    /** Compares every blob with its CID; `progress` is called with how many are done. */
    async compareBlobs(progress = (..._) => {}) {
      state.blobs.compared = 0;
      const held = [];
      for (const text of blobs) {
        const [ordinal] = archive.ordinals(CID.parse(text).bytes);
        if (ordinal !== undefined) held.push({ text, ordinal });
      }
      held.sort((left, right) => left.ordinal - right.ordinal);
      const broken = [];
      for (const batch of batches(archive, held)) {
        progress(state.blobs.compared, held.length);
        const table = new BlockTable();
        const some = batch.map(({ text }) => CID.parse(text));
        const large = some.filter(({ bytes }) => archive.firsts && archive.ordinals(bytes).some((ordinal) => isLarge(archive, ordinal)));
        for (const { bytes, text } of large) if (!await largeBlob(archive, bytes, undefined, false)) broken.push(text);
        const small = some.filter((one) => !large.includes(one));
        await archive.load(small.flatMap(({ bytes }) => archive.ordinals(bytes)), table);
        for (const { bytes, text } of small) {
          const number = table.find(bytes);
          if ((number < 0 || table.matches(number) === false) && !await archive.body(bytes)) broken.push(text);
        }
        table.pages.forEach(release);
        state.blobs.compared += batch.length;
        await new Promise((resolve) => setTimeout(resolve));
      }
      found.damagedBlobs = broken.length;
      found.areBlobsChecked = true;
      judge();
      say();
    },
    isSmall: (manifest.blobs.heldBytes ?? Infinity) <= COMPARED_UNASKED,
  };
}

/**
 * Blobs in their order, as many together as are read at once: a frame of many small ones is read
 * once.
 */
function* batches(archive, blobs) {
  let [batch, bytes, last] = [[], 0, null];
  for (const blob of blobs) {
    const frame = archive.firsts ? archive.frameOf(blob.ordinal) : null;
    const length = frame === null ? OWN_FILE : frame === last ? 0 : archive.lengths[frame];
    if (batch.length && bytes + length > AT_ONCE) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(blob);
    bytes += length;
    last = frame;
  }
  if (batch.length) yield batch;
}

function parsed(text) {
  try {
    return CID.parse(text);
  } catch {
    return null;
  }
}

/**
 * Of which months records are lost: {collection, from, to}, months or null where that is open; by
 * the records beside the gaps.
 */
function lostMonths(repository, lost) {
  const { paths, gaps } = repository;
  const month = (path) => {
    const time = path === undefined ? NaN : tidTime(split(path)[1]);
    return Number.isNaN(time) ? null : new Date(time).toISOString().slice(0, 7);
  };
  const found = [];
  for (const i of lost) found.push({ collection: split(paths.at(i))[0], from: month(paths.at(i)), to: month(paths.at(i)) });
  for (const at of gaps) {
    const [before, after] = [paths.at(at - 1), paths.at(at)];
    const [one, other] = [before && split(before)[0], after && split(after)[0]];
    if (one === other && one) {
      found.push({ collection: one, from: month(before), to: month(after) });
    } else {
      if (one) found.push({ collection: one, from: month(before), to: null });
      if (other) found.push({ collection: other, from: null, to: month(after) });
    }
  }
  const key = ({ collection, from, to }) => `${collection} ${from} ${to}`;
  const distinct = [...new Map(found.map((one) => [key(one), one])).values()];
  return distinct.sort((left, right) => key(left) < key(right) ? -1 : 1).slice(0, 500);
}
