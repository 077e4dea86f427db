import assert from "node:assert/strict";
import test from "node:test";
import { Strings } from "../archive/strings.js";

const texts = ["", "a", "app.bsky.feed.post/3lkxag2qhdc22", "é", "日本語のテキスト", "👍🏽 yes", "x".repeat(299), "x".repeat(300), "x".repeat(301), "ü".repeat(200), "﻿mark", "", "ends with é"];

test("strings come back as they were, also when there are many", () => {
  const list = new Strings(1);
  const all = Array.from({ length: 5000 }, (_, i) => texts[i % texts.length] + (i % 3 ? i : ""));
  for (const text of all) list.push(text);
  assert.deepEqual([...list], all);
  list.finish();
  assert.deepEqual([...list], all);
  assert.deepEqual([...list.entries()][7], [7, all[7]]);
  assert.equal(list.at(-1), undefined);
  assert.equal(list.at(5000), undefined);
  assert.equal(new Strings().at(0), undefined);
});

test("words are found where they are within one string, and nowhere across two", () => {
  const list = new Strings();
  const all = [...texts, "ab", "cd", "aab", "日本", "本語"];
  for (const text of all) list.push(text);
  for (const words of [["a"], ["bc"], ["ab"], ["é"], ["本語"], ["👍"], ["x", "xx"], ["post/3l", "app"], ["nowhere"], []]) {
    assert.deepEqual([...list.having(words)], all.map((text) => Number(text !== "" && words.every((word) => text.includes(word)))), words.join());
  }
});
