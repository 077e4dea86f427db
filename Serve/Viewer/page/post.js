// A post as a card: text, pictures, video, link, quote; and the light box.

import { blobOf, embedsOf } from "../account/shape.js";
import { picture, save, video } from "./blobs.js";
import { day, h, moment, outside } from "./dom.js";
import { richText } from "./text.js";

/** Labels that hide what they are on behind a click. */
const HIDING = new Set(["porn", "sexual", "nudity", "graphic-media", "gore", "nsfl", "!warn", "!hide"]);

/** The card of a post. `view` has ask, did, name. */
export function postCard(view, post, { isHere = false, note = null } = {}) {
  const { value } = post;
  if (!value) {
    return h("article", { class: "post" }, h("p", { class: "soft" }, "this record is damaged, or cannot be read"), footer(view, post));
  }
  const media = embedded(view, post);
  const labels = Array.isArray(value.labels?.values) ? value.labels.values.map((label) => String(label?.val)) : [];
  const hides = labels.filter((label) => HIDING.has(label));
  return h("article", { class: isHere ? "post here" : "post" },
    h("header", null,
      h("span", { class: "name" }, view.name),
      h("a", { class: "soft small", href: `#/at/${post.path}`, title: moment(post.time) }, day(post.time))),
    note && h("p", { class: "warning small" }, note),
    value.reply && h("p", { class: "soft small" }, "in reply to ", place(view, value.reply.parent?.uri)),
    typeof value.text === "string" && value.text && h("p", { class: "text", lang: Array.isArray(value.langs) ? value.langs[0] : null, dir: "auto" }, richText(value.text, value.facets)),
    hides.length ? behind(`marked as ${hides.join(", ")}`, media) : media,
    footer(view, post));
}

function behind(why, media) {
  if (!media.length) return null;
  const box = h("div", { class: "warning" }, h("span", null, why), h("button", { type: "button", onclick: () => box.replaceWith(...media.filter(Boolean)) }, "Show"));
  return box;
}

function footer(view, post) {
  return h("footer", null, h("a", { href: `#/at/${post.path}` }, "Record"), post.value?.$type === "app.bsky.feed.post" && h("a", { href: `#/thread/${post.path}` }, "Thread"));
}

function embedded(view, post) {
  const { images, video: clip, quote, link } = embedsOf(post.value);
  const parts = [];
  const pictures = images.map((image) => ({ blob: blobOf(image?.image), alt: String(image?.alt ?? ""), ratio: image?.aspectRatio })).filter(({ blob }) => blob);
  if (pictures.length) {
    parts.push(h("div", { class: pictures.length > 1 ? "pictures many" : "pictures" }, pictures.map((one, number) =>
      picture(view.ask, one.blob, { alt: one.alt, ratio: one.ratio, open: () => light(view, pictures, number, post) }))));
  }
  const film = blobOf(clip?.video);
  if (film) {
    const captions = (Array.isArray(clip.captions) ? clip.captions : []).map(({ lang, file }) => ({ lang: String(lang), file: blobOf(file) }));
    parts.push(h("div", { class: "pictures" }, video(view.ask, film, { alt: String(clip.alt ?? ""), captions })));
    parts.push(h("p", { class: "small" }, h("a", { href: "#", onclick: (event) => {
      event.preventDefault();
      save(view.ask, film.cid, `${new Date(post.time || 0).toISOString().slice(0, 10)}_${post.rkey}`);
    } }, "Save the video")));
  }
  if (typeof link?.uri === "string") {
    const card = outside(link.uri, h("strong", null, link.title || link.uri), link.description && h("div", { class: "soft small" }, link.description), h("div", { class: "soft small" }, link.uri));
    card.className = "card";
    parts.push(card);
  }
  if (typeof quote?.uri === "string") parts.push(quoted(view, quote));
  return parts;
}

/** A record that a post quotes: what it says, if the archive has it. */
function quoted(view, { uri }) {
  const box = h("div", { class: "quote" }, h("span", { class: "soft small" }, "quotes "), place(view, uri));
  const [, did, path] = /^at:\/\/(did:[^/]+)\/([^/]+\/[^/]+)$/.exec(uri) ?? [];
  if (!path) return box;
  view.ask("record", { path, did }).then((record) => {
    if (!record?.value) return;
    const title = `${record.name ?? view.name}, ${day(record.time)}`;
    box.replaceChildren(record.name ? h("span", { class: "soft small" }, title) : h("a", { href: `#/at/${record.path}`, class: "soft small" }, title),
      h("p", { class: "text", dir: "auto" }, richText(record.value.text, record.value.facets)));
  }).catch(() => {});
  return box;
}

/** Where an at:// address leads: into the archive, or to the web. */
export function place(view, uri) {
  if (typeof uri !== "string") return h("span", { class: "soft" }, "something");
  const prefix = `at://${view.did}/`;
  if (uri.startsWith(prefix)) return h("a", { href: `#/at/${uri.slice(prefix.length)}` }, "an own post");
  const [, did, collection, rkey] = /^at:\/\/([^/]+)\/([^/]+)\/([^/]+)$/.exec(uri) ?? [];
  if (collection === "app.bsky.feed.post") return outside(`https://bsky.app/profile/${encodeURIComponent(did)}/post/${encodeURIComponent(rkey)}`, uri);
  return h("span", { class: "soft" }, uri);
}

/** Shows pictures large, with the keys of the arrows to go on. */
export function light(view, pictures, number, post) {
  const box = h("dialog", { class: "light", "aria-label": "picture" });
  const show = () => {
    const { blob, alt } = pictures[number];
    const shown = picture(view.ask, blob, { alt });
    shown.style.background = "transparent";
    box.replaceChildren(shown, h("div", { class: "caption" },
      pictures.length > 1 && h("button", { type: "button", onclick: () => step(-1), "aria-label": "the picture before" }, "←"),
      h("span", null, alt || "no description"),
      pictures.length > 1 && h("button", { type: "button", onclick: () => step(1), "aria-label": "the next picture" }, "→"),
      h("button", { type: "button", onclick: () => save(view.ask, blob.cid, `${new Date(post.time || 0).toISOString().slice(0, 10)}_${post.rkey}_${number + 1}_${alt.slice(0, 40)}`) }, "Save"),
      h("button", { type: "button", onclick: () => box.close() }, "Close")));
  };
  const step = (by) => {
    number = (number + by + pictures.length) % pictures.length;
    show();
  };
  box.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  show();
  box.showModal();
}
