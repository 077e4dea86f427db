// Drawings of the statistics, as SVG; each bar and day leads to its posts.

import { number, svg } from "./dom.js";

/** Bars, one for each month. */
export function bars(counts, label) {
  const names = Object.keys(counts).sort();
  if (names.length === 0) return null;
  const most = Math.max(...Object.values(counts));
  const [width, height] = [Math.max(640, names.length * 8), 120];
  const step = Math.min(width / names.length, 40);
  return svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height + 16}`, role: "group", "aria-label": label },
    names.map((name, i) => svg("a", { href: `#/day/${name}`, "aria-label": `${name}: ${number(counts[name])}` },
      svg("title", null, `${name}: ${number(counts[name])}`),
      svg("rect", { x: i * step, width: step, y: 0, height, fill: "transparent" }),
      svg("rect", { class: "bar", x: i * step + step * 0.1, width: step * 0.8, y: height - counts[name] / most * height, height: counts[name] / most * height, rx: 1.5 }))),
    names.filter((_, i) => i % Math.ceil(names.length / 8) === 0).map((name) => svg("text", { x: names.indexOf(name) * step, y: height + 12 }, name)));
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
  return svg("svg", { class: "chart", viewBox: "0 0 590 92", role: "group", "aria-label": `posts on each day of ${year}` }, svg("text", { x: 0, y: 8 }, year), cells);
}
