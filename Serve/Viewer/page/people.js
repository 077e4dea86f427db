// People and addresses: accounts by their handles, and at:// addresses as links that say what they
// lead to.

import { picture } from "./blobs.js";
import { h, outside } from "./dom.js";
import { titleOf } from "./names.js";

/** A DID as short as it can be told from others by eye. */
export const shortDID = (did) => did.length > 24 ? `${did.slice(0, 13)}…${did.slice(-4)}` : did;

const networkProfile = (did) => `https://bsky.app/profile/${encodeURIComponent(did)}`;

/**
 * A link to an account on the network; its handle appears once it is known, and the DID, shortened,
 * until then.
 */
export function person(view, did) {
  if (did === view.did) return h("a", { href: "#/" }, view.handle ? `@${view.handle}` : view.name);
  const link = outside(networkProfile(did), shortDID(did));
  nameOf(view, did).then((known) => {
    if (!known?.handle && !known?.name) return;
    link.textContent = [known.name, known.handle && `@${known.handle}`].filter(Boolean).join(" ");
    link.dir = "auto";
    link.title = did;
    if (known.avatar) link.prepend(h("span", { class: "avatar tiny-avatar", "aria-hidden": "true" }, picture(view.ask, { cid: known.avatar }, { isFixed: true })), " ");
  });
  return link;
}

/** The accounts that are asked about next, {dids, answer}; null if none are. */
let queue = null;

/**
 * What an account is called, {handle, name, avatar}; null if the archive does not say. What is
 * asked in one go is asked at once.
 */
function nameOf(view, did) {
  const known = view.people.get(did);
  if (known) return known;
  if (!queue) {
    const dids = [];
    queue = { dids, answer: Promise.resolve().then(() => {
      queue = null;
      return view.ask("people", { dids });
    }).catch(() => []) };
  }
  const place = queue.dids.push(did) - 1;
  const name = queue.answer.then((people) => people[place] ?? null);
  view.people.set(did, name);
  return name;
}

/** The parts of an at:// address: {did, collection, rkey}; null for what is none. */
export function parts(uri) {
  const [, did, collection, rkey] = /^at:\/\/([^/]+)\/([^/]+)\/([^/]+)$/.exec(uri) ?? [];
  return did ? { did, collection, rkey, path: `${collection}/${rkey}` } : null;
}

/**
 * Where the network shows a record; null for what it shows nowhere.
 * @param {{did?: any, collection?: any, rkey?: any}} record
 */
export function networkAddress({ did, collection, rkey }) {
  const [name, key] = [networkProfile(did), encodeURIComponent(rkey)];
  switch (collection) {
    case "app.bsky.feed.post": return `${name}/post/${key}`;
    case "app.bsky.graph.list": return `${name}/lists/${key}`;
    case "app.bsky.feed.generator": return `${name}/feed/${key}`;
    case "app.bsky.graph.starterpack": return `https://bsky.app/starter-pack/${encodeURIComponent(did)}/${key}`;
    case "app.bsky.actor.profile": return name;
    default: return null;
  }
}

const KINDS = {
  "app.bsky.feed.post": "post", "app.bsky.graph.list": "list", "app.bsky.feed.generator": "feed", "app.bsky.graph.starterpack": "starter pack", "app.bsky.actor.profile": "profile",
};

/** Where an at:// address leads: into the archive, or to the network, with who wrote it. */
export function place(view, uri) {
  const found = typeof uri === "string" ? parts(uri) : null;
  if (!found) return h("span", { class: "soft" }, typeof uri === "string" && /^did:[a-z]+:\S+$/.test(uri) ? person(view, uri) : "something that is no address");
  const kind = KINDS[found.collection] ?? titleOf(found.collection);
  if (found.did === view.did) return h("a", { href: `#/at/${found.path}` }, `an own ${kind}`);
  const address = networkAddress(found);
  return h("span", null, address ? outside(address, `a ${kind}`) : `a record (${kind})`, " by ", person(view, found.did));
}
