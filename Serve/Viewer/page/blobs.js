// Blobs as elements.

import { fill, h, size } from "./dom.js";

/** How many blobs are held at once. */
const KEPT = 200;
const contents = new Map();

/** A blob with an address of this page. Making one blocks the page, so it is made on first use. */
class Content {
  address = null;

  constructor(blob) {
    this.blob = blob;
    this.type = blob.type;
  }

  get url() {
    return this.address ??= URL.createObjectURL(this.blob);
  }

  forget() {
    if (this.address) URL.revokeObjectURL(this.address);
  }
}

/** The content of a blob: {url, type}, or {reason}. */
async function contentOf(ask, cid) {
  const known = contents.get(cid);
  if (known) return known;
  const answer = ask("blob", { cid });
  const { blob, reason, isHere } = await answer.catch(({ message }) => ({ reason: message }));
  if (!blob) return { reason: isHere ? reason : `not in the archive: ${reason}` };
  const found = new Content(blob);
  contents.set(cid, found);
  if (contents.size > KEPT) {
    const [oldest, content] = contents.entries().next().value;
    contents.delete(oldest);
    content.forget();
  }
  return found;
}

/** Forgets all of them: another archive is shown. */
export function forgetBlobs() {
  for (const content of contents.values()) content.forget();
  contents.clear();
}

/**
 * A picture that is read when it comes into view. With `open` it is a button; `isFixed` is one of a
 * fixed place, such as an avatar, which stays empty where there is none, `isTile` one of many,
 * which says in a few words that there is none. `ratio` is how wide and high it is.
 */
export function picture(ask, blob, { alt = "", ratio = null, open = null, isFixed = false, isTile = false } = {}) {
  const element = open ? h("button", { class: "picture", type: "button", "aria-label": alt || "picture without a description", onclick: () => open() }) : h("span", { class: "picture" });
  if (isFixed) element.classList.add("fixed");
  else if (ratio?.width > 0 && ratio?.height > 0) element.style.aspectRatio = `${Math.min(Math.max(ratio.width / ratio.height, 0.5), 3)}`;
  else element.style.minHeight = "8rem";
  whenSeen(element, async () => {
    const found = await contentOf(ask, blob.cid);
    if (!found.type?.startsWith("image/")) {
      const why = found.reason ?? "this blob is no picture";
      element.classList.add("absent");
      element.title = why;
      if (isFixed) return;
      const text = h("span", { class: "why" }, isTile && found.reason ? "not here" : why, alt && h("em", null, ` ${alt}`));
      if (open) element.replaceWith(h("span", { class: "picture absent", title: why }, text));
      else fill(element, text);
      return;
    }
    const image = h("img", { src: found.url, alt, decoding: "async" });
    try {
      await image.decode();
    } catch {
      fill(element, h("span", { class: "why" }, "this picture cannot be shown"));
      return;
    }
    element.style.minHeight = "";
    fill(element, image);
  });
  return element;
}

/** A video that is read when it is asked for. */
export function video(ask, blob, { alt = "", captions = [], ratio = null } = {}) {
  const element = h("div", { class: "picture" });
  if (ratio?.width > 0 && ratio?.height > 0) element.style.aspectRatio = `${Math.min(Math.max(ratio.width / ratio.height, 0.6), 3)}`;
  const play = h("button", { type: "button" }, `Show the video${blob.size ? ` (${size(blob.size)})` : ""}`);
  fill(element, h("span", { class: "why" }, play));
  play.addEventListener("click", async () => {
    const found = await contentOf(ask, blob.cid);
    if (!found.type?.startsWith("video/")) {
      fill(element, h("span", { class: "why" }, found.reason ?? "this blob is no video"));
      return;
    }
    const player = h("video", { controls: true, preload: "metadata", src: found.url, "aria-label": alt || "video" });
    fill(element, player);
    for (const { lang, file } of captions) {
      const track = file && await contentOf(ask, file.cid);
      if (track?.type) player.append(h("track", { kind: "captions", srclang: lang, label: lang, src: track.url }));
    }
    player.focus();
  });
  return element;
}

/** Pictures that scroll past faster than this are not read, in milliseconds. */
const STAY = 100;
/** How many are read at once. */
const TOGETHER = 4;
/** What reads a picture, by its element; an element that is gone takes it along. */
const waiting = new WeakMap();
/** Pictures near what is seen, and since when; the oldest first. */
const near = new Map();
let reading = 0;
const eye = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    near.delete(target);
    if (isIntersecting) near.set(target, performance.now());
  }
  setTimeout(readNear, STAY + 1);
}, { rootMargin: "400px" });

function readNear() {
  for (const [element, since] of near) {
    if (reading === TOGETHER || performance.now() - since < STAY) return;
    reading++;
    read(element).finally(() => {
      reading--;
      readNear();
    });
  }
}

/** Calls `then` once when an element comes near to what is seen. */
function whenSeen(element, then) {
  waiting.set(element, then);
  eye.observe(element);
}

async function read(element) {
  eye.unobserve(element);
  near.delete(element);
  const then = waiting.get(element);
  waiting.delete(element);
  await then?.();
}

/** Reads all pictures of an element that have not come into view. */
export async function readPictures(element) {
  for (const target of element.querySelectorAll(".picture")) await read(target);
}

/** Saves a blob under a good name; answers why not, if so. */
export async function save(ask, cid, name) {
  const found = await contentOf(ask, cid);
  if (found.reason) return found.reason;
  const ending = { "image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp", "image/avif": ".avif",
    "image/svg+xml": ".svg", "video/mp4": ".mp4", "video/webm": ".webm", "audio/mpeg": ".mp3", "audio/ogg": ".ogg", "text/vtt": ".vtt" }[found.type] ?? ".bin";
  const link = h("a", { href: found.url, download: name.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 100) + ending });
  document.body.append(link);
  link.click();
  link.remove();
  return null;
}
