// The account: its profile, its posts and its replies.

import { blobOf } from "../account/shape.js";
import { picture } from "./blobs.js";
import { counted, date, h, moment, number } from "./dom.js";
import { jump, listOf } from "./lists.js";
import { parts } from "./people.js";
import { postCard, postOrRepost } from "./post.js";
import { mark } from "./proof.js";
import { plainText } from "./text.js";
import { virtualList } from "./virtual.js";

/** The profile, the pinned post, and below them the posts. */
export async function posts(view) {
  if (view.summary.isPartial) return firstPosts(view);
  const [list, pinned] = await Promise.all([listOf(view, "posts", (record) => postOrRepost(view, record), { label: "Posts" }), pinnedPost(view)]);
  return [hero(view), pinned, await jump(view, "posts", list), list];
}

/** The newest posts, while the rest is being read. */
function firstPosts(view) {
  const { pinned, posts: some } = view.summary;
  const list = virtualList(some.length, async (start, count) => some.slice(start, start + count), (record) => postOrRepost(view, record), { label: "Posts" });
  return [hero(view), pinned && h("section", { "aria-label": "Pinned post" }, postCard(view, pinned, { note: "Pinned" })),
    // Where the choice of months will be.
    h("p", { class: "jump" }, h("label", { class: "soft small" }, "Go to ", h("select", { disabled: true }, h("option", null, "…")))), list];
}

/** The replies. */
export async function replies(view) {
  const list = await listOf(view, "replies", (post) => postCard(view, post), { label: "Replies" });
  return [h("h1", null, "Replies"), await jump(view, "replies", list), list];
}

async function pinnedPost(view) {
  const found = parts(view.summary.profile?.value?.pinnedPost?.uri ?? "");
  if (!found || found.did !== view.did) return null;
  const post = await view.ask("record", { path: found.path });
  return post && h("section", { "aria-label": "Pinned post" }, postCard(view, post, { note: "Pinned" }));
}

function hero(view) {
  const { ask, summary, name, handle } = view;
  const value = summary.profile?.value;
  const [avatar, banner] = [blobOf(value?.avatar), blobOf(value?.banner)];
  const count = (collection) => summary.collections.find((one) => one.name === collection)?.count ?? 0;
  const figure = (amount, one, many, address) => amount > 0 && h("a", { href: `#/${address}` }, h("strong", null, number(amount)), ` ${amount === 1 ? one : many}`);
  return h("section", { class: "hero", "aria-label": "Profile" },
    h("div", { class: "banner" }, banner && picture(ask, banner, { isFixed: true })),
    h("div", { class: "who" },
      h("div", { class: "avatar" }, avatar && picture(ask, avatar, { isFixed: true })),
      h("h1", { dir: "auto" }, name),
      h("div", { class: "soft" }, handle ? `@${handle}` : summary.did, typeof value?.pronouns === "string" && value.pronouns ? ` · ${value.pronouns}` : ""),
      typeof value?.description === "string" && h("p", { class: "prose", dir: "auto" }, plainText(value.description)),
      typeof value?.website === "string" && h("p", null, plainText(value.website)),
      summary.isPartial ? h("p", { class: "soft small" }, summary.records ? `reading ${counted(summary.records, "record")} …` : "reading the rest …") : h("p", { class: "figures" },
        figure(count("app.bsky.feed.post"), "post", "posts", "browse/app.bsky.feed.post"), figure(count("app.bsky.graph.follow"), "follow", "follows", "browse/app.bsky.graph.follow"),
        figure(count("app.bsky.feed.like"), "like", "likes", "browse/app.bsky.feed.like"), figure(summary.records, "record", "records", "everything")),
      h("p", { class: "soft small" },
        summary.first && ["first post ", h("a", { href: `#/at/${summary.first.path}` }, date(summary.first.time)), " · "],
        h("a", { href: "#/time" }, `as of ${moment(Date.parse(summary.createdAt))}`), " · ", mark(view))));
}

/** A day or a month: what was written then. */
export async function period(view, text) {
  const isMonth = text.length === 7;
  const from = Date.parse(isMonth ? `${text}-01` : text);
  if (!from) return [h("h1", null, "No such day")];
  const to = isMonth ? Date.UTC(new Date(from).getUTCFullYear(), new Date(from).getUTCMonth() + 1) : from + 864e5;
  const count = await view.ask("search", { query: `in:app.bsky.feed.post since:${new Date(from).toISOString()} until:${new Date(to - 1).toISOString()}` });
  const title = new Intl.DateTimeFormat(undefined, { dateStyle: isMonth ? undefined : "full", timeZone: "UTC", ...(isMonth ? { year: "numeric", month: "long" } : {}) });
  return [h("h1", null, title.format(from)), h("p", { class: "soft" }, counted(count, "post"), ", by the day in UTC"),
    await listOf(view, "search", (post) => postCard(view, post), { label: "Posts" })];
}
