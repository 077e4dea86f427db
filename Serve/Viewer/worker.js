// What works in the background: it reads the archive, and answers the page's questions. Each message is {id, method,
// args}; each answer {id, result} or {id, error}. {progress} and {notice} come in between.

import { Account } from "./account/account.js";
import { changes, deletions, lastSeen } from "./account/deletions.js";
import { prove } from "./account/proving.js";
import { Archive } from "./archive/archive.js";
import { decode } from "./archive/cbor.js";
import { CID } from "./archive/cid.js";
import { readPrivate } from "./archive/private.js";
import { Repository } from "./archive/repository.js";
import { FileSource, Replaced, URLSource } from "./archive/source.js";

/** No larger blob is put into memory at once, in bytes. */
const MAXIMUM_BLOB = 512 << 20;
const state = { archive: null, history: [], accounts: new Map(), account: null, reasons: null, others: new Map() };

const tell = (message, transfer = []) => postMessage(message, transfer);

/** Once the first posts are on the page, the snapshot is checked, and what a search needs is made. */
function proveLater(account) {
  const { archive } = state;
  const isShown = () => state.account === account && state.archive === archive;
  setTimeout(async () => {
    if (!isShown()) return;
    try {
      account.proof ??= prove(archive, account, wholeHistory, (found) => {
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

/** All snapshots, the newest first. */
function wholeHistory() {
  state.whole ??= state.archive.history();
  return state.whole;
}

const methods = {
  /** Opens an archive, and its newest snapshot. */
  async open({ file, url }) {
    const source = file ? new FileSource(file) : await URLSource.open(url);
    state.archive = await Archive.open(source, (text) => tell({ notice: text }));
    for (const map of [state.accounts, state.others]) map.clear();
    state.whole = null;
    const newest = await state.archive.newest();
    if (!newest) throw new Error("the archive has no snapshot yet");
    state.history = [newest];
    const summary = await methods.select({ cid: newest.cid.text });
    return { name: source.name, size: source.size, summary };
  },

  /** All snapshots, the newest first. */
  async history() {
    state.history = await wholeHistory();
    return state.history.map((manifest) => ({
      cid: manifest.cid.text, did: manifest.did, handle: manifest.handle ?? null, rev: manifest.rev ?? null,
      createdAt: manifest.createdAt, records: manifest.counts.records, blobs: manifest.blobs.referenced,
      missing: manifest.blobs.missing, doubts: manifest.doubts, complete: manifest.complete,
    }));
  },

  /** Shows the account as a snapshot has it. */
  async select({ cid }) {
    const known = state.history.find((one) => one.cid.text === cid) ?? await state.archive.manifest(CID.parse(cid));
    if (!state.accounts.has(cid)) {
      const repository = await Repository.read(state.archive, known, (done, total) => tell({ progress: { what: "reading records", done, total } }));
      // A few are kept, for going back and forth.
      if (state.accounts.size >= 3) state.accounts.delete(state.accounts.keys().next().value);
      state.accounts.set(cid, new Account(repository));
    }
    state.account = state.accounts.get(cid);
    proveLater(state.account);
    state.reasons = null;
    const { repository, collections, did } = state.account;
    return {
      cid, did, handle: known.handle ?? null, pds: known.pds ?? null, rev: known.rev ?? null, createdAt: known.createdAt,
      commit: known.commit.text, doubts: known.doubts, blobs: known.blobs, hasPrivate: known.private instanceof CID,
      proof: state.account.found ?? null,
      records: repository.paths.length, profile: state.account.profile(), first: state.account.first(),
      collections: [...collections].map(([name, [start, end]]) => ({ name, count: end - start })),
    };
  },

  count: ({ kind }) => state.account.list(kind).length,
  page: ({ kind, start, count }) => state.account.page(state.account.list(kind), start, count),
  months: async ({ kind }) => state.account.months(kind === "media" ? (await state.account.media()).map(({ post }) => post) : state.account.list(kind)),
  countMedia: async () => (await state.account.media()).length,
  media: async ({ start, count }) => (await state.account.media()).slice(start, start + count).map(({ post, part }) => ({ ...state.account.record(post), part })),
  /** A record of the account that is shown, or of another one in the archive; null if there is none. */
  async record({ path, did }) {
    if (!did || did === state.account.did) return state.account.at(path);
    await methods.history();
    const manifest = state.history.find((one) => one.did === did);
    if (!manifest) return null;
    const known = state.others.get(did) ?? Repository.read(state.archive, manifest).then((repository) => new Account(repository));
    state.others.set(did, known);
    const record = (await known).at(path);
    return record && { ...record, name: manifest.handle ?? did };
  },
  /** A record as another snapshot has it; without one, as the last snapshot had it before it was deleted. */
  async recordIn({ path, cid }) {
    const { account, archive } = state;
    if (cid) {
      const manifest = await archive.manifest(CID.parse(cid));
      const record = new Account(await Repository.read(archive, manifest)).at(path);
      return record && { ...record, asOf: manifest.createdAt };
    }
    const all = (await wholeHistory()).filter((one) => one.did === account.did);
    const shown = all.findIndex((one) => one.cid.text === account.repository.manifest.cid.text);
    const found = await lastSeen(archive, all.slice(shown + 1), path, (done, total) => tell({ progress: { what: "looking through older snapshots", done, total } }));
    if (!found) return null;
    const record = new Account(found.repository).record(found.i);
    return { ...record, lastSeen: found.lastSeen, missingSince: found.missingSince ?? account.repository.manifest.createdAt };
  },

  /** What is known of accounts: by the other accounts of the archive, and by who was mentioned. */
  async people({ dids }) {
    await state.account.index();
    const all = await wholeHistory();
    return dids.map((did) => {
      const known = state.account.person(did);
      return { ...known, handle: known.handle ?? all.find((one) => one.did === did && one.handle)?.handle ?? null };
    });
  },

  privateData: () => readPrivate(state.archive, state.account.repository.manifest),
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
    await proof?.compareBlobs((done, total) => tell({ progress: { what: "checking pictures and videos", done, total } }));
  },

  /** A blob's bytes, or why it is not here. */
  async blob({ cid }) {
    let parsed;
    try {
      parsed = CID.parse(cid);
    } catch {
      return { reason: "its CID does not hold" };
    }
    const bytes = await state.archive.body(parsed.bytes, MAXIMUM_BLOB);
    return bytes ? { bytes: bytes.slice() } : { reason: await reason(cid) };
  },

  async deletions() {
    await methods.history();
    const { account } = state;
    const shown = account.repository.manifest.cid.text;
    const older = state.history.slice(state.history.findIndex((one) => one.cid.text === shown) + 1).filter((one) => one.did === account.did);
    const found = await deletions(state.archive, account, older, (done, total) => tell({ progress: { what: "reading snapshots", done, total } }));
    return found.map((item) => ({ ...item, value: JSON.parse(JSON.stringify(item.value, (_, value) =>
      typeof value === "bigint" ? String(value) : value instanceof Uint8Array ? { $bytes: value.length } : value)) }));
  },

  async changes({ older, newer }) {
    return changes(state.archive, await state.archive.manifest(CID.parse(older)), await state.archive.manifest(CID.parse(newer)));
  },
};

const REASONS = {
  "not-provided": "it was not among the files that were packed", mismatch: "something else was sent for it",
  lost: "it was lost with damage to an earlier archive", "not-found": "the server did not have it",
  refused: "the server refused to give it out", "server-error": "the server failed", "rate-limited": "the server was asked too often",
  "no-answer": "no whole answer came", "too-large": "what was sent was too large", "not-tried": "it had not been asked for",
};

/** Why a blob is not here, by the ledger. */
async function reason(cid) {
  if (!state.reasons) {
    state.reasons = new Map();
    for (const page of state.account.repository.manifest.missing) {
      const body = page instanceof CID ? await state.archive.body(page.bytes, 1 << 20) : null;
      const entries = body ? decode(body) : [];
      for (const entry of Array.isArray(entries) ? entries : []) {
        if (entry?.cid instanceof CID) state.reasons.set(entry.cid.text, REASONS[entry.reason] ?? String(entry.reason));
      }
    }
  }
  return state.reasons.get(cid) ?? "it was not among the files that were packed, or it is damaged";
}

onmessage = async ({ data: { id, method, args } }) => {
  try {
    const result = await methods[method](args ?? {});
    tell({ id, result }, result?.bytes ? [result.bytes.buffer] : []);
  } catch (error) {
    tell({ id, error: error?.message ?? String(error), isReplaced: error instanceof Replaced });
  }
};
