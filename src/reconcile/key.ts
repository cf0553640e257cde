import type { Key } from './record.ts';

/**
 * What a side gives as key of a record with a null or unreadable key part. Such records exist, can be counted and
 * shown, but cannot be looked up or paired with anything (rule 5.7).
 */
export const UNUSABLE_KEY: Key = [];

/** False when the key has no parts or every part is empty: then it names nothing. */
export function isUsableKey(key: Key): boolean {
  return key.some((part) => part !== '');
}

/** Orders keys part by part by the bytes of their UTF-8, as `COLLATE "C"` does. JavaScript's `<` does not. */
export function compareKeys(a: Key, b: Key): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i += 1) {
    const order = compareUtf8(a[i] ?? '', b[i] ?? '');
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareUtf8(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i += 1) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** Surrogates stand for code points above U+FFFF, so they rank above the units U+E000 to U+FFFF. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
