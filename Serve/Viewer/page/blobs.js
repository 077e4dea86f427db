// Blobs as elements. What a blob is, its first bytes say: nothing that a record calls an image is taken for anything else.

import { fill, h, size } from "./dom.js";

/** How many blobs are held as addresses of this page at once. */
const KEPT = 200;
const addresses = new Map();

/** The media type by the first bytes; null for what is neither image, video, sound nor captions. */
function typeOf(bytes) {
  const text = String.fromCharCode(...bytes.subarray(0, 16));
  if (text.startsWith("\x89PNG")) return "image/png";
  if (text.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (text.startsWith("GIF8")) return "image/gif";
  if (text.startsWith("RIFF") && text.slice(8, 12) === "WEBP") return "image/webp";
  if (text.startsWith("RIFF") && text.slice(8, 12) === "WAVE") return "audio/wav";
  if (text.slice(4, 8) === "ftyp") return text.slice(8, 12).startsWith("avi") ? "image/avif" : "video/mp4";
  if (text.startsWith("\x1a\x45\xdf\xa3")) return "video/webm";
  if (text.startsWith("OggS")) return "audio/ogg";
  if (text.startsWith("ID3") || text.startsWith("\xff\xfb")) return "audio/mpeg";
  if (text.startsWith("WEBVTT")) return "text/vtt";
  if (/^\s*(<\?xml|<svg|<!--)/.test(text)) return "image/svg+xml";
  return null;
}

/** An address of this page for a blob's bytes: {url, type, length}, or {reason}. */
export async function addressOf(ask, cid) {
  const known = addresses.get(cid);
  if (known) return known;
  const { bytes, blob, reason, isHere } = await ask("blob", { cid }).catch(({ message }) => ({ reason: message }));
  if (!bytes) return { reason: isHere ? reason : `not in the archive: ${reason}` };
  const type = typeOf(bytes);
  const content = new Blob([blob ?? bytes], { type: type ?? "application/octet-stream" });
  const found = { url: URL.createObjectURL(content), type, length: content.size };
  addresses.set(cid, found);
  if (addresses.size > KEPT) {
    const [oldest, { url }] = addresses.entries().next().value;
    addresses.delete(oldest);
    URL.revokeObjectURL(url);
  }
  return found;
}

/** Forgets all of them: another archive is shown. */
export function forgetAddresses() {
  for (const { url } of addresses.values()) URL.revokeObjectURL(url);
  addresses.clear();
}

/**
 * A picture that is read when it comes into view. With `open` it is a button; `isFixed` is one of a fixed place, such as an
 * avatar, which stays empty where there is none, `isTile` one of many, which says in a few words that there is none. `ratio` is how
 * wide and high it is.
 */
export function picture(ask, blob, { alt = "", ratio = null, open = null, isFixed = false, isTile = false } = {}) {
  const element = open ? h("button", { class: "picture", type: "button", "aria-label": alt || "picture without a description", onclick: () => open() }) : h("span", { class: "picture" });
  if (isFixed) element.classList.add("fixed");
  else if (ratio?.width > 0 && ratio?.height > 0) element.style.aspectRatio = `${Math.min(Math.max(ratio.width / ratio.height, 0.5), 3)}`;
  else element.style.minHeight = "8rem";
  whenSeen(element, async () => {
    const found = await addressOf(ask, blob.cid);
    if (!found.url || !found.type?.startsWith("image/")) {
      const why = found.url ? "this blob is no picture" : found.reason;
      element.classList.add("absent");
      element.title = why;
      if (isFixed) return;
      const text = h("span", { class: "why" }, isTile && !found.url ? "not here" : why, alt && h("em", null, ` ${alt}`));
      if (open) element.replaceWith(h("span", { class: "picture absent", title: why }, text));
      else fill(element, text);
      return;
    }
    const image = h("img", { src: found.url, alt, decoding: "async" });
    image.addEventListener("error", () => fill(element, h("span", { class: "why" }, "this picture cannot be shown")));
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
    const found = await addressOf(ask, blob.cid);
    if (!found.url || !found.type?.startsWith("video/")) {
      fill(element, h("span", { class: "why" }, found.url ? "this blob is no video" : found.reason));
      return;
    }
    const player = h("video", { controls: true, preload: "metadata", src: found.url, "aria-label": alt || "video" });
    fill(element, player);
    for (const { lang, file } of captions) {
      const track = file && await addressOf(ask, file.cid);
      if (track?.url) player.append(h("track", { kind: "captions", srclang: lang, label: lang, src: track.url }));
    }
    player.focus();
  });
  return element;
}

const waiting = new Map();
const eye = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    eye.unobserve(target);
    waiting.get(target)?.();
    waiting.delete(target);
  }
}, { rootMargin: "400px" });

/** Calls `then` once when an element comes near to what is seen. */
function whenSeen(element, then) {
  waiting.set(element, then);
  eye.observe(element);
}

/** Reads all pictures of an element that have not come into view. */
export async function readPictures(element) {
  for (const [target, then] of [...waiting]) {
    if (!element.contains(target)) continue;
    eye.unobserve(target);
    waiting.delete(target);
    await then();
  }
}

/** Saves a blob under a good name; answers why not, if so. */
export async function save(ask, cid, name) {
  const found = await addressOf(ask, cid);
  if (!found.url) return found.reason;
  const ending = { "image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp", "image/avif": ".avif",
    "image/svg+xml": ".svg", "video/mp4": ".mp4", "video/webm": ".webm", "audio/mpeg": ".mp3", "audio/ogg": ".ogg", "text/vtt": ".vtt" }[found.type] ?? ".bin";
  const link = h("a", { href: found.url, download: name.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 100) + ending });
  document.body.append(link);
  link.click();
  link.remove();
  return null;
}
