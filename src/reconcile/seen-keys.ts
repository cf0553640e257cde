const BITS = 1 << 23;
const HASHES = 3;

/**
 * Remembers which keys a scan has given, in one megabyte however many there are (a Bloom filter). It may say "seen"
 * of a key that was not, never the other way round: the caller reads such keys again, which costs time only.
 */
export class SeenKeys {
  readonly #bits = new Uint32Array(BITS / 32);

  /** Adds the key; true when it may have been there already. */
  add(key: string): boolean {
    const [first, step] = hashes(key);
    let seen = true;
    for (let i = 0; i < HASHES; i += 1) {
      const bit = (first + Math.imul(i, step)) & (BITS - 1);
      const word = bit >>> 5;
      const mask = 1 << (bit & 31);
      const before = this.#bits[word] ?? 0;
      if ((before & mask) === 0) {
        seen = false;
        this.#bits[word] = before | mask;
      }
    }
    return seen;
  }
}

/** Two 32-bit hashes in one pass (FNV-1a, and the same with another start and prime, mixed at the end). */
function hashes(text: string): [number, number] {
  let a = 0x811c9dc5;
  let b = 0x9747b28c;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(b ^ unit, 0x85ebca6b);
  }
  return [mix(a), mix(b) | 1];
}

function mix(hash: number): number {
  const h = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return h ^ (h >>> 13);
}
