// The log of the PLC directory, checked from the DID to its first operation and from each operation
// to the next, as `carpack verify` does. Source: https://web.plc.directory/spec/v0.1/did-plc

import { base32, CID, Malformed } from "./cid.js";
import { PublicKey } from "./ecdsa.js";
import { sha256 } from "./sha256.js";

export const HOUR = 3_600_000_000;
/** The longest time, in microseconds, after which an operation may still be taken back. */
const RECOVERY_WINDOW = 72 * HOUR;
const MAXIMUM_LOG = 4 << 20;
const MAXIMUM_OPERATION = 7500;
const MAXIMUM_ROTATION_KEYS = 10;
const FIELDS = {
  create: ["sig", "prev", "type", "handle", "service", "signingKey", "recoveryKey"],
  plc_operation: ["sig", "prev", "type", "services", "alsoKnownAs", "rotationKeys", "verificationMethods"],
  plc_tombstone: ["sig", "prev", "type"],
};

const isMap = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const utf8 = new TextEncoder();

/** Microseconds since 1970 of a time in RFC 3339 and UTC; null for what is none. */
export function microseconds(text) {
  const parts = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,19}))?Z$/.exec(text);
  if (!parts) return null;
  const whole = Date.parse(`${parts[1]}Z`);
  if (!(whole >= 0) || new Date(whole).toISOString().slice(0, 19) !== parts[1]) return null;
  return whole * 1000 + Number((parts[2] ?? "").slice(0, 6).padEnd(6, "0"));
}

/** Microseconds as RFC 3339, to the second. */
export const timeText = (time) => new Date(Math.floor(time / 1000)).toISOString().replace(/\.\d+Z$/, "Z");

/** The values of a JSON text: the items of a list, or one value after the other. */
function readJSON(text) {
  const values = [];
  try {
    const whole = JSON.parse(text);
    return Array.isArray(whole) ? whole : [whole];
  } catch {
    // One value after the other: each ends with the brace that closes it.
    let [depth, from, isText] = [0, 0, false];
    for (let i = 0; i < text.length; i++) {
      const char = text[i];
      if (isText) {
        if (char === "\\") i++;
        else if (char === "\"") isText = false;
      } else if (char === "\"") {
        isText = true;
      } else if (char === "{" || char === "[") {
        depth++;
      } else if ((char === "}" || char === "]") && --depth === 0) {
        values.push(JSON.parse(text.slice(from, i + 1)));
        from = i + 1;
      }
    }
    if (text.slice(from).trim()) throw new Malformed("the PLC log is not JSON");
    return values;
  }
}

/** DAG-CBOR of null, texts, lists and maps: operations hold nothing else. */
function encode(value) {
  const bytes = [];
  const head = (major, count) => {
    if (count < 24) return bytes.push(major << 5 | count);
    const size = count < 256 ? 0 : count < 65536 ? 1 : 2;
    bytes.push(major << 5 | 24 + size);
    for (let i = (1 << size) - 1; i >= 0; i--) bytes.push(count >>> 8 * i & 255);
  };
  const put = (item) => {
    if (item === null) {
      bytes.push(0xf6);
    } else if (typeof item === "string") {
      const text = utf8.encode(item);
      head(3, text.length);
      for (const byte of text) bytes.push(byte);
    } else if (Array.isArray(item)) {
      head(4, item.length);
      item.forEach(put);
    } else {
      const keys = Object.keys(item).map((key) => ({ key, bytes: utf8.encode(key) }))
        .sort(({ bytes: left }, { bytes: right }) => left.length - right.length || compare(left, right));
      head(5, keys.length);
      for (const { key } of keys) {
        put(key);
        put(item[key]);
      }
    }
  };
  put(value);
  return Uint8Array.from(bytes);
}

function compare(left, right) {
  for (let i = 0; i < left.length; i++) if (left[i] !== right[i]) return left[i] - right[i];
  return 0;
}

/** The text of the CID of a block of DAG-CBOR. */
const cidOf = (block) => new CID(Uint8Array.of(1, 0x71, 0x12, 0x20, ...sha256(block))).text;
/** The DID that an operation creates. */
const didOf = (block) => `did:plc:${base32(sha256(block)).slice(0, 24)}`;

/** 64 bytes in base64url without padding; null for anything else. */
function signatureOf(text) {
  if (typeof text !== "string" || !/^[A-Za-z0-9_-]{86}$/.test(text)) return null;
  const bytes = Uint8Array.from(atob(`${text.replaceAll("-", "+").replaceAll("_", "/")}==`), (char) => char.charCodeAt(0));
  // The last character has four bits that stand for nothing, and are zero.
  return bytes.length === 64 && "AQgw".includes(text[85]) ? bytes : null;
}

/** An operation, read strictly; throws a text for what is wrong with it. */
function readOperation(map) {
  const fields = FIELDS[map.type];
  const malformed = (field) => `is malformed: its field ${field}`;
  if (!Object.hasOwn(FIELDS, map.type)) throw malformed("type");
  const unknown = Object.keys(map).find((key) => !fields.includes(key));
  if (unknown !== undefined) throw `has an unknown field, "${unknown.slice(0, 64)}"`;
  if (Object.keys(map).length !== fields.length) throw "is malformed: a field is missing";
  if (map.prev !== null && typeof map.prev !== "string") throw malformed("prev");
  let keys = [];
  if (map.type === "create") {
    // The recovery key had the higher authority.
    keys = [map.recoveryKey, map.signingKey];
    for (const field of ["handle", "service"]) if (typeof map[field] !== "string") throw malformed(field);
  } else if (map.type === "plc_operation") {
    if (!Array.isArray(map.rotationKeys)) throw malformed("rotationKeys");
    keys = map.rotationKeys;
    if (keys.length > MAXIMUM_ROTATION_KEYS) throw `names ${keys.length} rotation keys, too many`;
    const areTexts = (values) => values.every((value) => typeof value === "string");
    if (!Array.isArray(map.alsoKnownAs) || !areTexts(map.alsoKnownAs)) throw malformed("alsoKnownAs");
    if (!isMap(map.verificationMethods) || !areTexts(Object.values(map.verificationMethods))) throw malformed("verificationMethods");
    const isService = (one) => isMap(one) && Object.keys(one).sort().join() === "endpoint,type" && areTexts(Object.values(one));
    if (!isMap(map.services) || !Object.values(map.services).every(isService)) throw malformed("services");
  }
  const rotationKeys = keys.map((text) => PublicKey.fromDIDKey(text));
  if (rotationKeys.includes(null)) throw malformed(map.type === "create" ? "recoveryKey or signingKey" : "rotationKeys");
  const signature = signatureOf(map.sig);
  const block = signature ? encode(map) : null;
  if (!block) throw "has a malformed signature: it must be 64 bytes in base64url without padding";
  if (block.length > MAXIMUM_OPERATION) throw `has ${block.length} bytes; the directory accepts at most ${MAXIMUM_OPERATION}`;
  const { sig: _, ...unsigned } = map;
  const signed = encode(unsigned);
  const text = map.type === "create" ? map.signingKey : map.verificationMethods?.atproto;
  return {
    type: map.type, prev: map.prev, rotationKeys, cid: cidOf(block), did: didOf(block), signingKey: PublicKey.fromDIDKey(text),
    /** The place of the first of these keys that signed it; -1 for none. */
    signer: (candidates) => candidates.findIndex((key) => key.verifies(signature, signed)),
  };
}

/** Reads a log: its entries, as far as their form goes; throws `Malformed`. */
export function readLog(bytes, did) {
  if (bytes.length > MAXIMUM_LOG) throw new Malformed(`the PLC log is over ${MAXIMUM_LOG} bytes`);
  let values;
  try {
    values = readJSON(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new Malformed("the PLC log is not JSON");
  }
  return values.map((item) => {
    const isAudit = isMap(item?.operation);
    const map = isAudit ? item.operation : item;
    if (!isMap(map) || (!isAudit && map.sig === undefined) || (isAudit && typeof item.did !== "string")) {
      throw new Malformed("the PLC log is not a list of operations");
    }
    if (isAudit && item.did !== did) throw new Malformed(`the PLC log is about another account, ${item.did.slice(0, 200)}`);
    return { map, isAudit, createdAt: isAudit ? String(item.createdAt ?? "") : null, isNullified: item.nullified === true, cid: isAudit ? item.cid : null };
  });
}

/**
 * The proven history of a `did:plc`: its operations, and the periods in which each signing key
 * held. Throws `Malformed` with the first rule that is broken. Times, and that nothing follows the
 * last operation, are the directory's word.
 */
export function checkLog(entries, did) {
  if (!did.startsWith("did:plc:")) throw new Malformed("the PLC log belongs to no did:plc");
  if (entries.length === 0) throw new Malformed("the PLC log is empty");
  const operations = [];
  let standing = [];
  for (const [index, entry] of entries.entries()) {
    try {
      const operation = readOperation(entry.map);
      if (entry.isAudit && entry.cid !== operation.cid) throw "does not hash to the CID that the directory gives for it";
      operation.time = entry.isAudit ? microseconds(entry.createdAt) : null;
      if (entry.isAudit && operation.time === null) throw "has no readable time";
      const before = operations.at(-1)?.time ?? null;
      if (operation.time !== null && before !== null && operation.time < before) throw "is older than the one before it";
      standing = follow(operation, operations, standing, did);
      operations.push(operation);
    } catch (error) {
      if (typeof error !== "string") throw error;
      throw new Malformed(`operation ${index + 1} of the PLC log ${error}`);
    }
  }
  for (const [index, { isAudit, isNullified }] of entries.entries()) {
    if (!isAudit || isNullified === Boolean(operations[index].nullifiedBy)) continue;
    throw new Malformed(`operation ${index + 1} of the PLC log ${isNullified ? "is marked as nullified, but no operation nullified it" : "was nullified by a later one, but is not marked as nullified"}`);
  }
  return { did, operations, ...periodsOf(standing) };
}

/** Does what the directory did when an operation came in; answers which operations stand then. */
function follow(operation, operations, standing, did) {
  if (operations.length === 0) {
    if (operation.prev !== null || operation.type === "plc_tombstone") throw "is the first, but does not create a DID";
    if (operation.did !== did) throw `creates another account, ${operation.did}`;
    operation.rank = operation.signer(operation.rotationKeys);
    if (operation.rank < 0) throw "is not signed with a rotation key of the operation before it";
    return [operation];
  }
  if (operation.type === "create") throw "has the form of 2022, which only the first operation may have";
  const previous = operations.find(({ cid }) => cid === operation.prev);
  if (!previous) throw "follows an operation that is not in the log";
  if (previous.type === "plc_tombstone") throw "follows the operation that deleted the account";
  const place = standing.indexOf(previous);
  if (place < 0) throw "follows an operation that was nullified";
  const keys = previous.rotationKeys;
  const disputed = standing[place + 1];
  operation.rank = operation.signer(disputed ? keys.slice(0, disputed.rank) : keys);
  if (operation.rank < 0) {
    const isLower = disputed && operation.signer(keys.slice(disputed.rank)) >= 0;
    throw isLower ? "nullifies operations, but is not signed with a rotation key of higher authority"
      : "is not signed with a rotation key of the operation before it";
  }
  if (disputed && operation.time !== null && disputed.time !== null && operation.time > disputed.time + RECOVERY_WINDOW) {
    throw "nullifies an operation that was older than 72 hours";
  }
  for (const one of standing.slice(place + 1)) one.nullifiedBy = operation;
  return [...standing.slice(0, place + 1), operation];
}

/** Which signing key held when: neighbours that name the same key are one period. */
function periodsOf(standing) {
  const tombstone = standing.at(-1).type === "plc_tombstone" ? standing.at(-1) : null;
  const periods = [];
  let previous = null;
  for (const [i, { type, time, signingKey }] of standing.entries()) {
    if (type === "plc_tombstone") continue;
    const next = standing[i + 1];
    if (!signingKey) {
      previous = null;
      continue;
    }
    const from = previous === signingKey.id ? periods.pop().from : time;
    periods.push({ key: signingKey, from, until: next ? next.time : null, isCurrent: !next });
    previous = signingKey.id;
  }
  return { periods, tombstone, created: standing[0].time };
}
