/** Draws random numbers from a seed, so that a run can be repeated. */

/** Returns a generator of random numbers from 0 (included) to 1 (excluded). The same seed gives the same numbers. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns a random item of the list. Throws for an empty list. */
export function pick<T>(random: () => number, list: readonly T[]): T {
  const one = list[Math.floor(random() * list.length)];
  if (one === undefined) throw new Error('nothing to pick from');
  return one;
}

/** Returns a whole number from `from` to `to`, both included. */
export function between(random: () => number, from: number, to: number): number {
  return from + Math.floor(random() * (to - from + 1));
}

// Draws the random values for the fuzzer's inputs from a seed.

/**
 * Random values for one input. The same seed, kind and index always give the same input, whichever inputs were
 * generated before.
 */
export class Draw {
  readonly next: () => number;

  constructor(seed: number, kind: string, index: number) {
    let mixed = seed >>> 0;
    for (let i = 0; i < kind.length; i++) mixed = Math.imul(mixed ^ kind.charCodeAt(i), 0x01000193);
    this.next = seeded(Math.imul(mixed ^ index, 0x9e3779b1) ^ (index >>> 3));
    this.next();
  }

  chance(part: number): boolean {
    return this.next() < part;
  }

  int(from: number, to: number): number {
    return between(this.next, from, to);
  }

  pick<T>(list: readonly T[]): T {
    return pick(this.next, list);
  }

  /**
   * Draws a size from 1 to `max`. One in ten is `max` itself; the others are evenly distributed over the orders of
   * magnitude.
   */
  size(max: number): number {
    if (this.chance(0.1)) return max;
    return Math.max(1, Math.floor(Math.exp(this.next() * Math.log(max))));
  }
}
