/** Reads the sampled gauges of this process, and tells how the samples of each are combined over time. */
import { SAMPLED_GAUGES, type SampledGaugeName, type SampleReader } from '../core/metrics.ts';
import type { Counts } from './counts.ts';

export class Gauges {
  readonly #counts: Counts;
  readonly #readers = new Map<SampledGaugeName, SampleReader>();

  constructor(counts: Counts) {
    this.#counts = counts;
  }

  add(name: SampledGaugeName, read: SampleReader): void {
    this.#readers.set(name, read);
  }

  /** Reads every gauge and puts its values into `Counts`, which keeps them until the next flush. */
  sample(): void {
    for (const [name, read] of this.#readers) {
      for (const { label } of this.#counts.cells(name)) this.#counts.set(name, label, 0);
      for (const [label, value] of read()) this.#counts.set(name, label ?? undefined, Math.max(0, Math.round(value)));
    }
  }

  /**
   * Returns the indexes of the gauges in `Counts`, in two sets. A longer time step shows the last sample of each gauge
   * in `last`, and the highest sample of each gauge in `highest`.
   */
  places(): { readonly last: ReadonlySet<number>; readonly highest: ReadonlySet<number> } {
    const places = { last: new Set<number>(), highest: new Set<number>() };
    for (const name of this.#readers.keys()) {
      const found = isHighest(name) ? places.highest : places.last;
      for (const { base } of this.#counts.cells(name)) found.add(base);
    }
    return places;
  }
}

function isHighest(name: SampledGaugeName): boolean {
  return SAMPLED_GAUGES[name] === 'max';
}
