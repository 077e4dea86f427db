// What was deleted over time: records that an older snapshot has and the newest does not.

import { BlockTable } from "../archive/blocks.js";
import { Repository } from "../archive/repository.js";
import { plain, timeOf } from "./account.js";

/**
 * Everything that older snapshots have and `newest` has not, the last deleted first: the record as
 * it was, the last snapshot that has it, and the first that does not.
 */
export async function deletions(newest, snapshots, progress = (..._) => {}) {
  const { archive } = newest.repository;
  const table = new BlockTable();
  const seen = new Set();
  const found = [];
  let later = newest.repository;
  // From the newest on: the first snapshot that has a record is the last that had it.
  for (const [number, manifest] of snapshots.entries()) {
    progress(number, snapshots.length);
    const repository = await Repository.read(archive, manifest, () => {}, table);
    for (let i = 0; i < repository.paths.length; i++) {
      const path = repository.paths.at(i);
      if (newest.repository.indexOf(path) >= 0 || seen.has(path)) continue;
      seen.add(path);
      found.push({
        path, cid: repository.cid(i), value: plain(repository.value(i)), lastSeen: manifest.createdAt,
        snapshot: manifest.cid.text, missingSince: later.manifest.createdAt,
        time: timeOf(repository.value(i), path.slice(path.indexOf("/") + 1)),
      });
    }
    later = repository;
  }
  return found;
}

/**
 * A record that the shown snapshot has not, as the last older snapshot had it; null if none did.
 */
export async function lastSeen(archive, snapshots, path, progress = (..._) => {}) {
  const table = new BlockTable();
  let missingSince = null;
  for (const [number, manifest] of snapshots.entries()) {
    progress(number, snapshots.length);
    const repository = await Repository.read(archive, manifest, () => {}, table);
    const i = repository.indexOf(path);
    if (i >= 0) return { repository, i, lastSeen: manifest.createdAt, missingSince, snapshot: manifest.cid.text };
    missingSince = manifest.createdAt;
  }
  return null;
}

/** How two snapshots differ: paths that were added, changed or deleted. */
export async function changes(archive, older, newer) {
  const table = new BlockTable();
  const [before, after] = [await Repository.read(archive, older, () => {}, table), await Repository.read(archive, newer, () => {}, table)];
  const added = [];
  const changed = [];
  const deleted = [];
  let [i, j] = [0, 0];
  while (i < before.paths.length || j < after.paths.length) {
    const [left, right] = [before.paths.at(i), after.paths.at(j)];
    if (right === undefined || left < right) {
      deleted.push(left);
      i++;
    } else if (left === undefined || right < left) {
      added.push(right);
      j++;
    } else {
      if (before.cid(i) !== after.cid(j)) changed.push(left);
      i++;
      j++;
    }
  }
  return { added, changed, deleted };
}
