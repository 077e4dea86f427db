// The page: how an archive gets here, what is at the side, which view an address means.

import { forgetBlobs } from "./blobs.js";
import { fill, h, number, size } from "./dom.js";
import { titleOf } from "./names.js";
import { collection, everything, media } from "./lists.js";
import { privateData } from "./private.js";
import { printView } from "./print.js";
import { period, posts, replies } from "./profile.js";
import * as proof from "./proof.js";
import { change, record, recordAsOf, thread } from "./record.js";
import { search } from "./search.js";
import { deleted, statistics, time } from "./time.js";

/** What changes when more is proven, by its name in the document. */
const PROOF = { mark: proof.mark, banner: proof.banner, levels: proof.levels };
/** How many archives are opened at once from addresses. */
const TOGETHER = 20;
const app = document.getElementById("app");
const busy = h("div", { class: "busy", hidden: true, role: "status" });
const waiting = new Map();
const notices = [];
let worker = null;
let asked = 0;
let view = null;
let list = null;
let shown = 0;
let reopened = -Infinity;

/**
 * From now on the page makes requests to these addresses (and to what is in them, if they are
 * folders), and to no other.
 */
function restrict(urls) {
  // What separates policies and sources is escaped.
  const sources = urls.map((url) => new URL(url)).map(({ origin, pathname }) => origin + pathname.replace(/[;,' ]/g, (char) => `%${char.charCodeAt(0).toString(16)}`));
  document.head.append(h("meta", { "http-equiv": "Content-Security-Policy", content: `connect-src ${sources.length ? sources.join(" ") : "'none'"}` }));
}

/**
 * The addresses that the archives came from, for a reload; browsers may refuse to remember them.
 */
const remembered = {
  get urls() { try { return [JSON.parse(sessionStorage.getItem("carpack"))].flat().filter((url) => /^https?:/.test(url)); } catch { return []; } },
  set urls(all) { try { all.length ? sessionStorage.setItem("carpack", JSON.stringify(all)) : sessionStorage.removeItem("carpack"); } catch { /* then a reload asks again */ } },
};

function start() {
  const code = document.getElementById("worker").textContent;
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  worker = new Worker(url);
  worker.onmessage = ({ data }) => {
    if (data.isReplaced) reopen();
    if (data.notice) {
      notices.push(data.notice);
    } else if (data.whole || data.failure !== undefined) {
      if (waiting.size === 0) busy.hidden = true;
      whole.settle(data);
    } else if (data.proof) {
      if (view?.summary.cid !== data.proof.cid) return;
      view.summary.proof = data.proof;
      for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-proof]"))) element.replaceWith(PROOF[element.dataset.proof](view));
    } else if (data.progress) {
      const { what, done, total } = data.progress;
      busy.hidden = false;
      fill(busy, h("span", { class: "small soft" }, `${what}: ${Math.round(100 * done / Math.max(total, 1))} %`), h("progress", { value: done, max: total }));
    } else {
      const { resolve, reject } = waiting.get(data.id);
      waiting.delete(data.id);
      if (waiting.size === 0) busy.hidden = true;
      if (data.error === undefined) resolve(data.result);
      else reject(new Error(data.error));
    }
  };
  worker.onerror = ({ message }) => {
    for (const { reject } of waiting.values()) reject(new Error(message || "the page's own program failed"));
    waiting.clear();
  };
}

/** Asks the worker. */
function ask(method, args) {
  return new Promise((resolve, reject) => {
    waiting.set(++asked, { resolve, reject });
    worker.postMessage({ id: asked, method, args });
  });
}

// The beginning

function welcome(error) {
  const chosen = ({ target }) => target.files.length && open({ files: [...target.files] });
  const input = h("input", { type: "file", multiple: true, class: "hidden", tabindex: -1, "aria-label": "Archives", onchange: chosen });
  const folder = h("input", { type: "file", webkitdirectory: true, class: "hidden", tabindex: -1, "aria-label": "Folder", onchange: chosen });
  const drop = h("div", { class: "drop" },
    h("button", { type: "button", onclick: () => input.click() }, "Open an archive"), input, folder,
    h("p", { class: "soft" }, "or drop files here: archives (.car.zst), or a repository (.car) with its pictures. ",
      h("button", { type: "button", class: "link", onclick: () => folder.click() }, "Open a folder")));
  for (const name of ["dragover", "dragleave", "drop"]) {
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragover");
      if (name === "drop") dropped(event.dataTransfer).then((files) => files.length && open({ files }));
    });
  }
  document.title = "carpack";
  fill(app, h("main", { class: "start" },
    h("h1", null, "carpack"),
    h("p", { class: "soft" }, "Posts, pictures and everything else of a Bluesky account, from one file. This page reads it here, in this browser: nothing is sent anywhere."),
    drop, error && h("p", { class: "warning", role: "alert" }, error)), busy);
}

/** The files that were dropped, those in folders, too. */
async function dropped(transfer) {
  const entries = [...transfer?.items ?? []].map((item) => item.webkitGetAsEntry?.());
  const loose = [...transfer?.files ?? []];
  const files = [];
  const walk = async (entry) => {
    if (files.length > 100_000) return;
    if (entry.isFile) return files.push(await new Promise((resolve, reject) => entry.file(resolve, reject)));
    const reader = entry.createReader();
    for (let some; (some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))).length;) for (const one of some) await walk(one);
  };
  if (!entries.some((entry) => entry?.isDirectory)) return loose;
  for (const entry of entries) if (entry) await walk(entry);
  return files;
}

async function open(from) {
  fill(app, h("main", { class: "start" }, h("p", { class: "soft" }, "Opening the archive …"), from.urls?.map((url) => h("p", { class: "small soft" }, url))), busy);
  view = null;
  fill(chooser);
  try {
    forgetBlobs();
    remembered.urls = from.urls ?? [];
    if (!worker) {
      restrict(from.urls ?? []);
      start();
    }
    if (from.urls?.length === 1 && from.urls[0].endsWith("/")) {
      const found = await ask("folder", { url: from.urls[0] });
      if (found.length > 1) return shelf(found, from.urls[0]);
      from = { urls: found };
    }
    const { name, size: length, summary } = await ask("open", from);
    show(summary, { name, length }, from);
    await route();
    // Only now: of an archive with thousands of snapshots it takes a while.
    ask("accounts").then(accounts).catch(() => {});
  } catch (error) {
    view = null;
    welcome(said(error.message));
  }
}

/** The archives of a folder, to choose from: one, or up to a few at once. */
function shelf(urls, folder) {
  const names = urls.map((url) => { try { return decodeURIComponent(url.slice(folder.length)); } catch { return url.slice(folder.length); } });
  document.title = "carpack";
  fill(app, h("main", { class: "start shelf" }, h("h1", null, "Archives"),
    h("ul", { class: "plain" }, urls.map((url, i) => h("li", null, h("button", { type: "button", class: "link", onclick: () => open({ urls: [url] }) }, names[i])))),
    urls.length <= TOGETHER && h("p", null, h("button", { type: "button", onclick: () => open({ urls }) }, "Open all of them"))), busy);
}

/** Why an archive is not shown, as a sentence. */
const said = (message) => message.endsWith(".") || !message.includes(" ") ? message : `This archive cannot be shown: ${message}`;

/** Opens the archive again, which is another one by now; once in a while only. */
function reopen() {
  if (!view?.from.urls || performance.now() - reopened < 10_000) return;
  reopened = performance.now();
  notices.length = 0;
  notices.push("The archive has changed since it was opened: this is what it holds now.");
  open(view.from);
}

// The frame

const main = h("main", { tabindex: -1, id: "main" });
const nav = h("nav", { "aria-label": "Views" });
const chooser = h("div");
const about = h("div", { class: "about soft small" });

/**
 * The rest of an account of which the first posts are shown: `ready` is resolved once it is read.
 */
const whole = {
  ready: null,
  begin() { this.ready = new Promise((resolve) => { this.resolve = resolve; }); },
  async settle({ whole: summary, failure }) {
    if (!view?.summary.isPartial) return;
    const place = scrollY;
    if (summary) show(summary);
    else welcome(said(failure));
    if (!summary) view = null;
    this.resolve();
    // The posts are shown already: now all of them.
    if (!summary || main.dataset.at !== "" || location.hash.length > 2) return;
    await route();
    requestAnimationFrame(() => scrollTo(0, place));
  },
};

function show(summary, file = view?.file, from = view?.from) {
  const value = summary.profile?.value;
  const name = typeof value?.displayName === "string" && value.displayName.trim() ? value.displayName : summary.handle ?? summary.did;
  view = { ask, summary, did: summary.did, handle: summary.handle, name, file, from, people: new Map(), accounts: view?.accounts ?? new Set([summary.did]) };
  if (summary.isPartial) whole.begin();
  document.title = `${name} · carpack`;
  fill(about, h("p", null, file.name, h("br"), size(file.length)), proof.mark(view), notices.map((text) => h("p", { class: "warning" }, text)),
    h("p", { class: "actions" }, h("button", { type: "button", class: "small", onclick: () => { remembered.urls = []; location.hash = ""; location.reload(); } }, "Another archive"),
    h("button", { type: "button", class: "small", onclick: () => printView(main) }, "Print this view")));
  fill(app, h("div", { class: "frame" }, h("aside", { class: "side" }, chooser, nav, about), h("div", { class: "column" }, proof.banner(view), main)), busy);
}

/** Lets the reader choose among the accounts of what was opened. */
function accounts(all) {
  view.accounts = new Set(all.map(({ did }) => did));
  if (all.length < 2) return;
  fill(chooser, h("select", { "aria-label": "Account", onchange: ({ target }) => { location.hash = `#/snapshot/${target.value}`; } },
    all.map((one) => h("option", { value: one.cid, selected: one.did === view.did }, one.handle ?? one.did))));
}

function links(current) {
  const count = (name) => view.summary.collections.find((one) => one.name === name)?.count ?? 0;
  const entries = [
    ["", "Posts"], ["replies", "Replies"], ["media", "Media"], ["search/", "Search"],
    ...["app.bsky.feed.like", "app.bsky.feed.repost", "app.bsky.graph.follow", "app.bsky.graph.block", "app.bsky.graph.list",
      "app.bsky.feed.generator", "app.bsky.graph.starterpack"].filter(count).map((name) => [`browse/${name}`, titleOf(name), count(name)]),
    ["everything", "Everything", view.summary.records], ["statistics", "Statistics"], ["time", "Time"],
    ...view.summary.hasPrivate ? [["private", "Private"]] : [], ["proof", "Proof"],
  ];
  fill(nav, entries.map(([address, title, amount]) => h("a", { href: `#/${address}`, "aria-current": current === address ? "page" : null }, title, amount ? h("span", null, number(amount)) : null)));
  // On a phone the views lie side by side: the current one comes into sight.
  const shownLink = nav.querySelector("[aria-current]");
  if (shownLink && nav.scrollWidth > nav.clientWidth) nav.scrollTo({ left: shownLink.offsetLeft - (nav.clientWidth - shownLink.offsetWidth) / 2 });
}

// Addresses

/** What each address shows: its first part, and the rest. */
const VIEWS = {
  "": posts, replies, media, browse: collection, at: record, was: recordAsOf, change, thread, day: period, search, everything, statistics, time, deleted,
  private: privateData, proof: proof.page,
};

async function route() {
  if (!view) return;
  const address = location.hash.replace(/^#\/?/, "");
  const [kind, ...rest] = address.split("/");
  const path = rest.map((part) => { try { return decodeURIComponent(part); } catch { return part; } }).join("/");
  const turn = ++shown;
  list?.end?.();
  list = null;
  try {
    if (kind === "snapshot") {
      if (view.summary.cid !== path) show(await ask("select", { cid: path }));
      location.replace("#/");
      return;
    }
    if (view.summary.isPartial && kind !== "") {
      await whole.ready;
      if (turn !== shown || !view) return;
    }
    links(kind === "search" ? "search/" : kind === "browse" ? `browse/${path}` : kind);
    const elements = await (VIEWS[kind] ?? VIEWS[""])(view, path);
    if (turn !== shown) return;
    fill(main, elements);
    main.dataset.at = address;
    list = main.querySelector(".list");
    restore(address);
    // What the list needs of the page is known once it is in it.
    dispatchEvent(new Event("scroll"));
  } catch (error) {
    if (turn === shown) fill(main, h("p", { class: "warning", role: "alert" }, error.message));
  }
}

/** Where the reader was in each view, so that going back comes back to it. */
const places = new Map();
addEventListener("scroll", () => { if (view) places.set(location.hash.replace(/^#\/?/, ""), scrollY); }, { passive: true });
history.scrollRestoration = "manual";

function restore(address) {
  const place = places.get(address) ?? 0;
  requestAnimationFrame(() => scrollTo(0, place));
}

addEventListener("hashchange", route);
addEventListener("keydown", (event) => {
  if (event.key === "/" && view && !event.target.closest?.("input, select, textarea")) {
    event.preventDefault();
    location.hash = "#/search/";
  }
});

/** The addresses of archives that the page was opened with, or had before it was loaded again. */
function given() {
  const urls = new URLSearchParams(location.hash.slice(1)).getAll("url").slice(0, TOGETHER);
  if (urls.length === 0) return remembered.urls;
  history.replaceState(null, "", "#/");
  return urls.map((url) => { try { return new URL(url, location.href); } catch { return null; } })
    .filter((url) => url?.protocol === "http:" || url?.protocol === "https:").map(({ href }) => href);
}

/** The archive that this page has in it, as a file; null for a page without one. */
function inside() {
  const element = document.getElementById("archive");
  if (!element) return null;
  const text = atob(element.textContent.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  element.remove();
  return new File([bytes], element.dataset.name ?? "archive.car.zst");
}

const own = inside();
const addresses = own ? [] : given();
if (own) {
  restrict([]);
  start();
  open({ files: [own] });
} else if (addresses.length) {
  open({ urls: addresses });
} else {
  welcome();
  // A page without an address opens files only, and is ready for the first.
  restrict([]);
  start();
}
