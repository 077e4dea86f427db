// The browser's own decoder of zstd, where it has one.

import { release } from "./memory.js";
import { frameHeader } from "./zstd.js";

/** What TypeScript knows of formats has no zstd. */
const decompression = () => new (/** @type {any} */ (globalThis).DecompressionStream)("zstd");

/** Whether the browser decompresses zstd for scripts. */
const isThere = (() => {
  try {
    return Boolean(decompression());
  } catch {
    return false;
  }
})();

/**
 * The content of a frame by the browser's decoder; null where there is none, or it does not take
 * the frame.
 */
export async function decompressNatively(frame) {
  if (!isThere) return null;
  const { size } = frameHeader(frame);
  const content = new Uint8Array(size);
  const reader = new Blob([frame]).stream().pipeThrough(decompression()).getReader();
  let length = 0;
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      // However much a frame decompresses to, no more is kept than it says.
      if (length + part.value.length > size) {
        await reader.cancel();
        return null;
      }
      content.set(part.value, length);
      length += part.value.length;
      release(part.value);
    }
  } catch {
    return null;
  }
  return length === size ? content : null;
}
