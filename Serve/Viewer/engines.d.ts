// What engines offer and older versions of TypeScript do not know.

interface Array<T> {
  findLast(test: (value: T) => unknown): T | undefined;
  toReversed(): T[];
}
