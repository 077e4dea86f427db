// What each address of the page shows. Each view gets `view` (ask, did, name, summary) and gives elements.

import { picture, save } from "./blobs.js";
import { bars, heatMap } from "./charts.js";
import { copyable, counted, day, fill, h, moment, number, outside, size } from "./dom.js";
import { titleOf } from "./names.js";
import { mark } from "./proof.js";
import { light, place, postCard } from "./post.js";
import { blobOf, embedsOf } from "../account/shape.js";
import { highlight, richText } from "./text.js";
import { virtualList } from "./virtual.js";

/** A list of the records of a kind, as `draw` shows them. */
async function listOf(view, kind, draw, estimate) {
  const count = await view.ask("count", { kind });
  if (count === 0) return h("p", { class: "soft" }, "There is nothing here.");
  return virtualList(count, (start, amount) => view.ask("page", { kind, start, count: amount }), draw, estimate);
}

/** A choice of months, to go to one in a list; nothing where there is only one. */
async function jump(view, kind, list, perRow = 1) {
  const months = list.show ? await view.ask("months", { kind }) : [];
  if (months.length < 2) return null;
  const name = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "long", timeZone: "UTC" });
  return h("p", { class: "jump" }, h("label", { class: "soft small" }, "Go to ",
    h("select", { onchange: ({ target }) => list.show(Math.floor(Number(target.value) / perRow)) },
      months.map(({ month, at }) => h("option", { value: at }, name.format(Date.parse(`${month}-01T00:00:00Z`)))))));
}

/** The profile, and below it the posts. */
export async function posts(view, kind = "posts") {
  const list = await listOf(view, kind, (post) => postCard(view, post));
  return [kind === "posts" ? hero(view) : h("h2", null, "Replies"), await jump(view, kind, list), list];
}

function hero(view) {
  const { ask, summary, name, handle } = view;
  const value = summary.profile?.value;
  const [avatar, banner] = [blobOf(value?.avatar), blobOf(value?.banner)];
  return h("section", { class: "hero" },
    h("div", { class: "banner" }, banner && picture(ask, banner, { alt: "banner", isFixed: true })),
    h("div", { class: "who" },
      h("div", { class: "avatar" }, avatar && picture(ask, avatar, { alt: "avatar", isFixed: true })),
      h("h1", { dir: "auto" }, name),
      h("div", { class: "soft" }, handle ? `@${handle}` : summary.did),
      value?.description && h("p", { dir: "auto" }, richText(value.description, [])),
      h("p", { class: "soft small" }, `as of ${moment(Date.parse(summary.createdAt))}`,
        Date.parse(value?.createdAt) ? `, here since ${day(Date.parse(value.createdAt))}` : "", `, ${counted(summary.records, "record")}`),
      mark(view)));
}

/** All pictures and videos as a grid. */
export async function media(view) {
  const count = await view.ask("countMedia");
  if (count === 0) return [h("h2", null, "Media"), h("p", { class: "soft" }, "There is nothing here.")];
  const columns = innerWidth < 760 ? 3 : 4;
  const list = virtualList(Math.ceil(count / columns), (start, amount) =>
    view.ask("media", { start: start * columns, count: amount * columns })
      .then((items) => Array.from({ length: amount }, (_, i) => items.slice(i * columns, (i + 1) * columns))),
  (items) => h("div", { class: "grid" }, items.map((post) => tile(view, post))), 150);
  return [h("h2", null, "Media"), await jump(view, "media", list, columns), list];
}

function tile(view, post) {
  const { images, video } = embedsOf(post.value);
  const pictures = images.map((image) => ({ blob: blobOf(image?.image), alt: String(image?.alt ?? "") })).filter(({ blob }) => blob);
  const one = pictures[post.part];
  if (one) return picture(view.ask, one.blob, { alt: one.alt || day(post.time), open: () => light(view, pictures, post.part, post) });
  return h("a", { class: "picture", href: `#/at/${post.path}` }, h("span", { class: "why" }, "video", h("br"), day(post.time), video?.alt ? h("em", null, video.alt) : null));
}

/** The records of a collection, a row each. */
export async function collection(view, name) {
  return [h("h2", null, titleOf(name)), await listOf(view, name, (record) => name === "app.bsky.feed.post" ? postCard(view, record) : row(view, record), 60)];
}

function row(view, record) {
  const { value } = record;
  const subject = typeof value?.subject === "string" ? value.subject : value?.subject?.uri;
  const title = value?.name ?? value?.displayName ?? value?.title ?? value?.text;
  const target = typeof subject !== "string" ? null
    : subject.startsWith("did:") ? outside(`https://bsky.app/profile/${encodeURIComponent(subject)}`, subject) : place(view, subject);
  return h("div", { class: "row" },
    h("span", { dir: "auto" }, target ?? (typeof title === "string" && title ? title : record.rkey)),
    h("a", { class: "soft small", href: `#/at/${record.path}` }, day(record.time)));
}

/** One record: what it says, where it is, and its blobs. */
export async function record(view, path) {
  const found = await view.ask("record", { path });
  if (!found) return [h("h2", null, "No such record"), h("p", { class: "soft" }, `The snapshot that is shown has no record ${path}. An older one may have it: `, h("a", { href: "#/time" }, "look back"), ".")];
  return [
    found.collection === "app.bsky.feed.post" ? postCard(view, found, { isHere: true }) : h("h2", null, titleOf(found.collection)),
    h("dl", { class: "facts" },
      h("dt", null, "address"), h("dd", null, found.uri, " ", copyable(found.uri)),
      h("dt", null, "CID"), h("dd", null, found.cid ?? "lost", " ", found.cid && copyable(found.cid)),
      h("dt", null, "time"), h("dd", null, moment(found.time)),
      blobsOf(found.value).map((blob) => [h("dt", null, "blob"), h("dd", null, h("a", { href: "#", onclick: async (event) => {
        event.preventDefault();
        const reason = await save(view.ask, blob.cid, `${found.rkey}_${blob.cid.slice(-8)}`);
        if (reason) event.target.after(` is not in the archive: ${reason}`);
      } }, `${blob.type || "unknown type"}, ${size(blob.size)}`), " ", h("span", { class: "soft small" }, blob.cid))])),
    found.value ? h("div", { class: "tree", tabindex: 0 }, tree(view, found.value)) : h("p", { class: "warning" }, "This record is damaged, or cannot be read."),
  ];
}

function blobsOf(value, found = [], depth = 0) {
  const blob = blobOf(value);
  if (blob) found.push(blob);
  else if (value && typeof value === "object" && depth < 300) for (const item of Object.values(value)) blobsOf(item, found, depth + 1);
  return found;
}

/** A value as a readable tree, in which addresses can be followed. */
function tree(view, value, indent = "") {
  if (typeof value === "string") {
    if (value.startsWith(`at://${view.did}/`)) return [h("a", { href: `#/at/${value.slice(6 + view.did.length)}` }, JSON.stringify(value))];
    return [/^https?:\/\//.test(value) ? outside(value, JSON.stringify(value)) : JSON.stringify(value)];
  }
  if (value === null || typeof value !== "object") return [String(value)];
  const inner = `${indent}  `;
  const items = Array.isArray(value) ? value.map((item) => [null, item]) : Object.entries(value);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  if (items.length === 0 || indent.length > 500) return [open + close];
  return [open, items.map(([key, item], i) => ["\n", inner, key === null ? null : [h("span", { class: "key" }, JSON.stringify(key)), ": "], tree(view, item, inner), i + 1 < items.length ? "," : ""]), "\n", indent, close];
}

/** A post between what it answers and what answers it. */
export async function thread(view, path) {
  const { above, post, below } = await view.ask("thread", { path });
  if (!post) return record(view, path);
  return [
    h("h2", null, "Thread"),
    above.map((one) => one.path ? postCard(view, one) : h("p", { class: "soft small" }, "begins with ", place(view, one.uri), ", which is another account's")),
    postCard(view, post, { isHere: true }),
    below.map((one) => postCard(view, one)),
  ];
}

/** Search as one types. */
export async function search(view, query) {
  const results = h("div", { "aria-live": "polite" });
  let list = null;
  let turn = 0;
  const input = h("input", { type: "search", value: query, placeholder: "Words, \"a phrase\", has:image, lang:en, since:2024-01-01, in:like", "aria-label": "Search", autocomplete: "off", spellcheck: "false" });
  const run = async () => {
    const text = input.value.trim();
    const mine = ++turn;
    history.replaceState(null, "", `#/search/${encodeURIComponent(text)}`);
    list?.end();
    list = null;
    if (!text) {
      fill(results, h("p", { class: "soft" }, "Searches all texts: posts, descriptions of pictures, names, titles."));
      return;
    }
    const count = await view.ask("search", { query: text });
    if (mine !== turn) return;
    list = count ? virtualList(count, (start, amount) => view.ask("page", { kind: "search", start, count: amount }),
      (found) => found.collection === "app.bsky.feed.post" ? marked(postCard(view, found), text) : h("div", { class: "post" }, h("div", { class: "soft small" }, titleOf(found.collection)), row(view, found))) : null;
    fill(results, h("p", { class: "soft small" }, counted(count, "record")), list);
  };
  input.addEventListener("input", run);
  // Once it is on the page.
  requestAnimationFrame(() => {
    input.focus();
    run();
  });
  return [h("h2", null, "Search"), h("div", { class: "search" }, input), results];
}

/** A card in which the words that were searched for are marked. */
function marked(card, query) {
  const words = (query.match(/"[^"]*"|\S+/g) ?? []).filter((word) => !/^(has|lang|since|until|in|from):/i.test(word)).map((word) => word.replaceAll("\"", ""));
  for (const element of card.querySelectorAll(".text")) highlight(element, words);
  return card;
}

/** What the account is made of. */
export async function statistics(view) {
  const found = await view.ask("statistics");
  const latest = Object.keys(found.postsByYear).map(Number).sort((left, right) => right - left);
  const table = (title, entries) => entries.length > 0 && [h("h3", null, title), h("dl", { class: "facts" }, entries.map(([name, text]) => [h("dt", null, name), h("dd", null, text)]))];
  return [
    h("h2", null, "Statistics"),
    found.first && h("p", null, "The first post: ", h("a", { href: `#/at/${found.first.path}` }, day(found.first.time))),
    h("h3", null, "Posts in each month"), bars(found.months, "posts in each month"),
    latest.map((year) => heatMap(year, found.days)),
    table("Posts", latest.map((year) => [year, number(found.postsByYear[year])])),
    table("Likes given", Object.entries(found.likesByYear).reverse().map(([year, count]) => [year, number(count)])),
    table("Media", Object.entries(found.types).map(([type, { count, bytes }]) => [type || "unknown type", `${number(count)}, ${size(bytes)}`])),
    table("Records", found.collections.sort((left, right) => right.count - left.count).map(({ name, count }) => [h("a", { href: `#/browse/${name}` }, titleOf(name)), number(count)])),
  ];
}

/** The snapshots, and what was deleted between them. */
export async function time(view) {
  const snapshots = (await view.ask("history")).filter(({ did }) => did === view.did);
  const deleted = h("div");
  const show = h("button", { type: "button", onclick: async () => {
    show.disabled = true;
    const found = await view.ask("deletions");
    fill(deleted, h("p", { class: "soft small" }, counted(found.length, "deleted record")), found.map((item) => {
      const [collection, rkey] = item.path.split("/");
      const post = { ...item, collection, rkey };
      const note = `deleted between ${moment(Date.parse(item.lastSeen))} and ${moment(Date.parse(item.missingSince))}`;
      return collection === "app.bsky.feed.post" ? postCard(view, post, { note })
        : h("div", { class: "post" }, h("p", { class: "warning small" }, note), h("div", { class: "soft small" }, titleOf(collection)), row(view, post));
    }));
  } }, "Show everything that was ever deleted");
  return [
    h("h2", null, "Time"),
    snapshots.map((one, i) => {
      const changes = h("div", { class: "small" });
      const older = snapshots[i + 1];
      return h("div", { class: "post" },
        h("header", null,
          h("a", { class: "name", href: `#/snapshot/${one.cid}` }, moment(Date.parse(one.createdAt))),
          one.cid === view.summary.cid ? h("span", { class: "proof" }, "shown") : null),
        h("div", { class: "soft small" }, `${counted(one.records, "record")}, ${counted(one.blobs, "blob")}`, one.missing ? `, ${number(one.missing)} missing` : "", one.doubts.length ? `, ${one.doubts.join(", ")}` : ""),
        older && h("button", { type: "button", class: "small", onclick: async ({ target }) => {
          target.remove();
          const { added, changed, deleted: gone } = await view.ask("changes", { older: older.cid, newer: one.cid });
          fill(changes, [["+", added], ["~", changed], ["−", gone]].map(([sign, paths]) => paths.slice(0, 200).map((path) => h("div", null, `${sign} `, h("a", { href: `#/at/${path}` }, path)))
            .concat(paths.length > 200 ? h("div", { class: "soft" }, `and ${number(paths.length - 200)} more`) : [])));
        } }, "What changed"), changes);
    }),
    snapshots.length > 1 && h("p", null, show), deleted,
  ];
}

/** Every collection, whatever its lexicon. */
export function everything(view) {
  return [h("h2", null, "Everything"), view.summary.collections.map(({ name, count }) =>
    h("div", { class: "row" }, h("a", { href: `#/browse/${name}` }, titleOf(name) === name ? name : `${titleOf(name)} (${name})`), h("span", { class: "soft" }, number(count))))];
}
