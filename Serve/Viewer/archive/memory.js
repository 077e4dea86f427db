// Memory that is given back at once: a browser counts on its collector for the rest, which comes
// late for large buffers.

/** Numbers in an array of another length; the old one must not be used any more. */
export function resized(numbers, length) {
  const { buffer, constructor, BYTES_PER_ELEMENT } = numbers;
  if (isWhole(numbers) && buffer.transfer) return new constructor(buffer.transfer(length * BYTES_PER_ELEMENT));
  const other = new constructor(length);
  other.set(length < numbers.length ? numbers.subarray(0, length) : numbers);
  return other;
}

/** Gives back the memory of bytes that nothing uses any more. */
export function release(bytes) {
  if (isWhole(bytes)) bytes.buffer.transfer?.(0);
}

/** Whether an array is all that its buffer has. */
const isWhole = ({ buffer, byteLength }) => byteLength === buffer.byteLength;
