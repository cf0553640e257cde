/** Numbers that depend on a seed only, so that `--seed N` always gives the same two systems. */
export interface Random {
  /** In [0, 1). */
  next(): number;
  /** A whole number in [from, to). */
  int(from: number, to: number): number;
  /** Lower-case hexadecimal digits. */
  hex(digits: number): string;
  /** `count` different elements of `items`, in the order of `items`. */
  sample<T>(items: readonly T[], count: number): T[];
}

/** The generator mulberry32: small, quick, and good enough to scatter records. Never for secrets. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  return {
    next,
    int: (from, to) => from + Math.floor(next() * (to - from)),
    hex: (digits) => Array.from({ length: digits }, () => Math.floor(next() * 16).toString(16)).join(''),
    sample: (items, count) => sample(items, count, next),
  };
}

/** Selection sampling: walks the items once, and takes each with the chance that still has to be filled. */
function sample<T>(items: readonly T[], count: number, next: () => number): T[] {
  if (count > items.length) throw new Error(`cannot take ${count} of ${items.length}`);
  const taken: T[] = [];
  for (const [index, item] of items.entries()) {
    if (next() * (items.length - index) < count - taken.length) taken.push(item);
  }
  return taken;
}
