// Printing: of a long list all rows up to a limit, with their pictures; what is not printed is
// said.

import { readPictures } from "./blobs.js";
import { counted, fill, h, number } from "./dom.js";

/** How many rows of a list are printed at most: some two hundred pages. */
const MAXIMUM_ROWS = 1000;

const note = h("p", { class: "print-note" });

/** Prints a view; `main` is where it is. */
export async function printView(main) {
  const list = main.querySelector(".list");
  if (list) say(list, await list.gather(MAXIMUM_ROWS), "To print others, choose a month or a day under Statistics, or search.");
  await readPictures(main);
  await Promise.all([...main.querySelectorAll("img")].map((image) => image.decode().catch(() => {})));
  window.print();
  list?.scatter();
}

/** Says above a list how much of it is printed, if not all is. */
function say(list, rows, advice) {
  fill(note, rows < list.count ? `${number(rows)} of ${counted(list.count, "item")} are printed. ${advice}` : null);
  list.before(note);
}

// The browser's own command prints what is there, in its order.
addEventListener("beforeprint", () => {
  /** @type {any} */
  const list = document.querySelector("main .list");
  if (list && !list.isGathered) say(list, list.sort(), "“Print this view”, at the side, prints more.");
});
