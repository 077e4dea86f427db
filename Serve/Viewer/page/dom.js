// Elements. What records say only ever becomes text nodes, and attributes that are set here by
// name.

const PROPERTIES = new Set(["value", "checked", "disabled", "selected", "hidden", "open", "controls", "muted", "preload", "multiple", "webkitdirectory"]);

/**
 * An element with attributes and children; a child that is no node becomes text, and null nothing.
 */
export function h(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (PROPERTIES.has(key)) element[key] = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

/** Puts children into an element, in the place of what was there. */
export function fill(element, ...children) {
  element.replaceChildren();
  return add(element, children);
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** A link that leaves the page: only to the web, without a referrer, and its target can be read. */
export function outside(address, ...children) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return h("span", null, children);
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") return h("span", null, children);
  return h("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow", title: url.href }, children);
}

/** A button that copies a text. */
export function copyable(text) {
  const button = h("button", { type: "button", class: "copy", "aria-label": `Copy ${text}` }, "Copy");
  button.addEventListener("click", () => navigator.clipboard?.writeText(text).then(() => { button.textContent = "Copied"; }));
  return button;
}

const SVG = "http://www.w3.org/2000/svg";

/** An element of a drawing. */
export function svg(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes ?? {})) element.setAttribute(key, String(value));
  return add(element, children);
}

// How numbers, sizes and times are written: as the reader's locale has them.

const numbers = new Intl.NumberFormat();
const days = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const moments = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export const number = (value) => numbers.format(value);
export const date = (time) => Number.isFinite(time) ? days.format(time) : "no date";
export const moment = (time) => Number.isFinite(time) ? moments.format(time) : "no date";

export function size(bytes) {
  let unit = 0;
  for (; bytes >= 1000 && unit < 4; unit++) bytes /= 1000;
  return `${bytes >= 100 || unit === 0 ? Math.round(bytes) : bytes.toFixed(1)} ${["bytes", "kB", "MB", "GB", "TB"][unit]}`;
}

/** A number and what it counts. */
export const counted = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

/** Sentences, each once, and how often it was said. */
export function eachOnce(sentences) {
  const times = new Map();
  for (const sentence of sentences) times.set(sentence, (times.get(sentence) ?? 0) + 1);
  return [...times].map(([sentence, count]) => count > 1 ? `${sentence} (${number(count)} times)` : sentence);
}
