// Drawings of the statistics, as SVG; each bar and day leads to its posts.

import { h, number, svg } from "./dom.js";

/** A chart has no more months without posts: records can say that they are of any year. */
const MAXIMUM_MONTHS = 360;

/**
 * The months from the first to the last of some, those without posts among them; just these if they
 * are too far apart to be true.
 */
function months(some) {
  const known = Object.keys(some).sort();
  const [first, last] = [known[0], known.at(-1)].map((name) => Number(name?.slice(0, 4)) * 12 + Number(name?.slice(5)) - 1);
  if (!(last - first < MAXIMUM_MONTHS)) return known;
  return Array.from({ length: last - first + 1 }, (_, i) => `${Math.floor((first + i) / 12)}-${String((first + i) % 12 + 1).padStart(2, "0")}`);
}

/** A drawing that is moved sideways where the screen is too narrow for its letters. */
const wide = (drawing) => h("div", { class: "wide", tabindex: 0, role: "group", "aria-label": "chart" }, drawing);

/** Bars, one for each month. */
export function bars(counted, label) {
  const names = months(counted);
  if (names.length === 0) return null;
  const counts = Object.fromEntries(names.map((name) => [name, counted[name] ?? 0]));
  const most = Math.max(...Object.values(counts));
  const [width, height] = [Math.max(640, names.length * 8), 120];
  const step = Math.min(width / names.length, 40);
  return wide(svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height + 16}`, role: "group", "aria-label": label },
    names.map((name, i) => counts[name] > 0 && svg("a", { href: `#/day/${name}`, "aria-label": `${name}: ${number(counts[name])}` },
      svg("title", null, `${name}: ${number(counts[name])}`),
      svg("rect", { x: i * step, width: step, y: 0, height, fill: "transparent" }),
      svg("rect", { class: "bar", x: i * step + step * 0.1, width: step * 0.8, y: height - counts[name] / most * height, height: counts[name] / most * height, rx: 1.5 }))),
    names.filter((_, i) => i % Math.ceil(names.length / 8) === 0).map((name) => svg("text", { x: names.indexOf(name) * step, y: height + 12 }, name))));
}

/** A year as a map of its days. */
export function heatMap(year, days) {
  const start = new Date(Date.UTC(year, 0, 1));
  const first = start.getUTCDay();
  const cells = [];
  const most = Math.max(1, ...Object.entries(days).filter(([name]) => name.startsWith(`${year}-`)).map(([, count]) => count));
  for (let i = 0; i < 366; i++) {
    const date = new Date(start.getTime() + i * 864e5);
    if (date.getUTCFullYear() !== year) break;
    const name = date.toISOString().slice(0, 10);
    const count = days[name] ?? 0;
    const cell = svg("rect", {
      x: Math.floor((first + i) / 7) * 11, y: (first + i) % 7 * 11 + 12, width: 9, height: 9, rx: 2,
      fill: count ? `rgba(var(--heat), ${0.2 + 0.8 * Math.sqrt(count / most)})` : "var(--line)",
    });
    cells.push(count ? svg("a", { href: `#/day/${name}`, "aria-label": `${name}: ${number(count)}` }, svg("title", null, `${name}: ${number(count)}`), cell) : cell);
  }
  return wide(svg("svg", { class: "chart", viewBox: "0 0 590 92", role: "group", "aria-label": `posts on each day of ${year}` }, svg("text", { x: 0, y: 8 }, year), cells));
}
