/**
 * Tells the metrics how to read those sampled gauges of a node that core can compute, such as its live commands and its
 * waits.
 */
import type { CommandLoad } from '../delivery/commands.ts';
import type { Deps } from '../deps.ts';

export type NodeWork = {
  /** The commands of this node's client links. */
  readonly load: () => CommandLoad;
  /**
   * The waits of this node's callers: how many, and when the oldest began (epoch milliseconds; null if there is none).
   */
  readonly waits: () => { readonly count: number; readonly oldestSince: number | null };
};

export function sampleNode({ metrics, clock }: Pick<Deps, 'metrics' | 'clock'>, { load, waits }: NodeWork): void {
  metrics.sample('commands_queued', () => [[null, load().queued]]);
  metrics.sample('commands_in_flight', () => [[null, load().inFlight]]);
  metrics.sample('waiters', () => [[null, waits().count]]);
  metrics.sample('oldest_wait_seconds', () => {
    const { oldestSince } = waits();
    return [[null, oldestSince === null ? 0 : clock.now() - oldestSince]];
  });
}
