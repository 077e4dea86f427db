// A list of which only what is seen is in the document, however long it is.
//
// Invariant: `sums` is a Fenwick tree over the heights of all rows, measured or estimated, so that a row is found by its
// place, and a place by its row, in the logarithm of their number.

import { fill, h } from "./dom.js";

const BEYOND = 1200;
const PAGE = 50;

/** A list of `count` rows with a name; `load(start, count)` gives what they are, `draw` makes elements of one. */
export function virtualList(count, load, draw, { estimate = 180, label }) {
  const root = h("div", { class: "list", role: "list", "aria-label": label });
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

  const top = (row) => {
    let sum = 0;
    for (let i = row; i > 0; i -= i & -i) sum += sums[i];
    return sum;
  };
  const rowAt = (place) => {
    let [row, step] = [0, 1];
    while (step * 2 <= count) step *= 2;
    for (let rest = place; step > 0; step >>= 1) {
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

  const page = (number) => {
    if (!pages.has(number)) {
      pages.set(number, load(number * PAGE, PAGE));
      // Few of them are kept.
      if (pages.size > 12) pages.delete(pages.keys().next().value);
    }
    return pages.get(number);
  };

  /** An element for a row, with nothing in it yet. */
  function empty(row) {
    const element = h("div", { role: "listitem", "aria-posinset": row + 1, "aria-setsize": count, "aria-busy": "true" });
    rows.set(row, element);
    root.append(element);
    return element;
  }

  function drop(row) {
    rows.get(row).remove();
    rows.delete(row);
  }

  async function show() {
    isDue = false;
    if (!root.isConnected || count === 0 || root.isGathered) return;
    const offset = -root.getBoundingClientRect().top;
    const first = rowAt(Math.max(0, offset - BEYOND));
    const last = rowAt(Math.max(0, offset + innerHeight + BEYOND));
    for (const [row, element] of rows) {
      if ((row < first || row > last) && !element.contains(document.activeElement)) drop(row);
    }
    for (let row = first; row <= last; row++) {
      if (rows.has(row)) continue;
      const element = empty(row);
      page(Math.floor(row / PAGE)).then((items) => {
        if (rows.get(row) !== element || !items[row % PAGE]) return;
        element.removeAttribute("aria-busy");
        fill(element, draw(items[row % PAGE], row));
        observer.observe(element);
      });
    }
    place();
  }

  function place() {
    for (const [row, element] of rows) element.style.transform = `translateY(${top(row)}px)`;
    root.style.height = `${top(count)}px`;
  }

  const observer = new ResizeObserver((entries) => {
    let [isChanged, shift] = [false, 0];
    const seen = -root.getBoundingClientRect().top;
    for (const { target } of entries) {
      const row = [...rows].find(([, element]) => element === target)?.[0];
      if (row === undefined || !target.isConnected) continue;
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
  due();
  /** Goes to a row. */
  root.show = (row) => scrollTo(0, root.getBoundingClientRect().top + scrollY + top(row) - 60);
  root.count = count;
  /** Puts the rows that are there into their order in the document; answers how many they are. */
  root.sort = () => {
    root.append(...[...rows].sort(([left], [right]) => left - right).map(([, element]) => element));
    return rows.size;
  };
  /** Puts all rows up to a number into the document, for printing; answers how many they are. */
  root.gather = async (limit) => {
    root.isGathered = true;
    const end = Math.min(count, limit);
    for (const row of [...rows.keys()]) if (row >= end) drop(row);
    for (let start = 0; start < end; start += PAGE) {
      for (const [i, item] of (await load(start, PAGE)).entries()) {
        if (start + i >= end || rows.get(start + i)?.ariaBusy === null) continue;
        const element = rows.get(start + i) ?? empty(start + i);
        element.removeAttribute("aria-busy");
        fill(element, draw(item, start + i));
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
