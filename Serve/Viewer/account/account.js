// What an account's records are to a reader: posts, replies, media, and the rest, in the order of
// their times.

import { CID } from "../archive/cid.js";
import { resized } from "../archive/memory.js";
import { Strings } from "../archive/strings.js";
import { fold, parseQuery } from "./fold.js";
import { blobOf, eachBlob, embedsOf, mentionsOf, textOf, TEXTS } from "./shape.js";

export const POST = "app.bsky.feed.post";
export const REPOST = "app.bsky.feed.repost";
const UTF8 = new TextEncoder();
const REPLY = [...UTF8.encode("reply")];
const DIGITS = "234567abcdefghijklmnopqrstuvwxyz";
/** How many posts of a thread are shown at most. */
const MAXIMUM_THREAD = 1000;
/** The fields of records that a search, a list or a count looks at. */
const INDEXED = new Set([...TEXTS, "createdAt", "embed", "facets", "langs", "pages", "reply", "tags"]);
/** How many records are indexed before others may ask. */
const AT_ONCE = 4000;
/** What a post is, as bits. */
export const IS = { reply: 1, image: 2, video: 4, quote: 8, link: 16 };

/** The value of each character of a TID; 255 for others. */
const VALUES = new Uint8Array(128).fill(255);
for (const [value, char] of [...DIGITS].entries()) VALUES[char.charCodeAt(0)] = value;

/** The time that a record key stands for, in milliseconds; NaN for one that is no TID. */
export function tidTime(rkey) {
  if (rkey.length !== 13) return NaN;
  // The last ten of 65 bits tell nothing of the time; the others, microseconds, fit into a number.
  let value = 0;
  for (let i = 0; i < 13; i++) {
    const digit = VALUES[rkey.charCodeAt(i)] ?? 255;
    if (digit === 255) return NaN;
    if (i < 11) value = value * 32 + digit;
  }
  const time = value / 1000;
  return time > 0 && time < 4e12 ? time : NaN;
}

/** When a record says that it was made, or its key; NaN if neither does. */
export function timeOf(value, rkey) {
  const said = typeof value?.createdAt === "string" ? Date.parse(value.createdAt) : NaN;
  return said > 0 && said < 4e12 ? said : tidTime(rkey);
}

/** An account at one snapshot. */
export class Account {
  indexed;

  constructor(repository) {
    this.repository = repository;
    this.did = repository.manifest.did;
    this.collections = new Map();
    for (let i = 0; i < repository.paths.length;) {
      const name = repository.paths.at(i).split("/", 1)[0];
      const end = Math.max(i + 1, repository.lowerBound(`${name}0`));
      this.collections.set(name, [i, end]);
      i = end;
    }
    this.lists = new Map();
  }

  /** A record as a page shows it. */
  record(i) {
    return recordOf(this.did, { path: this.repository.paths.at(i), cid: this.repository.cid(i), value: this.repository.value(i) });
  }

  /** The record of a path; null if there is none. */
  at(path) {
    const i = this.repository.indexOf(path);
    return i < 0 ? null : this.record(i);
  }

  profile() {
    return this.at("app.bsky.actor.profile/self");
  }

  /**
   * What each record is, its text, and which blobs are referred to; made once, in steps between
   * which others may ask.
   */
  index() {
    return this.indexed ??= this.makeIndex();
  }

  async makeIndex() {
    const { paths } = this.repository;
    this.flags = new Uint8Array(paths.length);
    this.times = new Float64Array(paths.length);
    this.texts = new Strings(paths.length);
    this.replies = new Map();
    /** The CIDs of all blobs that records refer to, as text. */
    this.blobs = new Set();
    this.unreadable = 0;
    this.handles = new Map();
    /**
     * The languages that posts are in, {langs, count} each, and for each post one more than the
     * place of its own in them; 0 without.
     */
    this.langs = [];
    this.langsOf = new Uint32Array(paths.length);
    this.places = new Map();
    let [collection, beginning] = ["", UTF8.encode("/")];
    for (let i = 0; i < paths.length; i++) {
      if (i % AT_ONCE === AT_ONCE - 1) await new Promise((resolve) => setTimeout(resolve));
      if (!paths.begins(i, beginning)) {
        [collection] = split(paths.at(i));
        beginning = UTF8.encode(`${collection}/`);
      }
      this.indexOne(i, collection);
    }
    this.texts.finish();
    // Sorted once, and not for each search.
    this.newestFirst = descending(this.times);
  }

  indexOne(i, collection) {
    const value = this.repository.some(i, INDEXED);
    if (value === null && this.repository.cid(i)) this.unreadable++;
    eachBlob(value, ({ cid }) => this.blobs.add(cid));
    this.times[i] = timeOf(value, "") || tidTime(split(this.repository.paths.at(i))[1]);
    this.texts.push(value ? fold(textOf(value)) : "");
    if (collection !== POST || !value) return;
    const { images, video, quote, link } = embedsOf(value);
    this.flags[i] = (value.reply ? IS.reply : 0) | (images.length ? IS.image : 0) | (video ? IS.video : 0)
      | (quote ? IS.quote : 0) | (link ? IS.link : 0);
    if (Array.isArray(value.langs)) this.langsOf[i] = this.countLanguages(value.langs);
    for (const [did, handle] of mentionsOf(value)) this.handles.set(did, handle);
    const parent = this.ownPath(value.reply?.parent?.uri);
    if (!parent) return;
    if (!this.replies.has(parent)) this.replies.set(parent, []);
    this.replies.get(parent).push(i);
  }

  /**
   * Each picture and video of posts, the newest first: {post, part}, where `part` counts the
   * pictures of a post from 0.
   */
  async media() {
    if (this.pictures) return this.pictures;
    await this.index();
    this.pictures = [];
    for (const post of this.list("app.bsky.feed.post")) {
      if (!(this.flags[post] & (IS.image | IS.video))) continue;
      const { images } = embedsOf(this.repository.value(post));
      for (let part = 0; part < Math.max(images.length, 1); part++) this.pictures.push({ post, part });
    }
    return this.pictures;
  }

  /**
   * The records of a kind, the newest first, as places: posts with the reposts among them, replies,
   * or a collection.
   */
  list(kind) {
    if (this.lists.has(kind)) return this.lists.get(kind);
    const name = ["posts", "replies"].includes(kind) ? POST : kind;
    const [start, end] = this.collections.get(name) ?? [0, 0];
    const reposts = kind === "posts" ? this.newestFirstOf(REPOST) : [];
    const found = new Uint32Array(end - start + reposts.length);
    let [count, repost] = [0, 0];
    const key = (i) => split(this.repository.paths.at(i))[1];
    for (let i = end - 1; i >= start; i--) {
      if (kind === "posts" && this.repository.hasKey(i, REPLY)) continue;
      if (kind === "replies" && !this.repository.hasKey(i, REPLY)) continue;
      for (const own = repost < reposts.length ? key(i) : ""; repost < reposts.length && key(reposts[repost]) > own;) found[count++] = reposts[repost++];
      found[count++] = i;
    }
    while (repost < reposts.length) found[count++] = reposts[repost++];
    const list = resized(found, count);
    this.lists.set(kind, list);
    return list;
  }

  /** The places of a collection, the last key first. */
  newestFirstOf(collection) {
    const [start, end] = this.collections.get(collection) ?? [0, 0];
    return Uint32Array.from({ length: end - start }, (_, i) => end - 1 - i);
  }

  /** Records of a list as a page shows them; `month` is set on the first of each month. */
  page(places, start, count) {
    const month = (place) => {
      const time = place === undefined ? NaN : tidTime(split(this.repository.paths.at(place))[1]);
      return Number.isNaN(time) ? null : new Date(time).toISOString().slice(0, 7);
    };
    return Array.from(places.slice(start, start + count), (place, i) => {
      const own = month(place);
      return { ...this.record(place), month: own !== month(places[start + i - 1]) ? own : null };
    });
  }

  /**
   * Where each month begins in a list, the newest first: {month, at}, by what the keys of the
   * records say.
   */
  months(places) {
    const found = [];
    // From when to when the month lasts that was found last: most records are in it.
    let [from, to] = [Infinity, -Infinity];
    for (let at = 0; at < places.length; at++) {
      const time = tidTime(split(this.repository.paths.at(places[at]))[1]);
      if (Number.isNaN(time) || time >= from && time < to) continue;
      const date = new Date(time);
      [from, to] = [Date.UTC(date.getUTCFullYear(), date.getUTCMonth()), Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)];
      found.push({ month: date.toISOString().slice(0, 7), at });
    }
    return found;
  }

  /**
   * The posts above a post, and all own replies below it, each behind what it answers: {post,
   * depth}.
   */
  async thread(path) {
    await this.index();
    const above = [];
    const seen = new Set([path]);
    for (let post = this.at(path); post;) {
      const uri = post.value?.reply?.parent?.uri;
      if (typeof uri !== "string") break;
      const own = this.ownPath(uri);
      post = own && !seen.has(own) ? this.at(own) : null;
      if (!post) {
        above.unshift({ uri });
        break;
      }
      seen.add(post.path);
      above.unshift(post);
    }
    const below = [];
    const open = [{ path, depth: 0 }];
    while (open.length && below.length < MAXIMUM_THREAD) {
      const { path: parent, depth } = open.pop();
      if (depth > 0) below.push({ depth, post: this.at(parent) });
      const replies = (this.replies.get(parent) ?? []).map((i) => this.repository.paths.at(i)).filter((one) => !seen.has(one));
      for (const one of replies.toReversed()) {
        seen.add(one);
        open.push({ path: one, depth: depth + 1 });
      }
    }
    return { above, post: this.at(path), below };
  }

  /** The path of an own record by its address; null for other addresses. */
  ownPath(uri) {
    const prefix = `at://${this.did}/`;
    return typeof uri === "string" && uri.startsWith(prefix) ? uri.slice(prefix.length) : null;
  }

  /**
   * The members of an own list, by the list's address: their DIDs, each with the record that names
   * it.
   */
  members(uri) {
    const [start, end] = this.collections.get("app.bsky.graph.listitem") ?? [0, 0];
    const found = [];
    for (let i = start; i < end; i++) {
      const value = this.repository.value(i);
      if (value?.list === uri && typeof value.subject === "string") found.push({ did: value.subject, path: this.repository.paths.at(i) });
    }
    return found;
  }

  /**
   * What is known of an account by its DID: {did, handle}; the handle is the one that an own post
   * mentioned it by.
   */
  person(did) {
    return { did, handle: did === this.did ? this.repository.manifest.handle ?? null : this.handles?.get(did) ?? null };
  }

  /** The first own post, by the keys; null without posts. */
  first() {
    const [start, end] = this.collections.get(POST) ?? [0, 0];
    for (let i = start; i < end; i++) {
      const record = this.record(i);
      if (record.value && !Number.isNaN(record.time)) return record;
    }
    return null;
  }

  /**
   * Records in which all words are, the newest first; filters are has:, lang:, since:, until:, in:,
   * from:, to:.
   */
  async search(query) {
    await this.index();
    const { words, filters } = parseQuery(query);
    const tests = filters.map(({ name, value }) => this.filter(name, value)).filter(Boolean);
    const hits = words.length ? this.texts.having(words) : null;
    const found = new Uint32Array(this.newestFirst.length);
    let count = 0;
    for (const i of this.newestFirst) if ((hits === null || hits[i]) && tests.every((test) => test(i))) found[count++] = i;
    return resized(found, count);
  }

  /** What a filter asks of a record; null for one that says nothing. */
  filter(name, value) {
    const { repository } = this;
    const time = Date.parse(value);
    const low = value.toLowerCase();
    const subjectOf = (i) => {
      const record = repository.value(i);
      const uri = record?.reply?.parent?.uri ?? record?.subject?.uri ?? record?.subject;
      return typeof uri === "string" ? uri.replace("at://", "").split("/")[0] : null;
    };
    switch (name) {
      case "has": return IS[low] ? (i) => this.flags[i] & IS[low] : null;
      case "since": return time ? (i) => this.times[i] >= time : null;
      case "until": return time ? (i) => this.times[i] < time + (value.length === 10 ? 864e5 : 0) : null;
      case "in": {
        const ranges = [...this.collections].filter(([collection]) => collection.toLowerCase().includes(low)).map(([, range]) => range);
        return (i) => ranges.some(([from, to]) => i >= from && i < to);
      }
      case "lang": return (i) => this.langs[this.langsOf[i] - 1]?.langs.includes(value);
      case "from": return () => low === this.did || low.replace("@", "") === String(repository.manifest.handle).toLowerCase();
      case "to": {
        const handle = low.replace("@", "");
        return (i) => {
          const did = subjectOf(i);
          return did !== null && (did === low || this.person(did).handle?.toLowerCase() === handle);
        };
      }
      default: return null;
    }
  }

  /**
   * Counts the languages of a post; answers one more than their place. The same ones are one list,
   * however many posts have them.
   */
  countLanguages(langs) {
    const some = langs.slice(0, 3).map(String);
    const key = some.join();
    if (!this.places.has(key)) this.places.set(key, this.langs.push({ langs: some, count: 0 }));
    const place = this.places.get(key);
    this.langs[place - 1].count++;
    return place;
  }

  /** The languages of posts, the most used first. */
  async languages() {
    await this.index();
    const counts = new Map();
    for (const { langs, count } of this.langs) for (const lang of langs) counts.set(lang, (counts.get(lang) ?? 0) + count);
    return [...counts].sort(([, left], [, right]) => right - left).map(([lang]) => lang).slice(0, 40);
  }

  /** Counts for the statistics: posts by month and by day, media by kind, collections by size. */
  async statistics() {
    await this.index();
    const months = {};
    const days = {};
    const types = {};
    const [start, end] = this.collections.get(POST) ?? [0, 0];
    for (let i = start; i < end; i++) {
      if (Number.isNaN(this.times[i])) continue;
      const day = new Date(this.times[i]).toISOString().slice(0, 10);
      days[day] = (days[day] ?? 0) + 1;
      months[day.slice(0, 7)] = (months[day.slice(0, 7)] ?? 0) + 1;
      if (!(this.flags[i] & (IS.image | IS.video))) continue;
      const { images, video } = embedsOf(this.repository.value(i));
      for (const blob of [...images.map((image) => blobOf(image?.image)), blobOf(video?.video)]) {
        if (!blob) continue;
        const entry = types[blob.type] ??= { count: 0, bytes: 0 };
        entry.count++;
        entry.bytes += blob.size;
      }
    }
    return {
      months, days, types, first: start < end ? this.record(start) : null,
      collections: [...this.collections].map(([name, [from, to]]) => ({ name, count: to - from })),
      likesByYear: this.byYear("app.bsky.feed.like"), postsByYear: this.byYear(POST),
    };
  }

  byYear(collection) {
    const [start, end] = this.collections.get(collection) ?? [0, 0];
    const years = {};
    for (let i = start; i < end; i++) {
      if (Number.isNaN(this.times[i])) continue;
      const year = new Date(this.times[i]).getUTCFullYear();
      years[year] = (years[year] ?? 0) + 1;
    }
    return years;
  }
}

/**
 * The places of numbers, those of the largest first, of the same the last first; what is no number
 * counts as 0.
 */
function descending(numbers) {
  const { length } = numbers;
  const isBefore = (left, right) => {
    const difference = (numbers[left] || 0) - (numbers[right] || 0);
    return difference > 0 || difference === 0 && left > right;
  };
  // Merged by hand: a typed array that is sorted by a function becomes a list of other numbers
  // meanwhile.
  let from = new Uint32Array(length);
  let to = new Uint32Array(length);
  for (let i = 0; i < length; i++) from[i] = length - 1 - i;
  for (let width = 1; width < length; width *= 2) {
    for (let start = 0; start < length; start += 2 * width) {
      const middle = Math.min(start + width, length);
      const end = Math.min(middle + width, length);
      let left = start;
      let right = middle;
      for (let at = start; at < end; at++) {
        const isLeft = right === end || left < middle && isBefore(from[left], from[right]);
        to[at] = from[isLeft ? left++ : right++];
      }
    }
    const other = from;
    from = to;
    to = other;
  }
  return from;
}

/** A record {path, cid, value} of an account as a page shows it. */
export function recordOf(did, { path, cid, value }) {
  const [collection, rkey] = split(path);
  return { path, collection, rkey, uri: `at://${did}/${path}`, cid, value: plain(value), time: timeOf(value, rkey) };
}

/** The collection and the key of a path. */
export function split(path) {
  const slash = path.indexOf("/");
  return slash < 0 ? ["", path] : [path.slice(0, slash), path.slice(slash + 1)];
}

/**
 * The same value as what can be handed to the page: links as {$link}, bytes as {$bytes}, large
 * integers as text.
 */
export function plain(value) {
  if (value instanceof CID) return { $link: value.text };
  if (value instanceof Uint8Array) return { $bytes: value.length };
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
  return value;
}
