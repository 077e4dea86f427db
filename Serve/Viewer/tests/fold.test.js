import assert from "node:assert/strict";
import test from "node:test";
import { fold, parseQuery, rangesOf } from "../account/fold.js";

const found = (text, word) => fold(text).includes(fold(word));

test("text is found as people write it, in all scripts", () => {
  for (const [text, word] of [
    ["हिन्दी", "हिन्द"], ["नमस्ते", "नमस"], ["สวัสดี", "สวัสด"], ["தமிழ்", "தமிழ"], ["שָׁלוֹם", "ש"], ["می‌خواهم", "می"], ["❤️", "❤"], ["👍🏽", "👍"], ["👨‍👩‍👧", "👩"],
    ["1️⃣", "1"], ["ΟΔΟΣ", "οδος"], ["οδός", "ΟΔΌΣ"], ["Straße", "STRASSE"], ["STRASSE", "straße"], ["ﬁn", "FIN"], ["cafe\u0301", "CAFÉ"], ["学生です", "学生"],
  ]) assert.ok(found(text, word), `${word} in ${text}`);
  assert.ok(!found("café", "cafes"));
});

test("what was found is marked where it stands", () => {
  const marked = (text, ...words) => rangesOf(text, words.map(fold)).map(([from, to]) => text.slice(from, to));
  assert.deepEqual(marked("Die Straße, die STRASSE", "strasse"), ["Straße", "STRASSE"]);
  assert.deepEqual(marked("ΟΔΟΣ οδος", "οδος"), ["ΟΔΟΣ", "οδος"]);
  assert.deepEqual(marked("ein Maß", "s"), ["ß"]);
  assert.deepEqual(marked("👍🏽 👍", "👍"), ["👍", "👍"]);
  assert.deepEqual(marked("abab", "aba", "bab"), ["aba"]);
  assert.deepEqual(marked("nothing", ""), []);
});

test("a query is words, phrases and filters", () => {
  assert.deepEqual(parseQuery('Two "In One" has:image IN:like "open'), {
    words: ["two", "in one", "open"], filters: [{ name: "has", value: "image" }, { name: "in", value: "like" }],
  });
  assert.deepEqual(parseQuery(' "" '), { words: [], filters: [] });
});
