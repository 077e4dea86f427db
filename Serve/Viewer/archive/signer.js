// Who signed a commit: by a PLC log's history, or by a DID document. The sentences are those of
// `carpack verify`.

import { PublicKey } from "./ecdsa.js";
import { HOUR, timeText } from "./plc.js";

/**
 * A revision may be so much later than the end of its key's time; or than now, and earlier than its
 * key's time.
 */
const [FORMER_KEY_TOLERANCE, CLOCK_TOLERANCE] = [HOUR, HOUR / 6];
/** How many keys are tried on a commit. */
const MAXIMUM_KEYS = 256;
/** 2022-01-01: there was no repository before. */
const EARLIEST = 1_640_995_200_000_000;
const MAXIMUM_DOCUMENT = 256 << 10;
const DIGITS = "234567abcdefghijklmnopqrstuvwxyz";
const UNKNOWN = "a time that the PLC log does not give";

/** The microseconds of a revision; null for what is none. */
function revisionTime(rev) {
  if (typeof rev !== "string" || !/^[2-7a-j][2-7a-z]{12}$/.test(rev)) return null;
  return Number([...rev].reduce((value, digit) => value << 5n | BigInt(DIGITS.indexOf(digit)), 0n) >> 10n);
}

const from = (period) => period.from === null ? UNKNOWN : timeText(period.from);
const until = (period) => period.until === null ? period.isCurrent ? "now" : UNKNOWN : timeText(period.until);

/**
 * What stands behind the verdict about a revision of an odd time, and the time by which a key had
 * to hold.
 */
function judgeTime(commit, now, notBefore) {
  const time = revisionTime(commit.rev);
  if (time === null) return { time: null, odd: "; it has no revision, so the time is unknown" };
  if (time > now + CLOCK_TOLERANCE) return { time: now, odd: `; its revision is in the future, ${timeText(time)}` };
  if (time < Math.max(notBefore - CLOCK_TOLERANCE, EARLIEST)) {
    return { time: null, odd: `; its revision is before the account existed, ${timeText(time)}` };
  }
  return { time, odd: "" };
}

/** Which of the keys of an account's history signed a commit: {isHeld, why}. */
export function judgeByHistory(history, commit, now = Date.now() * 1000) {
  const { time, odd } = judgeTime(commit, now, history.created ?? EARLIEST);
  const found = (isHeld, why) => ({ isHeld, why: why + odd });
  if (commit.did !== history.did) return found(false, `the commit belongs to another account, ${commit.did}`);
  const { periods, tombstone } = history;
  const tried = new Set();
  let isExhausted = false;
  const isSignedBy = (key) => {
    if (tried.has(key.id)) return false;
    if (tried.size >= MAXIMUM_KEYS) {
      isExhausted = true;
      return false;
    }
    tried.add(key.id);
    return key.verifies(commit.sig, commit.unsigned);
  };
  const isLast = (period) => tombstone && period === periods.at(-1) && period.until === tombstone.time;
  const holds = (period) => {
    if (time === null) return true;
    if (period.from !== null && time < period.from - CLOCK_TOLERANCE) return false;
    return period.until === null || time <= period.until + (isLast(period) ? CLOCK_TOLERANCE : FORMER_KEY_TOLERANCE);
  };
  for (const period of periods.toReversed().filter(holds)) {
    if (!isSignedBy(period.key)) continue;
    return found(true, period.isCurrent ? `signed with the account's current key, valid since ${from(period)}`
      : `signed with the key that was valid from ${from(period)} until ${until(period)}`);
  }
  const lasting = new Set(periods.map(({ key }) => key.id));
  for (const { nullifiedBy, signingKey, cid } of history.operations) {
    if (!nullifiedBy || !signingKey || lasting.has(signingKey.id)) continue;
    if (isSignedBy(signingKey)) return found(false, `signed with a key of an operation that was nullified, ${cid}`);
  }
  for (const { key } of periods.toReversed()) {
    if (!isSignedBy(key)) continue;
    const own = periods.filter((one) => one.key.id === key.id);
    const before = own.findLast((one) => one.from === null || time === null || time >= one.from);
    if (!before) return found(false, `signed with a key that became valid only after the revision, at ${from(own[0])}`);
    return found(false, isLast(before) ? `signed with the account's last key after the account was deleted at ${until(before)}`
      : `signed with a former key after it was replaced: it was valid until ${until(before)}`);
  }
  if (isExhausted) return found(false, `signed with none of ${MAXIMUM_KEYS} of the account's keys; no more are tried`);
  if (tried.size === 0) return found(false, "the account names no key that could have signed it");
  return found(false, noKey(tried.size));
}

const noKey = (count) => count === 1 ? "not signed with the account's key" : `signed with none of the ${count} keys that the account has had`;

/**
 * Whether the key of a DID document signed a commit; weaker than a history, and the verdict says
 * so.
 */
export function judgeByDocument(document, commit, now = Date.now() * 1000) {
  const { odd } = judgeTime(commit, now, EARLIEST);
  if (commit.did !== document.id) return { isHeld: false, why: `the commit belongs to another account, ${commit.did}${odd}` };
  const isSigned = document.signingKey.verifies(commit.sig, commit.unsigned);
  return { isHeld: isSigned, why: (isSigned ? "signed with the key in the DID document, which does not prove the key's history" : noKey(1)) + odd };
}

/**
 * What a DID document says: {id, signingKey}, the key null if it names none; null for what is no
 * document.
 */
export function readDocument(bytes) {
  let value;
  try {
    value = bytes.length > MAXIMUM_DOCUMENT ? null : JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return null;
  }
  const id = value?.id;
  if (typeof id !== "string" || !/^did:[a-z]+:[A-Za-z0-9._:%-]*[A-Za-z0-9._-]$/.test(id)) return null;
  const methods = Array.isArray(value.verificationMethod) ? value.verificationMethod : [];
  const method = methods.find((one) => one?.id === "#atproto" || one?.id === `${id}#atproto`);
  return { id, signingKey: method && (method.controller === undefined || method.controller === id) ? keyOf(method) : null };
}

function keyOf({ type, publicKeyMultibase }) {
  switch (type) {
    case "Multikey": return PublicKey.fromMultikey(publicKeyMultibase);
    case "EcdsaSecp256k1VerificationKey2019": return PublicKey.fromLegacy(publicKeyMultibase, "k256");
    case "EcdsaSecp256r1VerificationKey2019": return PublicKey.fromLegacy(publicKeyMultibase, "p256");
    default: return null;
  }
}
