// Zstandard frames of the one form that archives have (Docs/FORMAT.md, section 3.1): single
// segment, no dictionary.
//
//   magic 28 B5 2F FD │ descriptor 24, 64 or A4 │ content size, 1, 2 or 4 bytes │ blocks │ checksum, 4 bytes
//
// Source: RFC 8878. The content checksum is not compared: what is in a frame is compared with its
// CIDs.

/** The most that a frame may hold, in bytes (FORMAT 8). */
export const MAXIMUM_CONTENT = 4196397;
const MAXIMUM_BLOCK = 1 << 17;

/** A frame that is not what it must be. */
export class FrameError extends Error {}

function fail(what) {
  throw new FrameError(`a zstd frame does not hold: ${what}`);
}

/**
 * The content size that a frame's header states, and where its blocks begin; checked before
 * anything is allocated.
 */
export function frameHeader(bytes, at = 0) {
  if (bytes.length - at < 10) fail("it is cut short");
  if (bytes[at] !== 0x28 || bytes[at + 1] !== 0xb5 || bytes[at + 2] !== 0x2f || bytes[at + 3] !== 0xfd) fail("it is none");
  let size, start;
  switch (bytes[at + 4]) {
    case 0x24: [size, start] = [bytes[at + 5], at + 6]; break;
    case 0x64: [size, start] = [bytes[at + 5] + (bytes[at + 6] << 8) + 256, at + 7]; break;
    case 0xa4:
      size = (bytes[at + 5] | bytes[at + 6] << 8 | bytes[at + 7] << 16 | bytes[at + 8] << 24) >>> 0;
      start = at + 9;
      break;
    default: fail("its header is of another form");
  }
  if (size === 0 || size > MAXIMUM_CONTENT) fail(`it says that it holds ${size} bytes`);
  return { size, start };
}

/** The content of a frame that takes up all of `frame`. */
export function decompress(frame) {
  const { content, error } = decompressPart(frame);
  if (error) throw error;
  return content;
}

/**
 * Where the content lies in a frame that is raw: ranges [from, to] of its bytes; null for one that
 * is compressed, or broken.
 */
export function rawParts(frame) {
  const parts = [];
  const { size, start } = frameHeader(frame);
  let length = 0;
  for (let at = start, last = 0; !last;) {
    if (at + 3 > frame.length - 4) return null;
    const header = frame[at] | frame[at + 1] << 8 | frame[at + 2] << 16;
    const end = at + 3 + (header >> 3);
    if (header >> 1 & 3 || end > frame.length - 4) return null;
    if (end > at + 3) parts.push([at + 3, end]);
    length += header >> 3;
    [at, last] = [end, header & 1];
  }
  return length === size ? parts : null;
}

/**
 * The content of a frame and the error in it, null for one that is whole; behind an error the
 * content is zero or wrong.
 */
export function decompressPart(frame) {
  const { size, start } = frameHeader(frame);
  const out = new Uint8Array(size);
  const state = newState(frame, out, frame.length - 4);
  try {
    let at = start;
    for (let last = 0; !last;) [at, last] = block(state, at);
    if (state.at !== size || at !== frame.length - 4) fail("it holds less than it says");
  } catch (error) {
    if (!(error instanceof FrameError)) throw error;
    return { content: out, error };
  }
  return { content: out, error: null };
}

/** What is known while a frame is decompressed into `out`; its blocks end at `stop`. */
const newState = (frame, out, stop) => ({ frame, out, stop, from: 0, at: 0, huffman: null, lengths: null, offsets: null, matches: null, recent: [1, 4, 8] });

/** Whether bytes begin as a frame does, of any form. */
export const isZstd = (bytes) => bytes[0] === 0x28 && bytes[1] === 0xb5 && bytes[2] === 0x2f && bytes[3] === 0xfd;

/**
 * The content of a file that any zstd wrote: frames of all forms but those that need a dictionary,
 * and skippable ones between them. Throws `FrameError`, also for more than `limit` bytes.
 */
export function decompressFile(bytes, limit) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const state = newState(bytes, new Uint8Array(Math.min(limit, Math.max(1 << 20, bytes.length * 4))), bytes.length);
  let at = 0;
  while (at < bytes.length) {
    if (at + 8 > bytes.length) fail("it is cut short");
    const magic = view.getUint32(at, true);
    if (magic >>> 4 === 0x184d2a5) {
      at += 8 + view.getUint32(at + 4, true);
      continue;
    }
    if (magic !== 0xfd2fb528) fail("it is none");
    const descriptor = bytes[at + 4];
    const isSingle = descriptor >> 5 & 1;
    if (descriptor & 3) fail("it needs a dictionary");
    at += 5 + (isSingle ? 0 : 1) + [isSingle, 2, 4, 8][descriptor >> 6];
    Object.assign(state, newState(bytes, state.out, bytes.length), { from: state.at, at: state.at });
    for (let last = 0; !last;) {
      // A block holds no more than 128 KiB.
      if (state.at + MAXIMUM_BLOCK > state.out.length) {
        if (state.out.length >= limit + MAXIMUM_BLOCK) fail(`it holds more than ${limit} bytes`);
        const grown = new Uint8Array(Math.min(limit + MAXIMUM_BLOCK, state.out.length * 2));
        grown.set(state.out);
        state.out = grown;
      }
      [at, last] = block(state, at);
    }
    if (descriptor & 4) at += 4;
  }
  if (at !== bytes.length) fail("it is cut short");
  return state.out.subarray(0, state.at);
}

/**
 * Decompresses the block that begins at `at`; answers where it ends, and whether it is the last.
 */
function block(state, at) {
  const { frame, out, stop } = state;
  if (at + 3 > stop) fail("it is cut short");
  const header = frame[at] | frame[at + 1] << 8 | frame[at + 2] << 16;
  const length = header >> 3;
  at += 3;
  if (length > MAXIMUM_BLOCK) fail("a block is too long");
  const kind = header >> 1 & 3;
  const end = at + (kind === 1 ? 1 : length);
  if (end > stop) fail("it is cut short");
  if (kind === 2) {
    compressedBlock(state, at, end);
  } else if (kind === 3) {
    fail("a block of an unknown type");
  } else {
    if (state.at + length > out.length) fail("it holds more than it says");
    if (kind === 0) out.set(frame.subarray(at, end), state.at);
    else out.fill(frame[at], state.at, state.at + length);
    state.at += length;
  }
  return [end, header & 1];
}

// Bits

/**
 * The position behind the highest bit of a stream that is read backwards: where its content ends.
 */
function streamBits(bytes, start, end) {
  if (end <= start || bytes[end - 1] === 0) fail("a row of bits has no end");
  return (end - start) * 8 - (Math.clz32(bytes[end - 1]) - 23);
}

/**
 * `count` bits, at most 25, that end below bit `position` of the stream from `start`; zeros before
 * its beginning.
 */
function bitsBelow(bytes, start, position, count) {
  let low = position - count;
  if (low >= 0) {
    const at = start + (low >> 3);
    const word = bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 | bytes[at + 3] << 24;
    return (word >>> (low & 7)) & ((1 << count) - 1);
  }
  if (position <= 0) return 0;
  return bitsBelow(bytes, start, position, position) << -low;
}

// Finite state entropy (RFC 8878, 4.1)

/** Reads the description of a table; answers the table and where it ends. */
function readTable(bytes, start, end, maximumLog, maximumSymbol, cells) {
  let bit = 0;
  const read = (count) => {
    let value = 0;
    for (let i = 0; i < count; i++, bit++) {
      const at = start + (bit >> 3);
      if (at >= end) fail("a table is cut short");
      value |= (bytes[at] >> (bit & 7) & 1) << i;
    }
    return value;
  };
  const log = read(4) + 5;
  if (log > maximumLog) fail("a table is too large");
  let remaining = 1 << log;
  const weights = [];
  while (remaining > 0) {
    if (weights.length > maximumSymbol) fail("a table has too many symbols");
    const count = 32 - Math.clz32(remaining + 1);
    let value = read(count);
    const mask = (1 << count - 1) - 1;
    const threshold = (1 << count) - 1 - (remaining + 1);
    if ((value & mask) < threshold) {
      bit--;
      value &= mask;
    } else if (value > mask) {
      value -= threshold;
    }
    const weight = value - 1;
    remaining -= Math.abs(weight);
    weights.push(weight);
    if (weight === 0) {
      for (let more = 3; more === 3;) {
        more = read(2);
        for (let i = 0; i < more; i++) weights.push(0);
      }
    }
  }
  if (remaining !== 0 || weights.length > maximumSymbol + 1) fail("a table does not add up");
  return { table: makeTable(weights, log, cells), end: start + (bit + 7 >> 3) };
}

/**
 * A table {log, cells}, where a cell is the symbol, the count of bits << 8 and the base << 16;
 * `cells` may be of an earlier one.
 */
function makeTable(weights, log, cells = new Int32Array(1 << log)) {
  const size = 1 << log;
  const next = new Array(weights.length).fill(0);
  let high = size;
  weights.forEach((weight, symbol) => {
    if (weight !== -1) return;
    cells[--high] = symbol;
    next[symbol] = 1;
  });
  const step = (size >> 1) + (size >> 3) + 3;
  let place = 0;
  weights.forEach((weight, symbol) => {
    if (weight <= 0) return;
    next[symbol] = weight;
    for (let i = 0; i < weight; i++) {
      cells[place] = symbol;
      do place = (place + step) & (size - 1); while (place >= high);
    }
  });
  for (let i = 0; i < size; i++) {
    const symbol = cells[i];
    const state = next[symbol]++;
    const bits = log - (31 - Math.clz32(state));
    cells[i] = symbol | bits << 8 | (state << bits) - size << 16;
  }
  return { log, cells };
}

const tableOfOne = (symbol) => ({ log: 0, cells: Int32Array.of(symbol) });

// Huffman codes (RFC 8878, 4.2)

/**
 * The codes of the tree that was read last: a symbol, and the length of its code << 8. A frame has
 * one tree at a time.
 */
const CODES = new Uint16Array(1 << 11);

function readHuffman(bytes, start, end) {
  if (start >= end) fail("a tree is cut short");
  const first = bytes[start];
  let weights, stop;
  if (first >= 128) {
    const count = first - 127;
    stop = start + 1 + (count + 1 >> 1);
    if (stop > end) fail("a tree is cut short");
    weights = Array.from({ length: count }, (_, i) => {
      const pair = bytes[start + 1 + (i >> 1)];
      return i & 1 ? pair & 15 : pair >> 4;
    });
  } else {
    stop = start + 1 + first;
    if (stop > end) fail("a tree is cut short");
    weights = readWeights(bytes, start + 1, stop);
  }
  let sum = 0;
  for (const weight of weights) if (weight) sum += 1 << weight - 1;
  if (sum === 0) fail("a tree is empty");
  const log = 32 - Math.clz32(sum);
  const rest = (1 << log) - sum;
  if (log > 11 || (rest & rest - 1) !== 0) fail("a tree does not add up");
  weights.push(32 - Math.clz32(rest));
  let place = 0;
  for (let weight = 1; weight <= log; weight++) {
    for (let symbol = 0; symbol < weights.length; symbol++) {
      if (weights[symbol] !== weight) continue;
      const count = 1 << weight - 1;
      CODES.fill(symbol | log + 1 - weight << 8, place, place + count);
      place += count;
    }
  }
  return { tree: { log, codes: CODES }, end: stop };
}

function readWeights(bytes, start, end) {
  const { table, end: at } = readTable(bytes, start, end, 6, 255);
  let bit = streamBits(bytes, at, end);
  const read = (count) => {
    const value = bitsBelow(bytes, at, bit, count);
    bit -= count;
    return value;
  };
  const states = [read(table.log), read(table.log)];
  const weights = [];
  for (let turn = 0; ; turn ^= 1) {
    const state = states[turn];
    const cell = table.cells[state];
    weights.push(cell & 255);
    states[turn] = (cell >> 16) + read(cell >> 8 & 255);
    if (bit < 0) {
      weights.push(table.cells[states[turn ^ 1]] & 255);
      break;
    }
    if (weights.length > 255) fail("a tree has too many symbols");
  }
  if (weights.length > 255 || weights.some((weight) => weight > 11)) fail("a tree has too many symbols");
  return weights;
}

function readStream(tree, bytes, start, end, out, from, to) {
  const { log, codes } = tree;
  const mask = (1 << log) - 1;
  let bit = streamBits(bytes, start, end);
  let at = from;
  // Two codes at once: 22 bits are in four bytes wherever they begin.
  for (; at + 1 < to && bit >= 22; at += 2) {
    const place = start + (bit - 22 >> 3);
    const word = (bytes[place] | bytes[place + 1] << 8 | bytes[place + 2] << 16 | bytes[place + 3] << 24) >>> (bit - 22 & 7);
    const one = codes[word >> 22 - log & mask];
    const other = codes[word >> 22 - log - (one >> 8) & mask];
    out[at] = one;
    out[at + 1] = other;
    bit -= (one >> 8) + (other >> 8);
  }
  while (at < to) {
    if (bit <= 0) fail("literals are cut short");
    const code = codes[bitsBelow(bytes, start, bit, log)];
    out[at++] = code;
    bit -= code >> 8;
  }
  if (bit !== 0) fail("literals do not end where they should");
}

// Compressed blocks (RFC 8878, 3.1.1.3)

function compressedBlock(state, start, end) {
  const { literals, end: at } = readLiterals(state, start, end);
  readSequences(state, literals, at, end);
}

/** The literals of the block that is decompressed. */
const LITERALS = new Uint8Array(MAXIMUM_BLOCK);

function readLiterals(state, start, end) {
  const bytes = state.frame;
  if (start >= end) fail("a block is empty");
  const kind = bytes[start] & 3;
  const form = bytes[start] >> 2 & 3;
  if (kind < 2) {
    const width = form === 1 ? 2 : form === 3 ? 3 : 1;
    let size = width === 1 ? bytes[start] >> 3 : bytes[start] >> 4 | bytes[start + 1] << 4;
    if (width === 3) size |= bytes[start + 2] << 12;
    const at = start + width;
    if (size > MAXIMUM_BLOCK || at + (kind ? 1 : size) > end) fail("literals are cut short");
    if (kind === 0) return { literals: bytes.subarray(at, at + size), end: at + size };
    return { literals: LITERALS.subarray(0, size).fill(bytes[at]), end: at + 1 };
  }
  const width = form < 2 ? 3 : form + 2;
  const bits = form < 2 ? 10 : form === 2 ? 14 : 18;
  let header = 0;
  for (let i = width - 1; i >= 0; i--) header = header * 256 + bytes[start + i];
  header = Math.floor(header / 16);
  const size = header % (1 << bits);
  const length = Math.floor(header / (1 << bits)) % (1 << bits);
  let at = start + width;
  const stop = at + length;
  if (size > MAXIMUM_BLOCK || stop > end) fail("literals are cut short");
  if (kind === 2) {
    const read = readHuffman(bytes, at, stop);
    state.huffman = read.tree;
    at = read.end;
  } else if (!state.huffman) {
    fail("literals need a tree that was not there");
  }
  const literals = LITERALS.subarray(0, size);
  if (form === 0) {
    readStream(state.huffman, bytes, at, stop, literals, 0, size);
    return { literals, end: stop };
  }
  if (at + 6 > stop) fail("literals are cut short");
  const part = size + 3 >> 2;
  if (part * 3 > size) fail("literals are too short for four streams");
  let from = at + 6;
  for (let i = 0; i < 4; i++) {
    const to = i === 3 ? stop : from + (bytes[at + 2 * i] | bytes[at + 2 * i + 1] << 8);
    if (to > stop) fail("literals are cut short");
    readStream(state.huffman, bytes, from, to, literals, part * i, i === 3 ? size : part * (i + 1));
    from = to;
  }
  return { literals, end: stop };
}

const LENGTH_BASE = Uint32Array.of(
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 28, 32, 40, 48, 64, 128, 256, 512, 1024,
  2048, 4096, 8192, 16384, 32768, 65536);
const LENGTH_BITS = Uint8Array.of(
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
const MATCH_BASE = Uint32Array.of(
  3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33,
  34, 35, 37, 39, 41, 43, 47, 51, 59, 67, 83, 99, 131, 259, 515, 1027, 2051, 4099, 8195, 16387, 32771, 65539);
const MATCH_BITS = Uint8Array.of(
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3,
  3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
const DEFAULT_LENGTHS = makeTable([
  4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1], 6);
const DEFAULT_MATCHES = makeTable([
  1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
  1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1], 6);
const DEFAULT_OFFSETS = makeTable([
  1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1], 5);
/** Codes of longer offsets reach back further than the largest window that is common, 128 MiB. */
const MAXIMUM_OFFSET_CODE = 27;

/** The cells of the tables that were read last, by what they are for. */
const CELLS = { lengths: new Int32Array(512), offsets: new Int32Array(256), matches: new Int32Array(512) };

function readSequences(state, literals, start, end) {
  const { frame: bytes, out, recent } = state;
  const limit = out.length;
  let at = start;
  if (at >= end) fail("a block is cut short");
  let count = bytes[at++];
  if (count >= 128) {
    if (at + (count === 255 ? 2 : 1) > end) fail("a block is cut short");
    count = count === 255 ? bytes[at++] + (bytes[at++] << 8) + 0x7f00 : (count - 128 << 8) + bytes[at++];
  }
  let target = state.at;
  let literal = 0;
  if (count > 0) {
    if (at >= end) fail("a block is cut short");
    const modes = bytes[at++];
    if (modes & 3) fail("a block is of a form that is not known");
    const choose = (mode, name, fallback, maximumLog, maximumSymbol) => {
      if (mode === 0) {
        state[name] = fallback;
      } else if (mode === 1) {
        if (at >= end || bytes[at] > maximumSymbol) fail("a table is cut short");
        state[name] = tableOfOne(bytes[at++]);
      } else if (mode === 2) {
        const read = readTable(bytes, at, end, maximumLog, maximumSymbol, CELLS[name]);
        state[name] = read.table;
        at = read.end;
      } else if (!state[name]) {
        fail("a block needs a table that was not there");
      }
      return state[name];
    };
    const lengths = choose(modes >> 6, "lengths", DEFAULT_LENGTHS, 9, 35);
    const offsets = choose(modes >> 4 & 3, "offsets", DEFAULT_OFFSETS, 8, 31);
    const matches = choose(modes >> 2 & 3, "matches", DEFAULT_MATCHES, 9, 52);
    let bit = streamBits(bytes, at, end);
    const read = (width) => {
      const value = bitsBelow(bytes, at, bit, width);
      bit -= width;
      return value;
    };
    let lengthState = read(lengths.log);
    let offsetState = read(offsets.log);
    let matchState = read(matches.log);
    let [first, second, third] = recent;
    while (count-- > 0) {
      const [offsetCell, matchCell, lengthCell] = [offsets.cells[offsetState], matches.cells[matchState], lengths.cells[lengthState]];
      const offsetCode = offsetCell & 255;
      if (offsetCode > MAXIMUM_OFFSET_CODE) fail("a match begins before the content");
      const value = (1 << offsetCode) + (offsetCode > 24 ? read(offsetCode - 16) * 65536 + read(16) : read(offsetCode));
      const matchCode = matchCell & 255;
      const matchLength = MATCH_BASE[matchCode] + (MATCH_BITS[matchCode] ? read(MATCH_BITS[matchCode]) : 0);
      const lengthCode = lengthCell & 255;
      const length = LENGTH_BASE[lengthCode] + (LENGTH_BITS[lengthCode] ? read(LENGTH_BITS[lengthCode]) : 0);
      let offset;
      if (value > 3) {
        offset = value - 3;
        [third, second, first] = [second, first, offset];
      } else {
        const number = value - (length === 0 ? 0 : 1);
        if (number === 0) {
          offset = first;
        } else {
          offset = number === 1 ? second : number === 2 ? third : first - 1;
          if (number > 1) third = second;
          second = first;
          first = offset;
        }
      }
      if (count > 0) {
        lengthState = (lengthCell >> 16) + read(lengthCell >> 8 & 255);
        matchState = (matchCell >> 16) + read(matchCell >> 8 & 255);
        offsetState = (offsetCell >> 16) + read(offsetCell >> 8 & 255);
      }
      if (bit < 0) fail("a block is cut short");
      if (literal + length > literals.length || target + length + matchLength > limit) {
        fail("it holds more than it says");
      }
      if (length > 40) {
        out.set(literals.subarray(literal, literal + length), target);
      } else {
        for (let i = 0; i < length; i++) out[target + i] = literals[literal + i];
      }
      literal += length;
      target += length;
      if (offset <= 0 || offset > target - state.from) fail("a match begins before the content");
      const source = target - offset;
      if (matchLength > 40 && offset >= matchLength) {
        out.copyWithin(target, source, source + matchLength);
      } else {
        for (let i = 0; i < matchLength; i++) out[target + i] = out[source + i];
      }
      target += matchLength;
    }
    if (bit !== 0) fail("a block does not end where it should");
    recent[0] = first;
    recent[1] = second;
    recent[2] = third;
  }
  const rest = literals.length - literal;
  if (target + rest > limit) fail("it holds more than it says");
  out.set(literals.subarray(literal), target);
  state.at = target + rest;
}
