// A list of which only what is seen is in the document, however long it is.
//
// Invariants: `sums` is a Fenwick tree over the heights of all rows, measured or estimated, so that
// a row is found by its place, and a place by its row, in the logarithm of their number. A row is
// in the document once it is drawn.

import { fill, h } from "./dom.js";

/** How far beyond what is seen rows are drawn, in pixels. */
const BEYOND = 1200;
/** How long a frame may spend on drawing them, in milliseconds. */
const SPARE = 3;
/** After how many milliseconds what could not be loaded is asked for again. */
const AGAIN = 2000;
/** How many rows are asked for at once, and how many pages of them are kept. */
const [PAGE, KEPT] = [25, 24];

/**
 * A list of `count` rows with a name; `load(start, count)` gives what they are, `draw` makes
 * elements of one.
 */
export function virtualList(count, load, draw, { estimate = 180, label }) {
  const root = h("div", { class: "list", role: "list", "aria-label": label, "aria-busy": "true" });
  const heights = new Float64Array(count).fill(estimate);
  const sums = new Float64Array(count + 1);
  for (let i = 1; i <= count; i++) {
    sums[i] += heights[i - 1];
    const parent = i + (i & -i);
    if (parent <= count) sums[parent] += sums[i];
  }
  const pages = new Map();
  const rows = new Map();
  let isDue = false;
  let seenAt = 0;

  const top = (row) => {
    let sum = 0;
    for (let i = row; i > 0; i -= i & -i) sum += sums[i];
    return sum;
  };
  const rowAt = (place) => {
    let [row, step] = [0, 1];
    while (step * 2 <= count) step *= 2;
    for (let rest = Math.max(0, place); step > 0; step >>= 1) {
      if (row + step <= count && sums[row + step] <= rest) {
        row += step;
        rest -= sums[row];
      }
    }
    return Math.min(row, count - 1);
  };
  const measure = (row, height) => {
    const change = height - heights[row];
    if (Math.abs(change) < 1) return false;
    heights[row] = height;
    for (let i = row + 1; i <= count; i += i & -i) sums[i] += change;
    return true;
  };

  /** The items of a page; null until they are there. While it is seen, it is asked for again. */
  function page(number) {
    if (!pages.has(number)) {
      pages.set(number, null);
      load(number * PAGE, PAGE).then((items) => {
        if (!pages.has(number)) return;
        pages.set(number, items);
        due();
      }).catch((error) => {
        pages.delete(number);
        reportError(error);
        setTimeout(due, AGAIN);
      });
      if (pages.size > KEPT) pages.delete(pages.keys().next().value);
    }
    return pages.get(number);
  }

  /** Draws a row into the document; an error leaves it empty, and the others are drawn. */
  function add(row, item) {
    const element = h("div", { role: "listitem", "aria-posinset": row + 1, "aria-setsize": count });
    rows.set(row, { element, y: NaN });
    try {
      fill(element, item && draw(item, row));
    } catch (error) {
      reportError(error);
    }
    root.append(element);
    observer.observe(element);
  }

  function drop(row) {
    rows.get(row).element.remove();
    rows.delete(row);
  }

  /** Draws the rows that are seen; then those beyond, the nearest first, while there is time. */
  function show() {
    isDue = false;
    if (!root.isConnected || count === 0 || root.isGathered) return;
    const offset = -root.getBoundingClientRect().top;
    const way = offset - seenAt;
    seenAt = offset;
    const end = offset + innerHeight;
    const [first, from, to, last] = [offset - BEYOND, offset, end, end + BEYOND].map(rowAt);
    for (const [row, { element }] of rows) {
      if ((row < first || row > last) && !element.contains(document.activeElement)) drop(row);
    }
    const wanted = [];
    for (let row = from; row <= to; row++) wanted.push(row);
    for (let i = 1; i <= Math.max(from - first, last - to); i++) wanted.push(to + i, from - i);
    const missing = wanted.filter((row) => row >= first && row <= last && !rows.has(row));
    // At such a speed the next frame shows none of the rows beyond.
    const until = performance.now() + (Math.abs(way) < BEYOND ? SPARE : 0);
    let isWhole = true;
    for (const row of missing) {
      const items = page(Math.floor(row / PAGE));
      if (items && (row >= from && row <= to || performance.now() < until)) {
        add(row, items[row % PAGE]);
      } else {
        isWhole = false;
        if (items) due();
      }
    }
    root.setAttribute("aria-busy", String(!isWhole));
    place();
    // Loads what the next two frames show if scrolling goes on at this speed.
    for (let i = 1; i <= 8; i++) {
      page(Math.floor(rowAt(offset + innerHeight / 2 + way * i / 4) / PAGE));
    }
  }

  function place() {
    for (const [row, shown] of rows) {
      const y = top(row);
      if (y === shown.y) continue;
      shown.y = y;
      shown.element.style.transform = `translateY(${y}px)`;
    }
    root.style.height = `${top(count)}px`;
  }

  const observer = new ResizeObserver((entries) => {
    let [isChanged, shift] = [false, 0];
    const seen = -root.getBoundingClientRect().top;
    for (const { target } of entries) {
      const row = Number(target.getAttribute("aria-posinset")) - 1;
      if (rows.get(row)?.element !== target) continue;
      const before = heights[row];
      const place = top(row);
      if (measure(row, /** @type {HTMLElement} */ (target).offsetHeight)) {
        isChanged = true;
        // What is above keeps what is being read where it is.
        if (place + before <= seen) shift += heights[row] - before;
      }
    }
    if (!isChanged) return;
    place();
    if (shift) scrollBy(0, shift);
    due();
  });
  const due = () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(show);
  };
  addEventListener("scroll", due, { passive: true });
  addEventListener("resize", due);
  place();
  due();
  /** Goes to a row. */
  root.show = (row) => scrollTo(0, root.getBoundingClientRect().top + scrollY + top(row) - 60);
  root.count = count;
  /** Puts the rows that are there into their order in the document; answers how many they are. */
  root.sort = () => {
    const inOrder = [...rows].sort(([left], [right]) => left - right);
    root.append(...inOrder.map(([, { element }]) => element));
    return rows.size;
  };
  /** Puts all rows up to a number into the document, for printing; answers how many they are. */
  root.gather = async (limit) => {
    root.isGathered = true;
    const end = Math.min(count, limit);
    for (const row of [...rows.keys()]) if (row >= end) drop(row);
    for (let start = 0; start < end; start += PAGE) {
      for (const [i, item] of (await load(start, PAGE)).entries()) {
        if (start + i < end && !rows.has(start + i)) add(start + i, item);
      }
    }
    return root.sort();
  };
  /** Leaves only the rows that are seen, again. */
  root.scatter = () => {
    root.isGathered = false;
    due();
  };
  root.end = () => {
    removeEventListener("scroll", due);
    removeEventListener("resize", due);
    observer.disconnect();
  };
  return root;
}
