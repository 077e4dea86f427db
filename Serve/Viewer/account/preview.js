// What is shown of a large account before all of it is read: the profile, the pinned post, the
// newest posts.

import { Malformed } from "../archive/cid.js";
import { Descent } from "../archive/descent.js";
import { POST, recordOf, REPOST, split } from "./account.js";

/** Repositories up to so many bytes are read whole at once. */
const SMALL = 4 << 20;
/**
 * How many posts fill a large screen, and how many a small one; how many records are looked at for
 * them.
 */
const [POSTS, FEW_POSTS, RECORDS] = [12, 5, 600];
/**
 * After so many milliseconds a few posts are enough, and after so many none: where blocks lie in no
 * order, most of them are read by then.
 */
const [LONG, LONGEST] = [700, 3000];

/** Two rows of records as one, the last key first. */
async function* merged(left, right) {
  const heads = [await left.next(), await right.next()];
  const key = ({ done, value }) => done ? "" : split(value.path)[1];
  while (!heads[0].done || !heads[1].done) {
    const later = heads[0].done || key(heads[1]) > key(heads[0]) ? 1 : 0;
    yield heads[later].value;
    heads[later] = await [left, right][later].next();
  }
}

/**
 * The profile and newest posts {profile, pinned, posts}, read into `table`; null where that takes
 * no less than all.
 */
export async function preview(archive, manifest, table) {
  if (!((manifest.isCAR ? archive.length : manifest.car.bytes) > SMALL)) return null;
  const descent = new Descent(archive, manifest, table);
  const shown = (found) => found && recordOf(manifest.did, found);
  const found = { profile: null, pinned: null, posts: [] };
  try {
    const start = performance.now();
    const isEnough = (count) => count === POSTS || performance.now() > start + (count < FEW_POSTS ? LONGEST : LONG);
    let seen = 0;
    for await (const one of merged(descent.backwards(POST), descent.backwards(REPOST))) {
      if (one.path.startsWith(REPOST) || one.value?.reply === undefined) found.posts.push(shown(one));
      if (isEnough(found.posts.length) || ++seen === RECORDS) break;
    }
    found.profile = shown(await descent.at("app.bsky.actor.profile/self"));
    const own = `at://${manifest.did}/`;
    const pinned = found.profile?.value?.pinnedPost?.uri;
    if (typeof pinned === "string" && pinned.startsWith(own + POST)) found.pinned = shown(await descent.at(pinned.slice(own.length)));
  } catch (error) {
    // What is damaged is said once all is read.
    if (!(error instanceof Malformed)) throw error;
  }
  return found.posts.length ? found : null;
}
