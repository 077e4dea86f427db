// What works in the background: it reads the archive, and answers the page's questions. Each
// message is {id, method, args}; each answer {id, result} or {id, error}. {progress} and {notice}
// come in between.

import { Account, timeOf } from "./account/account.js";
import { changes, deletions, lastSeen } from "./account/deletions.js";
import { preview } from "./account/preview.js";
import { prove } from "./account/proving.js";
import { BlockTable } from "./archive/blocks.js";
import { decode } from "./archive/cbor.js";
import { CID } from "./archive/cid.js";
import { readContext, readPiece } from "./archive/context.js";
import { MAXIMUM_HELD, TooLarge } from "./archive/media.js";
import { readPrivate } from "./archive/private.js";
import { Repository } from "./archive/repository.js";
import { listFolder, openAddresses, openFiles } from "./archive/opening.js";
import { FileSource, Replaced } from "./archive/source.js";
import { typeOf } from "./archive/types.js";

/**
 * No larger blob is put into memory at once, in bytes: those of several frames stay outside of it.
 */
const MAXIMUM_BLOB = MAXIMUM_HELD;
/**
 * How many snapshots are kept for going back and forth, and how many records they have together.
 */
const [KEPT, KEPT_RECORDS] = [3, 200_000];
/**
 * `archives` are all that were opened. `shown` is the snapshot that is shown, {archive, manifest};
 * `reading` gives its account, which is `account` once all of it is read; `others` are accounts
 * that were looked into.
 */
const state = { archives: [], accounts: new Map(), shown: null, reading: null, account: null, reasons: null, others: new Map() };
/** What is answered before all records of the account are read. */
const EARLY = new Set(["open", "folder", "select", "blob"]);

const tell = (message) => postMessage(message);

/**
 * Once the first posts are on the page, the snapshot is checked, and what a search needs is made.
 */
function proveLater(account) {
  const { archive } = account.repository;
  const isShown = () => state.account === account;
  setTimeout(async () => {
    if (!isShown()) return;
    try {
      account.proof ??= prove(archive, account, () => wholeHistory(archive), (found) => {
        account.found = found;
        if (isShown()) tell({ proof: found });
      });
      if (account.found) tell({ proof: account.found });
      const proof = await account.proof;
      if (isShown() && proof.isSmall && archive.source instanceof FileSource) await proof.compareBlobs();
    } catch (error) {
      if (!isShown()) return;
      tell({ proof: { cid: account.repository.manifest.cid.text, failure: error?.message ?? String(error) }, isReplaced: error instanceof Replaced });
    }
  }, 300);
}

/** All snapshots of an archive, the newest first. */
function wholeHistory(archive = state.account.repository.archive) {
  archive.whole ??= archive.history();
  return archive.whole;
}

/**
 * The newest snapshot of each account, and the archive that has it, over all archives that were
 * opened.
 */
async function newestOfAccounts() {
  const newest = new Map();
  for (const archive of state.archives) {
    for (const manifest of await wholeHistory(archive)) {
      const known = newest.get(manifest.did);
      if (!known || (manifest.rev ?? "") > (known.manifest.rev ?? "")) newest.set(manifest.did, { manifest, archive });
    }
  }
  return newest;
}

const progressOf = (what) => (done, total) => tell({ progress: { what, done, total } });

const methods = {
  /** Opens archives or CARs, and the newest snapshot of the first. */
  async open({ files, urls }) {
    const notice = (text) => tell({ notice: text });
    const archives = await (files ? openFiles : openAddresses)(files ?? urls, notice, progressOf("reading pictures and videos"));
    for (const map of [state.accounts, state.others]) map.clear();
    Object.assign(state, { archives, account: null, reading: null, shown: null });
    const newest = await archives[0].newest();
    if (!newest) throw new Error("the archive has no snapshot yet");
    const summary = await methods.select({ cid: newest.cid.text });
    const { name } = archives[0].source;
    return { name: archives.length > 1 ? `${name} and ${archives.length - 1} more` : name, size: archives.reduce((sum, { source }) => sum + source.size, 0), summary };
  },

  /** The archives in a folder of a web server, by their addresses. */
  folder: ({ url }) => listFolder(url),

  /** The accounts of all archives: the newest snapshot of each. */
  async accounts() {
    return [...(await newestOfAccounts()).values()].map(({ manifest: { cid, did, handle } }) => ({ cid: cid.text, did, handle: handle ?? null }));
  },

  /** All snapshots of the archive, the newest first. */
  async history() {
    return (await wholeHistory()).map((manifest) => ({
      cid: manifest.cid.text, did: manifest.did, handle: manifest.handle ?? null, rev: manifest.rev ?? null,
      createdAt: manifest.createdAt, records: manifest.counts.records, blobs: manifest.blobs.referenced,
      missing: manifest.blobs.missing, doubts: manifest.doubts, complete: manifest.complete, isCAR: Boolean(manifest.isCAR),
    }));
  },

  /**
   * Shows the account as a snapshot has it. Of a large one the answer is what can be said soon, and
   * {whole} tells the rest later.
   */
  async select({ cid }) {
    const { archive, manifest } = await find(cid);
    const shown = { archive, manifest };
    Object.assign(state, { shown, reasons: null });
    // The blocks of CARs are in one already.
    const table = archive.table ?? new BlockTable();
    const early = state.accounts.has(cid) ? null : await preview(archive, manifest, table);
    state.reading = readAccount(shown, table);
    if (!early) return summaryOf(await state.reading);
    state.reading.then((account) => {
      if (state.shown === shown) tell({ whole: summaryOf(account) });
    }, (error) => {
      if (state.shown === shown) tell({ failure: error?.message ?? String(error), isReplaced: error instanceof Replaced });
    });
    return { ...headOf(manifest), isPartial: true, proof: null, records: manifest.counts.records, first: null, collections: [], ...early };
  },

  count: ({ kind }) => state.account.list(kind).length,
  page: ({ kind, start, count }) => state.account.page(state.account.list(kind), start, count),
  months: async ({ kind }) => state.account.months(kind === "media" ? (await state.account.media()).map(({ post }) => post) : state.account.list(kind)),
  countMedia: async () => (await state.account.media()).length,
  media: async ({ start, count }) => (await state.account.media()).slice(start, start + count).map(({ post, part }) => ({ ...state.account.record(post), part })),
  /**
   * A record of the account that is shown, or of another one in the archive; null if there is none.
   */
  async record({ path, did }) {
    if (!did || did === state.account.did) return state.account.at(path);
    const found = (await newestOfAccounts()).get(did);
    if (!found) return othersPost(did, path);
    const known = state.others.get(did) ?? Repository.read(found.archive, found.manifest).then((repository) => new Account(repository));
    state.others.set(did, known);
    return (await known).at(path);
  },
  /**
   * A record as another snapshot has it; without one, as the last snapshot had it before it was
   * deleted.
   */
  async recordIn({ path, cid }) {
    const { account } = state;
    const { archive } = account.repository;
    if (cid) {
      const manifest = await archive.manifest(CID.parse(cid));
      const record = new Account(await Repository.read(archive, manifest)).at(path);
      return record && { ...record, asOf: manifest.createdAt };
    }
    const all = (await wholeHistory()).filter((one) => one.did === account.did);
    const shown = all.findIndex((one) => one.cid.text === account.repository.manifest.cid.text);
    const found = await lastSeen(archive, all.slice(shown + 1), path, progressOf("looking through older snapshots"));
    if (!found) return null;
    const record = new Account(found.repository).record(found.i);
    return { ...record, lastSeen: found.lastSeen, missingSince: found.missingSince ?? account.repository.manifest.createdAt };
  },

  /** What is known of accounts: by the other accounts of the archive, and by who was mentioned. */
  async people({ dids }) {
    await state.account.index();
    const [all, { people }] = [await newestOfAccounts(), await context()];
    return dids.map((did) => {
      const [known, seen] = [state.account.person(did), people.get(did)];
      return { ...known, handle: seen?.handle ?? known.handle ?? all.get(did)?.manifest.handle ?? null, name: seen?.name ?? null, avatar: seen?.avatar ?? null };
    });
  },

  privateData: () => readPrivate(state.account.repository.archive, state.account.repository.manifest),
  languages: () => state.account.languages(),
  members: ({ uri }) => state.account.members(uri),

  thread: ({ path }) => state.account.thread(path),
  statistics: () => state.account.statistics(),

  async search({ query }) {
    const found = await state.account.search(query);
    state.account.lists.set("search", found);
    return found.length;
  },

  /** Compares every blob with its CID. */
  async compareBlobs() {
    const proof = await state.account.proof;
    await proof?.compareBlobs(progressOf("checking pictures and videos"));
  },

  /** A blob with its media type, compared with its CID; or why it is not here. */
  async blob({ cid }) {
    let parsed;
    try {
      parsed = CID.parse(cid);
    } catch {
      return { reason: "its CID does not hold" };
    }
    const { archive } = state.shown;
    for (const one of archivesInOrder()) {
      try {
        const blob = await one.large(parsed.bytes, progressOf("reading a video"));
        const head = blob && new Uint8Array(await blob.slice(0, 64).arrayBuffer());
        if (blob) return { blob: blob.slice(0, blob.size, typeOf(head)) };
      } catch (error) {
        if (!(error instanceof TooLarge)) throw error;
        return { reason: error.message, isHere: true };
      }
    }
    const bytes = (await context()).pieces.has(cid) ? await readPiece(archive, parsed) : await bodyOf(parsed);
    return bytes ? { blob: new Blob([bytes], { type: typeOf(bytes) }) } : { reason: await reason(cid) };
  },

  async deletions() {
    const { account } = state;
    const all = await wholeHistory();
    const shown = account.repository.manifest.cid.text;
    const older = all.slice(all.findIndex((one) => one.cid.text === shown) + 1).filter((one) => one.did === account.did);
    return deletions(account, older, progressOf("reading snapshots"));
  },

  async changes({ older, newer }) {
    const { archive } = state.account.repository;
    return changes(archive, await archive.manifest(CID.parse(older)), await archive.manifest(CID.parse(newer)));
  },
};

/** The account of a snapshot, read whole; `table` may have some of its blocks. */
async function readAccount(shown, table) {
  const { archive, manifest } = shown;
  const { accounts } = state;
  const known = accounts.get(manifest.cid.text);
  const repository = known ? null : await Repository.read(archive, manifest, progressOf("reading records"), table);
  // The table of CARs is that of all their snapshots.
  if (table !== archive.table) repository?.keepRecords();
  const account = known ?? new Account(repository);
  const sizeOf = (some) => some.reduce((sum, { repository }) => sum + repository.paths.length, 0);
  while (!known && accounts.size && (accounts.size >= KEPT || sizeOf([...accounts.values(), account]) > KEPT_RECORDS)) accounts.delete(accounts.keys().next().value);
  accounts.set(manifest.cid.text, account);
  if (state.shown === shown) {
    state.account = account;
    proveLater(account);
  }
  return account;
}

/** What a manifest says of its snapshot, for the page. */
function headOf(manifest) {
  const { cid, did, handle, pds, rev, createdAt, commit, doubts, blobs, private: own, context: others } = manifest;
  return {
    cid: cid.text, did, handle: handle ?? null, pds: pds ?? null, rev: rev ?? null, createdAt, commit: commit.text, doubts, blobs,
    hasPrivate: own instanceof CID, hasContext: others instanceof CID,
  };
}

/** What the page shows of an account at once. */
function summaryOf(account) {
  const { repository, collections } = account;
  return {
    ...headOf(repository.manifest), proof: account.found ?? null, records: repository.paths.length, profile: account.profile(), first: account.first(),
    collections: [...collections].map(([name, [start, end]]) => ({ name, count: end - start })),
  };
}

/**
 * What app views showed of others, of the snapshot that is shown; nothing of one that is damaged.
 */
function context() {
  const { shown } = state;
  shown.context ??= readContext(shown.archive, shown.manifest).catch(() => ({ people: new Map(), posts: new Map(), pieces: new Set() }));
  return shown.context;
}

/** A post of an account that no archive has, as an app view showed it; null if none did. */
async function othersPost(did, path) {
  const uri = `at://${did}/${path}`;
  const seen = (await context()).posts.get(uri);
  if (!seen?.value) return null;
  const [collection, rkey] = path.split("/");
  return { path, collection, rkey, uri, cid: seen.cid, value: seen.value, time: timeOf(seen.value, rkey), seen: { at: seen.seenAt, from: seen.seenFrom } };
}

/** The snapshot with a CID, and the archive that has it. */
async function find(cid) {
  for (const archive of state.archives) {
    const manifest = await archive.manifest(CID.parse(cid)).catch((error) => { if (error instanceof Replaced) throw error; });
    if (manifest) return { archive, manifest };
  }
  throw new Error(`the snapshot ${cid} is damaged or lost`);
}

/** The archive that is shown, and then the others. */
const archivesInOrder = () => [state.shown.archive, ...state.archives.filter((one) => one !== state.shown.archive)];

/** A blob's bytes: of the archive that is shown, or else of another that was opened. */
async function bodyOf(cid) {
  for (const archive of archivesInOrder()) {
    const bytes = await archive.body(cid.bytes, MAXIMUM_BLOB);
    if (bytes) return bytes;
  }
  return null;
}

const REASONS = {
  "not-provided": "it was not among the files that were packed", mismatch: "something else was sent for it",
  lost: "it was lost with damage to an earlier archive", "not-found": "the server did not have it",
  refused: "the server refused to give it out", "server-error": "the server failed", "rate-limited": "the server was asked too often",
  "no-answer": "no complete answer arrived", "too-large": "what was sent was too large", "not-tried": "it had not been asked for",
};

/** Why a blob is not here, by the ledger. */
async function reason(cid) {
  if (!state.reasons) {
    state.reasons = new Map();
    const { archive, manifest } = state.shown;
    for (const page of manifest.missing) {
      const body = page instanceof CID ? await archive.body(page.bytes, 1 << 20) : null;
      const entries = body ? decode(body) : [];
      for (const entry of Array.isArray(entries) ? entries : []) {
        if (entry?.cid instanceof CID) state.reasons.set(entry.cid.text, REASONS[entry.reason] ?? String(entry.reason));
      }
    }
  }
  return state.reasons.get(cid) ?? `it was not among the files that were ${state.shown.manifest.isCAR ? "opened" : "packed"}, or it is damaged`;
}

onmessage = async ({ data: { id, method, args } }) => {
  try {
    if (!EARLY.has(method)) await state.reading;
    const result = await methods[method](args ?? {});
    tell({ id, result });
  } catch (error) {
    tell({ id, error: error?.message ?? String(error), isReplaced: error instanceof Replaced });
  }
};
