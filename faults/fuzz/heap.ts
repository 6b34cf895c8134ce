/**
 * Judges whether a relay's heap returns to its size at the start once everything that the relay retains has expired.
 */
import { passTime } from '../lib/pass-time.ts';
import type { Memory } from '../lib/relay.ts';
import type { Target } from './target.ts';

/**
 * A time after which everything that the relay keeps has expired, in milliseconds. It keeps ended commands for an hour,
 * and history for the retention time of the relays under test.
 */
const KEPT_MS = 2 * 3_600_000;
/** The fraction by which the heap may exceed its size at the start. */
const HEAP_GROWTH = 0.2;

/** Moves the clock beyond every retention time, collects garbage, and measures the memory. */
export async function settledMemory({ relay }: Target): Promise<Memory> {
  await passTime(relay, KEPT_MS);
  return relay.memory();
}

export function heapVerdict(start: Memory, end: Memory): { readonly good: boolean; readonly text: string } {
  const growth = end.heap / start.heap - 1;
  const good = growth <= HEAP_GROWTH;
  const text = `heap ${mib(start.heap)} MiB at the start, ${mib(end.heap)} at the end (${growth >= 0 ? '+' : ''}${(growth * 100).toFixed(1)}%, at most +20%); outside the heap ${mib(start.external)} and ${mib(end.external)} MiB`;
  return { good, text };
}

function mib(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(1);
}
