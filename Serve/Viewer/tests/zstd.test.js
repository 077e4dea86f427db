import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import { decompress, frameHeader, FrameError, MAXIMUM_CONTENT } from "../archive/zstd.js";

/** Pseudo-random numbers that are the same each time. */
function* numbers(seed) {
  for (let state = seed; ;) {
    state = Math.imul(state, 1664525) + 1013904223 >>> 0;
    yield state >>> 8;
  }
}

function contents() {
  const random = numbers(7);
  const text = Array.from({ length: 40000 }, () => "the of and to in is that for it with as was".split(" ")[random.next().value % 12]).join(" ");
  const noise = Uint8Array.from({ length: 300000 }, () => random.next().value);
  const skewed = Uint8Array.from({ length: 500000 }, () => Math.min(random.next().value % 256, random.next().value % 256, random.next().value % 40));
  const mixed = Buffer.concat([Buffer.from(text), noise.subarray(0, 5000), Buffer.alloc(70000, 7), Buffer.from(text), skewed]);
  return {
    "one byte": Buffer.from("a"), "a run": Buffer.alloc(1 << 20, 65), text: Buffer.from(text), noise: Buffer.from(noise),
    skewed: Buffer.from(skewed), mixed, short: Buffer.from("short text, short text"),
    "four megabytes": Buffer.concat(Array(9).fill(mixed)).subarray(0, MAXIMUM_CONTENT),
  };
}

function compress(content, ...options) {
  const stored = execFileSync("zstd", ["-q", "-c", "--check", "--no-progress", `--stream-size=${content.length}`, ...options], { input: content, maxBuffer: 1 << 26 });
  return new Uint8Array(stored);
}

/** Whether the program made a frame of the one form that is read. */
function isOfTheForm(frame) {
  return [0x24, 0x64, 0xa4].includes(frame[4]);
}

test("what zstd compressed comes back, at every level", () => {
  let compared = 0;
  for (const [name, content] of Object.entries(contents())) {
    for (const level of ["--fast=5", ...Array.from({ length: 19 }, (_, i) => `-${i + 1}`)]) {
      const frame = compress(content, level, "--single-thread");
      if (!isOfTheForm(frame)) continue;
      compared++;
      assert.ok(Buffer.compare(Buffer.from(decompress(frame)), content) === 0, `${name} at ${level}`);
    }
  }
  assert.ok(compared >= 100, `${compared} were of the form`);
});

test("a frame that is damaged is refused or gives as many bytes as it says, and never hangs", () => {
  const random = numbers(11);
  const next = () => random.next().value;
  const { mixed, text } = contents();
  for (const content of [mixed.subarray(0, 60000), text.subarray(0, 20000)]) {
    const frame = compress(content, "-9");
    assert.ok(isOfTheForm(frame));
    for (let i = 0; i < 1500; i++) {
      const damaged = frame.slice(0, next() % 4 ? frame.length : 1 + next() % frame.length);
      for (let k = 0; k <= next() % 3; k++) damaged[next() % damaged.length] ^= 1 << next() % 8;
      try {
        assert.equal(decompress(damaged).length, frameHeader(damaged).size);
      } catch (error) {
        assert.ok(error instanceof FrameError, `${error.stack}`);
      }
    }
  }
});

test("a frame that says it holds too much, or is of another form, is refused before memory is taken", () => {
  for (const bytes of [
    [0x28, 0xb5, 0x2f, 0xfd, 0xa4, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0],
    [0x28, 0xb5, 0x2f, 0xfd, 0x24, 0, 1, 0, 0, 0, 0, 0, 0], [0x28, 0xb5, 0x2f, 0xfd, 0x04, 0, 1, 0, 0, 0, 0, 0, 0],
    [0x28, 0xb5, 0x2f, 0xfd, 0xe4, 0, 1, 0, 0, 0, 0, 0, 0], [0x5c, 0x2a, 0x4d, 0x18, 0, 0, 0, 0, 0, 0, 0, 0], [],
  ]) assert.throws(() => decompress(Uint8Array.from(bytes)), FrameError);
});
