import assert from "node:assert/strict";
import test from "node:test";
import { eachOnce } from "../page/dom.js";

test("a sentence that is said 190 times is shown once, with how often", () => {
  const sentences = ["first", ...Array(190).fill("again"), "last"];
  assert.deepEqual(eachOnce(sentences), ["first", "again (190 times)", "last"]);
  assert.deepEqual(eachOnce([]), []);
});
