// What is proven of the snapshot that is shown: the mark beside its name, the banner over a damaged
// one, the page of levels.

import { counted, copyable, eachOnce, h, number, size } from "./dom.js";
import { titleOf } from "./names.js";

/** Each verdict: its sign, its class, and what it means. */
const VERDICTS = {
  checking: ["…", "", "Being checked. What is shown was compared with its CID."],
  intact: ["✓", "good", "Undamaged, complete, and signed with the account's key."],
  "signature not known": ["○", "", "Undamaged and complete. The archive does not say which key the account had, so nobody can tell who signed it."],
  incomplete: ["!", "warn", "Undamaged, but something that the account refers to is not in the archive."],
  "not genuine": ["✕", "bad", "This was not made by the account, or its history does not hold."],
  damaged: ["✕", "bad", "Part of the archive is not what was written."],
};
const LEVELS = [
  ["intact", "every byte matches the CID that it is stored under"], ["well-formed", "the tree of records follows its rules and is complete"],
  ["signed", "a key of the account signed the commit"], ["identity-proven", "that key follows from the DID, back to its first operation"],
  ["continuous", "the snapshot follows from the one before it"], ["complete", "no blob is missing"],
];

const verdictOf = ({ summary }) => summary.proof?.failure ? "checking" : summary.proof?.verdict ?? "checking";

/** The verdict as a link to what is behind it. */
export function mark(view) {
  const verdict = verdictOf(view);
  const [sign, kind, meaning] = VERDICTS[verdict];
  const isRunning = !view.summary.proof?.isDone && !view.summary.proof?.failure;
  const text = verdict === "checking" ? view.summary.proof?.failure ? "not checked" : "checking …" : isRunning ? `${verdict}, still checking …` : verdict;
  return h("a", { class: `proof ${kind}`, "data-proof": "mark", href: "#/proof", title: meaning }, h("span", { "aria-hidden": "true" }, sign), ` ${text}`);
}

/**
 * What is above every view of an archive that is not what it should be; nothing to see for others.
 */
export function banner(view) {
  const { proof } = view.summary;
  const verdict = verdictOf(view);
  if (verdict === "damaged") {
    const { remains } = proof;
    return h("section", { class: "banner-box bad", "data-proof": "banner", role: "alert" },
      h("p", { class: "large" }, "This archive is damaged"),
      remains && h("p", { class: "large" }, `${number(remains.records)} of ${counted(remains.of, "record")} can be read`),
      remains && monthsLost(remains.months),
      !remains && h("p", null, proof.damage[0] ?? proof.levels.intact.why),
      h("p", null, "A copy, or the account's server, may have what is lost: ", h("code", null, `carpack repair ${view.file.name}`), " ", copyable(`carpack repair ${view.file.name}`)),
      h("p", null, h("a", { href: "#/proof" }, "What was found")));
  }
  if (verdict === "not genuine") {
    const level = ["signed", "identity-proven", "continuous"].find((name) => proof.levels[name]?.isHeld === false);
    return h("section", { class: "banner-box bad", "data-proof": "banner", role: "alert" },
      h("p", { class: "large" }, "This archive is not genuine"),
      h("p", null, `${sentence(proof.levels[level].why)}. `, h("a", { href: "#/proof" }, "What was found")));
  }
  return h("div", { "data-proof": "banner", hidden: true });
}

const sentence = (text) => text[0].toUpperCase() + text.slice(1);

/** Of which months records are lost, by kind. */
function monthsLost(months) {
  if (months.length === 0) return null;
  const name = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "long", timeZone: "UTC" });
  const text = (month) => name.format(Date.parse(`${month}-01T00:00:00Z`));
  const span = ({ from, to }) => from && to ? from === to ? text(from) : `${text(from)} to ${text(to)}` : from ? `from ${text(from)} on` : to ? `up to ${text(to)}` : "at unknown times";
  const kinds = new Map();
  for (const one of months) kinds.set(one.collection, [...kinds.get(one.collection) ?? [], span(one)]);
  return h("ul", null, [...kinds].map(([collection, spans]) =>
    h("li", null, `${titleOf(collection)}: lost or in doubt ${[...new Set(spans)].slice(0, 8).join(", ")}${spans.length > 8 ? " and others" : ""}`)));
}

/** The page of levels. */
export function page(view) {
  return [h("h1", null, "Proof"), levels(view)];
}

/** The levels with their evidence, and what to do about what is wrong. */
export function levels(view) {
  const { proof, cid, commit, did } = view.summary;
  const verdict = verdictOf(view);
  const word = (one) => one === undefined ? proof?.failure ? ["–", "not checked"] : ["…", "being checked"] : one.isHeld === null ? ["–", "not known"] : one.isHeld ? ["✓", "yes"] : ["✕", "no"];
  const blobs = proof?.blobs;
  return h("div", { "data-proof": "levels" },
    proof?.failure && h("p", { class: "warning", role: "alert" }, `It could not be checked: ${proof.failure}`),
    h("p", null, h("strong", null, verdict === "checking" && proof?.failure ? "not checked" : verdict), ". ", VERDICTS[verdict][2]),
    h("ul", { class: "levels" }, LEVELS.map(([name, meaning]) => {
      const one = proof?.levels?.[name];
      const [sign, text] = word(one);
      return h("li", { class: one?.isHeld === true ? "good" : one?.isHeld === false ? "bad" : "soft" },
        h("span", { class: "sign", "aria-hidden": "true" }, sign),
        h("div", null, h("strong", null, name), h("span", { class: "hidden" }, `: ${text}`),
          h("div", { class: "small" }, one ? one.why : `${text}: ${meaning}`)));
    })),
    blobs && blobs.count > 0 && blobs.compared < blobs.count && proof.isDone && h("p", null,
      `${number(blobs.compared)} of ${counted(blobs.count, "picture or video", "pictures and videos")} were compared with their CIDs. `,
      h("button", { type: "button", onclick: ({ target }) => { target.disabled = true; view.ask("compareBlobs"); } }, `Compare all (${size(blobs.bytes)})`)),
    proof?.damage?.length > 0 && [h("h2", null, "Damage"), h("ul", { class: "small" }, eachOnce(proof.damage).map((what) => h("li", null, what)))],
    h("h2", null, "What it is proven of"),
    h("dl", { class: "facts" },
      h("dt", null, "account"), h("dd", null, did, " ", copyable(did)),
      h("dt", null, "commit"), h("dd", null, commit, " ", copyable(commit)),
      h("dt", null, "snapshot"), h("dd", null, cid, " ", copyable(cid))),
    h("p", { class: "soft small" }, "This page reads what it shows. ", h("code", null, "carpack verify"),
      " reads every byte of the file, checks all snapshots and the digest of the repository as it came in. Times in the account's history are the word of its directory."));
}
