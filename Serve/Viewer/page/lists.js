// Lists: of a collection's records, by month, each as what it is to people.

import { blobOf, embedsOf } from "../account/shape.js";
import { picture } from "./blobs.js";
import { counted, date, h, moment, number } from "./dom.js";
import { titleOf } from "./names.js";
import { parts, person, place } from "./people.js";
import { light, postCard, seenNote } from "./post.js";
import { richText } from "./text.js";
import { virtualList } from "./virtual.js";

const monthName = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "long", timeZone: "UTC" });
const monthText = (month) => monthName.format(Date.parse(`${month}-01T00:00:00Z`));

/** A list of the records of a kind, as `draw` shows them. */
export async function listOf(view, kind, draw, { estimate = 180, label = titleOf(kind) } = {}) {
  const count = await view.ask("count", { kind });
  if (count === 0) return h("p", { class: "soft" }, "There is nothing here.");
  return virtualList(count, (start, amount) => view.ask("page", { kind, start, count: amount }), draw, { estimate, label });
}

/** A choice of months, to go to one in a list; nothing where there is only one. */
export async function jump(view, kind, list, perRow = 1) {
  const months = list.show ? await view.ask("months", { kind }) : [];
  if (months.length < 2) return null;
  return h("p", { class: "jump" }, h("label", { class: "soft small" }, "Go to ",
    h("select", { onchange: ({ target }) => list.show(Math.floor(Number(target.value) / perRow)) },
      months.map(({ month, at }) => h("option", { value: at }, monthText(month))))));
}

/** The records of a collection. */
export async function collection(view, name) {
  const draw = (record) => [record.month && name !== "app.bsky.feed.post" && h("h2", { class: "month" }, monthText(record.month)),
    name === "app.bsky.feed.post" ? postCard(view, record) : row(view, record)];
  const list = await listOf(view, name, draw, { estimate: name === "app.bsky.feed.post" ? 180 : 44 });
  return [h("h1", null, titleOf(name)), await jump(view, name, list), list];
}

/** A record in a line: who or what it is about, and when it was made. */
export function row(view, record) {
  return h("div", { class: "row" }, h("div", { class: "what", dir: "auto" }, subject(view, record)),
    h("a", { class: "soft small", href: `#/at/${record.path}`, "aria-label": `Details, ${moment(record.time)}` }, date(record.time)));
}

/** What a record is about, as people would say it. */
export function subject(view, { value, rkey, path }) {
  const about = typeof value?.subject === "string" ? value.subject : value?.subject?.uri;
  if (typeof about === "string" && about.startsWith("did:")) return person(view, about);
  if (typeof about === "string") return [place(view, about), excerpt(view, about)];
  const title = [value?.name, value?.displayName, value?.title, value?.text].find((one) => typeof one === "string" && one);
  const list = typeof value?.list === "string" ? value.list : null;
  return h("a", { href: `#/at/${path}` }, title ? title.slice(0, 300) : list ? "a list" : rkey);
}

/** The text of a post that the archive has, once it is read; nothing for others. */
function excerpt(view, uri) {
  const found = parts(uri);
  const box = h("div", { class: "excerpt soft" });
  if (found && (found.did === view.did || view.accounts.has(found.did) || view.summary.hasContext)) {
    view.ask("record", { path: found.path, did: found.did }).then((record) => {
      if (typeof record?.value?.text === "string") box.replaceChildren(...richText(record.value.text, record.value.facets), seenNote(record));
    }).catch(() => {});
  }
  return box;
}

/** All pictures and videos as a grid. */
export async function media(view) {
  const count = await view.ask("countMedia");
  if (count === 0) return [h("h1", null, "Media"), h("p", { class: "soft" }, "There is nothing here.")];
  const columns = innerWidth < 760 ? 3 : 4;
  const list = virtualList(Math.ceil(count / columns), (start, amount) =>
    view.ask("media", { start: start * columns, count: amount * columns })
      .then((items) => Array.from({ length: amount }, (_, i) => items.slice(i * columns, (i + 1) * columns))),
  (items) => h("div", { class: "grid" }, items.map((post) => tile(view, post))), { estimate: 160, label: "Pictures and videos" });
  return [h("h1", null, "Media"), await jump(view, "media", list, columns), list];
}

function tile(view, post) {
  const { images, video } = embedsOf(post.value);
  const pictures = images.map((image) => ({ blob: blobOf(image?.image), alt: String(image?.alt ?? "") })).filter(({ blob }) => blob);
  const one = pictures[post.part];
  if (one) return picture(view.ask, one.blob, { alt: one.alt || date(post.time), ratio: { width: 1, height: 1 }, isTile: true, open: () => light(view, pictures, post.part, post) });
  return h("a", { class: "picture film", href: `#/at/${post.path}` }, h("span", { class: "why" }, "▶ video", h("br"), date(post.time), video?.alt ? h("em", null, String(video.alt)) : null));
}

/** Every collection, whatever its lexicon. */
export function everything(view) {
  return [h("h1", null, "Everything"), h("p", { class: "soft" }, counted(view.summary.records, "record")), h("ul", { class: "plain" }, view.summary.collections.map(({ name, count }) =>
    h("li", { class: "row" }, h("a", { href: `#/browse/${name}` }, titleOf(name), titleOf(name) !== name && h("span", { class: "soft small" }, ` ${name}`)), h("span", { class: "soft" }, number(count)))))];
}
