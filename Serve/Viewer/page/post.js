// A post as a card: who, when, text, pictures, video, link, quote; and the light box.

import { blobOf, embedsOf } from "../account/shape.js";
import { picture, save, video } from "./blobs.js";
import { date, h, moment, outside } from "./dom.js";
import { parts, person, place } from "./people.js";
import { richText } from "./text.js";

/** Labels that hide what they are on behind a click. */
const HIDING = new Set(["porn", "sexual", "nudity", "graphic-media", "gore", "nsfl", "!warn", "!hide"]);

/** The language of a post, if it says one that can be. */
const languageOf = ({ langs }) => Array.isArray(langs) && /^[a-z]{2,3}(-[a-z0-9]{2,8})*$/i.test(langs[0]) ? langs[0] : null;

/** The picture of the account, or an empty place for it. */
export function avatar(view) {
  const blob = blobOf(view.summary.profile?.value?.avatar);
  return h("span", { class: "avatar small-avatar", "aria-hidden": "true" }, blob && picture(view.ask, blob, { isFixed: true }));
}

/** The card of a post. `isHere` is the one that a page is about; `note` is said above it. */
export function postCard(view, post, { isHere = false, note = null } = {}) {
  const { value } = post;
  const head = h("header", null, avatar(view), h("span", { class: "who-when" },
    h("span", { class: "name", dir: "auto" }, view.name), " ",
    h("a", { class: "soft small", href: `#/at/${post.path}`, title: post.uri }, h("time", { datetime: Number.isFinite(post.time) ? new Date(post.time).toISOString() : null }, moment(post.time)))));
  const frame = (...children) => h("article", { class: isHere ? "post here" : "post", "aria-label": `post, ${moment(post.time)}` }, head, note && h("p", { class: "note small" }, note), children);
  if (!value) return frame(h("p", { class: "soft" }, "This record is damaged, or cannot be read."));
  const media = embedded(view, post);
  const labels = Array.isArray(value.labels?.values) ? value.labels.values.map((label) => String(label?.val)) : [];
  const hides = labels.filter((label) => HIDING.has(label));
  return frame(
    value.reply && h("p", { class: "soft small" }, "in reply to ", place(view, value.reply.parent?.uri)),
    typeof value.text === "string" && value.text && h("p", { class: "text", lang: languageOf(value), dir: "auto" }, richText(value.text, value.facets)),
    Array.isArray(value.tags) && value.tags.length > 0 && h("p", { class: "small" }, value.tags.map((name) => [h("a", { href: `#/search/${encodeURIComponent(`"${name}"`)}` }, `#${name}`), " "])),
    hides.length ? behind(`marked as ${hides.join(", ")}`, media) : media,
    h("footer", null, h("a", { href: `#/thread/${post.path}` }, value.reply || isHere ? "Whole thread" : "Thread"), h("a", { href: `#/at/${post.path}` }, "Details")));
}

function behind(why, media) {
  if (!media.length) return null;
  const box = h("div", { class: "warning" }, h("span", null, why), h("button", { type: "button", onclick: () => box.replaceWith(...media.filter(Boolean)) }, "Show"));
  return box;
}

const nameFor = (post) => `${Number.isFinite(post.time) ? new Date(post.time).toISOString().slice(0, 10) : "undated"}_${post.rkey}`;

function embedded(view, post) {
  const { images, video: clip, quote, link } = embedsOf(post.value);
  const found = [];
  const pictures = images.map((image) => ({ blob: blobOf(image?.image), alt: String(image?.alt ?? ""), ratio: image?.aspectRatio })).filter(({ blob }) => blob);
  if (pictures.length) {
    found.push(h("div", { class: `pictures n${Math.min(pictures.length, 4)}` }, pictures.map((one, number) =>
      picture(view.ask, one.blob, { alt: one.alt, ratio: pictures.length === 1 ? one.ratio : { width: 1, height: 1 }, open: () => light(view, pictures, number, post) }))));
    found.push(...captions(pictures.map(({ alt }) => alt)));
  }
  const film = blobOf(clip?.video);
  if (film) {
    const tracks = (Array.isArray(clip.captions) ? clip.captions : []).map(({ lang, file }) => ({ lang: String(lang), file: blobOf(file) }));
    found.push(h("div", { class: "pictures n1" }, video(view.ask, film, { alt: String(clip.alt ?? ""), captions: tracks, ratio: clip.aspectRatio })));
    found.push(...captions([String(clip.alt ?? "")]));
    found.push(h("p", { class: "small" }, h("button", { type: "button", class: "link", onclick: () => save(view.ask, film.cid, nameFor(post)) }, "Save the video")));
  }
  if (typeof link?.uri === "string") found.push(linkCard(view, link));
  if (typeof quote?.uri === "string") found.push(quoted(view, quote));
  return found;
}

/** The descriptions of pictures, each in a line. */
function captions(alts) {
  return alts.map((alt, i) => alt && h("p", { class: "alt small soft", dir: "auto" }, alts.length > 1 ? `${i + 1}: ` : "", alt)).filter(Boolean);
}

function linkCard(view, link) {
  const thumb = blobOf(link.thumb);
  let host = link.uri;
  try {
    host = new URL(link.uri).host;
  } catch { /* then all of it is shown */ }
  const card = outside(link.uri,
    thumb && picture(view.ask, thumb, { ratio: { width: 1.91, height: 1 } }),
    h("span", { class: "about-link" }, h("strong", { dir: "auto" }, link.title || link.uri), link.description && h("span", { class: "soft small", dir: "auto" }, link.description), h("span", { class: "soft small" }, host)));
  card.classList.add("card");
  return card;
}

/** A repost as a card: when, and the post, if the archive has it. */
export function repostCard(view, { path, value, time }) {
  return h("article", { class: "post", "aria-label": `repost, ${moment(time)}` },
    h("p", { class: "reposted soft small" }, h("span", { "aria-hidden": "true" }, "↻ "), h("span", { dir: "auto" }, view.name), " reposted · ",
      h("a", { class: "soft", href: `#/at/${path}` }, h("time", { datetime: Number.isFinite(time) ? new Date(time).toISOString() : null }, moment(time)))),
    typeof value?.subject?.uri === "string" ? quoted(view, value.subject, "") : h("p", { class: "soft" }, "This record is damaged, or names no post."));
}

/** A post in its card, or a repost in its. */
export const postOrRepost = (view, record) => record.collection === "app.bsky.feed.repost" ? repostCard(view, record) : postCard(view, record);

/** A record that a post quotes or reposts: what it says, if the archive has it. */
function quoted(view, { uri }, verb = "quotes ") {
  const box = h("div", { class: "quote" }, h("span", { class: "soft small" }, verb, place(view, uri)));
  const found = parts(uri);
  if (!found) return box;
  view.ask("record", { path: found.path, did: found.did }).then((record) => {
    if (!record?.value) return;
    const text = record.value.text ?? record.value.name ?? record.value.displayName;
    box.replaceChildren(h("span", { class: "small" }, found.did === view.did ? h("a", { href: `#/at/${record.path}` }, view.name) : person(view, found.did), h("span", { class: "soft" }, ` · ${date(record.time)}`, seenNote(record))),
      h("p", { class: "text", dir: "auto" }, richText(typeof text === "string" ? text : "", record.value.facets)));
  }).catch(() => {});
  return box;
}

/** What is said of a record that is another's, as an app view showed it. */
export const seenNote = (record) => record.seen ? ` · another’s, as seen on ${date(Date.parse(record.seen.at))}` : "";

/** Shows pictures large, with the keys of the arrows to go on. */
export function light(view, pictures, number, post) {
  const box = h("dialog", { class: "light", "aria-label": "picture" });
  const show = () => {
    const { blob, alt } = pictures[number];
    const shown = picture(view.ask, blob, { alt });
    shown.style.background = "transparent";
    box.replaceChildren(shown, h("div", { class: "caption" },
      pictures.length > 1 && h("button", { type: "button", onclick: () => step(-1), "aria-label": "the picture before" }, "←"),
      h("span", { dir: "auto" }, alt || "no description"),
      pictures.length > 1 && h("button", { type: "button", onclick: () => step(1), "aria-label": "the next picture" }, "→"),
      h("button", { type: "button", onclick: () => save(view.ask, blob.cid, `${nameFor(post)}_${number + 1}_${alt.slice(0, 40)}`) }, "Save"),
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
