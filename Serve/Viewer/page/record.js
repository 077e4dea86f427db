// One record: as what it is, where it stands, and all that it says; also as it was, and a post in
// its thread.

import { blobOf, blocksOf } from "../account/shape.js";
import { picture } from "./blobs.js";
import { copyable, counted, h, moment, outside } from "./dom.js";
import { titleOf } from "./names.js";
import { networkAddress, parts, person, place } from "./people.js";
import { postCard } from "./post.js";
import { plainText, richText } from "./text.js";
import { differences, tree } from "./tree.js";

/** A record of the snapshot that is shown; one that was deleted as it was last. */
export async function record(view, path) {
  const found = await view.ask("record", { path });
  if (found) return details(view, found);
  const was = await view.ask("recordIn", { path });
  if (!was) return [h("h1", null, "No such record"), h("p", { class: "soft" }, `Neither this snapshot nor an older one has a record ${path}.`)];
  return details(view, was, `Deleted between ${moment(Date.parse(was.lastSeen))} and ${moment(Date.parse(was.missingSince))}`);
}

/** A record as an older snapshot has it. */
export async function recordAsOf(view, address) {
  const [cid, ...path] = address.split("/");
  const found = await view.ask("recordIn", { cid, path: path.join("/") });
  if (!found) return [h("h1", null, "No such record"), h("p", { class: "soft" }, `The snapshot has no record ${path.join("/")}.`)];
  return details(view, found, `As it was on ${moment(Date.parse(found.asOf))}`);
}

/** What changed in a record between two snapshots. */
export async function change(view, address) {
  const [older, newer, ...rest] = address.split("/");
  const path = rest.join("/");
  const [before, after] = await Promise.all([view.ask("recordIn", { cid: older, path }), view.ask("recordIn", { cid: newer, path })]);
  if (!before || !after) return record(view, path);
  const found = differences(before.value, after.value);
  const show = (value) => value === undefined ? h("span", { class: "soft" }, "absent") : tree(view, value);
  return [h("h1", null, "What changed"), h("p", null, h("a", { href: `#/at/${path}` }, path)),
    found.length === 0 && h("p", { class: "soft" }, "Nothing that can be read."),
    found.map((one) => h("section", { class: "difference" }, h("h2", null, one.path),
      h("del", null, h("span", { class: "soft small" }, `${moment(Date.parse(before.asOf))}: `), show(one.before)),
      h("ins", null, h("span", { class: "soft small" }, `${moment(Date.parse(after.asOf))}: `), show(one.after))))];
}

async function details(view, found, note = null) {
  const isPost = found.collection === "app.bsky.feed.post";
  const address = networkAddress(parts(found.uri) ?? {});
  const json = h("details", null, h("summary", null, "JSON"), h("pre", { class: "json", tabindex: 0, "aria-label": "JSON" }));
  json.addEventListener("toggle", () => { json.lastChild.textContent ||= JSON.stringify(found.value, null, 2); });
  return [
    h("h1", { class: isPost ? "hidden" : "" }, isPost ? "Post" : titleOf(found.collection)),
    isPost ? postCard(view, found, { isHere: true, note }) : [note && h("p", { class: "note" }, note), await readable(view, found)],
    h("dl", { class: "facts" },
      h("dt", null, "address"), h("dd", null, found.uri, " ", copyable(found.uri)),
      h("dt", null, "CID"), h("dd", null, found.cid ?? "lost", " ", found.cid && copyable(found.cid)),
      h("dt", null, "time"), h("dd", null, moment(found.time)),
      address && [h("dt", null, "network"), h("dd", null, outside(address, "on bsky.app"))]),
    found.value ? [isPost && h("details", null, h("summary", null, "All fields"), tree(view, found.value)), json]
      : h("p", { class: "warning" }, "This record is damaged, or cannot be read."),
  ];
}

/** A record as its lexicon means it; of others all fields. */
async function readable(view, { collection, uri, value }) {
  if (!value) return null;
  const title = [value.name, value.displayName, value.title].find((one) => typeof one === "string" && one);
  const head = title && h("h2", { dir: "auto" }, title);
  const description = typeof value.description === "string" && h("p", { class: "prose", dir: "auto" }, value.descriptionFacets ? richText(value.description, value.descriptionFacets) : plainText(value.description));
  const image = blobOf(value.avatar);
  const face = image && h("div", { class: "thumb" }, picture(view.ask, image, { ratio: { width: 1, height: 1 } }));
  switch (collection) {
    case "app.bsky.graph.list": return [head, face, description, await members(view, uri)];
    case "app.bsky.graph.starterpack": return [head, description,
      Array.isArray(value.feeds) && value.feeds.length > 0 && [h("h3", null, "Feeds"), h("ul", null, value.feeds.map((feed) => h("li", null, place(view, feed?.uri))))], await members(view, value.list)];
    case "app.bsky.feed.generator": return [head, face, description];
    case "app.bsky.feed.like": case "app.bsky.feed.repost": case "app.bsky.graph.follow": case "app.bsky.graph.block": {
      const about = typeof value.subject === "string" ? value.subject : value.subject?.uri;
      return h("p", null, typeof about === "string" && about.startsWith("did:") ? person(view, about) : place(view, about));
    }
    default: return article(view, value, head, description) ?? tree(view, value);
  }
}

async function members(view, uri) {
  const found = await view.ask("members", { uri });
  return [h("h3", null, counted(found.length, "member")), h("ul", { class: "plain" }, found.map(({ did }) => h("li", { class: "row" }, person(view, did))))];
}

/** A blog entry as text, in the lexicons that are common; null for what is none. */
function article(view, value, head, description) {
  const blocks = blocksOf(value);
  const text = [value.content, value.textContent].find((one) => typeof one === "string" && one);
  if (blocks.length === 0 && !text) return null;
  const shown = ({ kind, text: words, level, image, alt, uri }) => {
    const nodes = plainText(words);
    if (image) return h("figure", null, picture(view.ask, image, { alt }), alt && h("figcaption", { class: "soft small" }, alt));
    switch (kind) {
      case "header": return h(level > 2 ? "h4" : "h3", { dir: "auto" }, nodes);
      case "blockquote": return h("blockquote", { dir: "auto" }, nodes);
      case "code": return h("pre", { tabindex: 0 }, words);
      case "item": return h("p", { class: "item", dir: "auto" }, "• ", nodes);
      default: return h("p", { class: "prose", dir: "auto" }, nodes, typeof uri === "string" && [" ", outside(uri, uri)]);
    }
  };
  return h("article", { class: "entry" }, head, description, blocks.length ? blocks.map(shown) : text.split(/\n{2,}/).map((part) => h("p", { class: "prose", dir: "auto" }, plainText(part))));
}

/** A post between what it answers and all own posts that answer it. */
export async function thread(view, path) {
  const { above, post, below } = await view.ask("thread", { path });
  if (!post) return record(view, path);
  return [
    h("h1", null, "Thread"),
    above.map((one) => one.path ? postCard(view, one) : h("p", { class: "soft" }, "in reply to ", place(view, one.uri), ", which is not in this archive")),
    postCard(view, post, { isHere: true }),
    below.length > 0 && h("h2", { class: "hidden" }, "Own replies"),
    below.map(({ post: one, depth }) => h("div", { class: "reply", "data-depth": Math.min(depth, 4) }, postCard(view, one))),
  ];
}
