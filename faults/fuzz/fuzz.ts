/** Runs the fuzzer: sends inputs of each kind to a relay, and judges the answers, the event loop and the heap. */
import { passTime } from '../lib/pass-time.ts';
import type { Memory } from '../lib/relay.ts';
import { type Finding, type KindReport, runKind } from './engine.ts';
import { KIND_NAMES, type KindName, kindOf } from './kinds.ts';
import { openTarget, type Target } from './target.ts';

type FuzzOptions = {
  readonly seed: number;
  /** The number of inputs of each kind. Absent kinds are not sent. */
  readonly counts: Readonly<Partial<Record<KindName, number>>>;
  /** The index of the first input: 0, or the index of the input to repeat. */
  readonly from?: number;
  /** The sending of a kind stops after this many of its inputs cost too much. */
  readonly most: number;
  /** The folder of the relay's sources; default: those of this project. */
  readonly source?: string | undefined;
  /** The number of inputs of each kind that are sent before the heap is first measured. 0: the heap is not judged. */
  readonly warmUp: number;
  /** The limit of the main thread's CPU time for one turn of the event loop, in milliseconds; default TURN_MS. */
  readonly turnMs?: number;
  readonly onFinding?: (finding: Finding) => void;
  readonly onReport?: (report: KindReport) => void;
};

type FuzzReport = {
  readonly kinds: readonly KindReport[];
  readonly heap: { readonly good: boolean; readonly text: string } | null;
  readonly green: boolean;
};

/** The seed of the warm-up. It differs from the run's seed, so that the inputs differ too. */
const WARM_SEED = 0x5eed;

export async function fuzz(options: FuzzOptions): Promise<FuzzReport> {
  const { seed, counts, from = 0, most, warmUp, turnMs, onFinding = () => {}, onReport = () => {} } = options;
  await using target = await openTarget({ source: options.source });
  const names = KIND_NAMES.filter((name) => (counts[name] ?? 0) > 0);
  for (const name of warmUp > 0 ? names : []) {
    const kind = kindOf(name, WARM_SEED);
    await runKind({ target, kind, count: warmUp * kind.countOfOne, from: 0, most: 1, onFinding: () => {} });
  }
  const start = warmUp > 0 ? await settledMemory(target) : null;
  const pid = target.relay.pid;
  const kinds: KindReport[] = [];
  for (const name of names) {
    const report = await runKind({
      target,
      kind: kindOf(name, seed),
      count: counts[name] ?? 0,
      from,
      most,
      turnMs,
      onFinding,
    });
    kinds.push(report);
    onReport(report);
  }
  // The heap can be compared only if the relay was not restarted. Inputs that ended the relay are already findings.
  const heap = start && target.relay.pid === pid ? heapVerdict(start, await settledMemory(target)) : null;
  const green = kinds.every(({ findings }) => findings.length === 0) && (heap?.good ?? true);
  return { kinds, heap, green };
}

// Judges whether a relay's heap returns to its initial size after everything that the relay retains has expired.

/**
 * A time after which everything that the relay retains has expired, in milliseconds. The relay retains ended commands
 * for an hour, and history for the retention time of its settings.
 */
const KEPT_MS = 2 * 3_600_000;
/** The fraction by which the heap may exceed its initial size. */
const HEAP_GROWTH = 0.2;

/** Moves the clock beyond every retention time, collects garbage, and measures the memory. */
async function settledMemory({ relay }: Target): Promise<Memory> {
  await passTime(relay, KEPT_MS);
  return relay.memory();
}

function heapVerdict(start: Memory, end: Memory): { readonly good: boolean; readonly text: string } {
  const growth = end.heap / start.heap - 1;
  const good = growth <= HEAP_GROWTH;
  const text = `heap ${mib(start.heap)} MiB at the start, ${mib(end.heap)} at the end (${growth >= 0 ? '+' : ''}${(growth * 100).toFixed(1)}%, at most +20%); outside the heap ${mib(start.external)} and ${mib(end.external)} MiB`;
  return { good, text };
}

function mib(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(1);
}
