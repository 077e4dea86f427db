// Time: the snapshots, what changed between them, what was deleted; and the account in figures.

import { bars, heatMap } from "./charts.js";
import { counted, date, fill, h, moment, number, size } from "./dom.js";
import { row } from "./lists.js";
import { titleOf } from "./names.js";
import { postCard } from "./post.js";

/** How many paths of a kind are listed. */
const LISTED = 300;

/** The snapshots, the newest first. */
export async function time(view) {
  const snapshots = (await view.ask("history")).filter(({ did }) => did === view.did);
  return [
    h("h1", null, "Time"),
    snapshots.length > 1 && h("p", null, h("a", { href: "#/deleted" }, "Everything that was ever deleted")),
    h("ol", { class: "plain timeline" }, snapshots.map((one, i) => {
      const older = snapshots[i + 1];
      const changes = h("div", { class: "small" });
      const isShown = one.cid === view.summary.cid;
      return h("li", { class: isShown ? "shown" : null },
        h("div", { class: "row" }, h("a", { class: "name", href: `#/snapshot/${one.cid}` }, moment(Date.parse(one.createdAt))), isShown ? h("span", { class: "soft small" }, "shown") : null),
        !one.isCAR && h("div", { class: "soft small" }, `${counted(one.records, "record")}, ${counted(one.blobs, "blob")}`, one.missing ? `, ${number(one.missing)} missing` : "", one.doubts.length ? `, ${one.doubts.join(", ")}` : ""),
        older && h("button", { type: "button", class: "small", onclick: async ({ target }) => {
          target.disabled = true;
          const found = await view.ask("changes", { older: older.cid, newer: one.cid });
          fill(changes, listed("New", found.added, (path) => `#/was/${one.cid}/${path}`), listed("Changed", found.changed, (path) => `#/change/${older.cid}/${one.cid}/${path}`),
            listed("Deleted", found.deleted, (path) => `#/was/${older.cid}/${path}`));
          target.remove();
          if (!changes.hasChildNodes()) fill(changes, h("p", { class: "soft" }, "No record changed."));
        } }, "What changed"), changes);
    })),
  ];
}

/** Paths by their collections, each a link. */
function listed(title, paths, address) {
  if (paths.length === 0) return null;
  return h("details", { open: paths.length <= 20 }, h("summary", null, `${title}: ${number(paths.length)}`),
    h("ul", { class: "paths" }, paths.slice(0, LISTED).map((path) => {
      const [collection, rkey] = path.split("/");
      return h("li", null, h("a", { href: address(path) }, `${titleOf(collection)} ${rkey}`));
    }), paths.length > LISTED && h("li", { class: "soft" }, `and ${number(paths.length - LISTED)} more`)));
}

/** What was deleted, as it was last. */
export async function deleted(view) {
  const found = await view.ask("deletions");
  return [h("h1", null, "Deleted"), h("p", { class: "soft" }, counted(found.length, "record"), " that older snapshots have and this one has not"),
    found.map((item) => {
      const slash = item.path.indexOf("/");
      const record = { ...item, collection: item.path.slice(0, slash), rkey: item.path.slice(slash + 1), uri: `at://${view.did}/${item.path}` };
      const note = `deleted between ${moment(Date.parse(item.lastSeen))} and ${moment(Date.parse(item.missingSince))}`;
      return record.collection === "app.bsky.feed.post" ? postCard(view, record, { note })
        : h("div", { class: "post" }, h("p", { class: "note small" }, note), h("div", { class: "soft small" }, titleOf(record.collection)), row(view, record));
    })];
}

/** What the account is made of. */
export async function statistics(view) {
  const found = await view.ask("statistics");
  const latest = Object.keys(found.postsByYear).map(Number).sort((left, right) => right - left);
  const table = (title, entries) => entries.length > 0 && [h("h2", null, title), h("dl", { class: "facts" }, entries.map(([name, text]) => [h("dt", null, name), h("dd", null, text)]))];
  return [
    h("h1", null, "Statistics"),
    view.summary.first && h("p", null, "The first post: ", h("a", { href: `#/at/${view.summary.first.path}` }, date(view.summary.first.time))),
    h("h2", null, "Posts in each month"), bars(found.months, "posts in each month"),
    h("h2", null, "Posts on each day"), latest.map((year) => heatMap(year, found.days)),
    table("Posts", latest.map((year) => [year, number(found.postsByYear[year])])),
    table("Likes given", Object.entries(found.likesByYear).reverse().map(([year, count]) => [year, number(count)])),
    table("Media", Object.entries(found.types).map(([type, { count, bytes }]) => [type || "unknown type", `${number(count)}, ${size(bytes)}`])),
    table("Records", found.collections.sort((left, right) => right.count - left.count).map(({ name, count }) => [h("a", { href: `#/browse/${name}` }, titleOf(name)), number(count)])),
  ];
}
