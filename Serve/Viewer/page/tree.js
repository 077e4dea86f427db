// Any record as people can read it: names and values, dates as dates, addresses as links, pictures
// as pictures.

import { blobOf } from "../account/shape.js";
import { picture, save } from "./blobs.js";
import { h, moment, outside, size } from "./dom.js";
import { place } from "./people.js";
import { plainText } from "./text.js";

const MAXIMUM_DEPTH = 60;

/** `createdAt` as "created at". */
const words = (key) => key.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/[_-]+/g, " ").toLowerCase();

/** A value as nested lists of names and values. */
export function tree(view, value, depth = 0) {
  if (value === null) return h("span", { class: "soft" }, "nothing");
  if (typeof value === "string") return text(view, value);
  if (typeof value !== "object") return h("span", null, typeof value === "boolean" ? value ? "yes" : "no" : String(value));
  const blob = blobOf(value);
  if (blob) return blobTree(view, blob);
  if (typeof value.$link === "string") return h("code", null, value.$link);
  if (typeof value.$bytes === "number") return h("span", { class: "soft" }, size(value.$bytes));
  if (depth > MAXIMUM_DEPTH) return h("span", { class: "soft" }, "…");
  if (Array.isArray(value)) {
    if (value.length === 0) return h("span", { class: "soft" }, "none");
    return h("ol", { class: "tree" }, value.map((item) => h("li", null, tree(view, item, depth + 1))));
  }
  const entries = Object.entries(value).filter(([key]) => key !== "$type");
  if (entries.length === 0) return h("span", { class: "soft" }, value.$type ? String(value.$type) : "nothing");
  return h("dl", { class: "tree" }, entries.map(([key, item]) => h("div", null, h("dt", { title: key }, words(key)), h("dd", null, tree(view, item, depth + 1)))));
}

function text(view, value) {
  if (value === "") return h("span", { class: "soft" }, "empty");
  if (/^(at:\/\/[^/\s]+\/[^/\s]+\/[^/\s]+|did:[a-z]+:\S+)$/.test(value)) return h("span", { title: value }, place(view, value));
  if (/^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/.test(value) && Date.parse(value)) return h("time", { datetime: value, title: value }, moment(Date.parse(value)));
  if (/^https?:\/\/\S+$/.test(value)) return outside(value, value);
  return h("span", { class: "prose", dir: "auto" }, plainText(value));
}

function blobTree(view, blob) {
  const line = h("span", { class: "small" }, `${blob.type || "unknown type"}${blob.size ? `, ${size(blob.size)}` : ""} `);
  line.append(h("button", { type: "button", class: "copy", onclick: async ({ target }) => {
    const reason = await save(view.ask, blob.cid, `blob_${blob.cid.slice(-8)}`);
    if (reason) target.after(h("span", { class: "soft" }, ` ${reason}`));
  } }, "Save"));
  return h("div", null, blob.type.startsWith("image/") && h("div", { class: "thumb" }, picture(view.ask, blob, { ratio: { width: 4, height: 3 } })), line);
}

/** Where two values differ: {path, before, after}, the parts that are absent undefined. */
export function differences(before, after, path = "") {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  const isMap = (value) => value !== null && typeof value === "object" && !blobOf(value) && typeof value.$link !== "string";
  if (!isMap(before) || !isMap(after)) return [{ path: path || "the record", before, after }];
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) =>
    differences(before[key], after[key], path ? `${path} › ${words(key)}` : words(key)));
}
