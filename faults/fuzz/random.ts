/** Draws the random values of the fuzzer's inputs from a seed. */
import { between, pick, seeded } from '../outages/random.ts';

/**
 * The random values for one input. The same seed, kind and index give the same input, whatever was generated before.
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

  /** Draws a size from 1 to `max`. One in ten is `max` itself; the others are distributed over all magnitudes. */
  size(max: number): number {
    if (this.chance(0.1)) return max;
    return Math.max(1, Math.floor(Math.exp(this.next() * Math.log(max))));
  }
}
