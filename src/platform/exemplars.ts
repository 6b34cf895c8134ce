/** Keeps an example of a command for each bucket of a histogram that `/metrics` shows. */
import { shownIndexOf } from '../core/metrics/buckets.ts';
import type { MeasuredCommand } from '../core/metrics.ts';
import { DECLINED, isSampled, readTraceparent } from '../core/trace-context.ts';
import type { Cell } from './counts.ts';

/** A command whose duration (in seconds) is in the bucket. `at`: when it was measured, in epoch seconds. */
export type Exemplar = {
  readonly labels: Readonly<Record<string, string>>;
  readonly seconds: number;
  readonly at: number;
};

/** The most characters of an exemplar's labels, names and values together, by the rule of OpenMetrics. */
const LABELS_MAX_CHARS = 128;

/**
 * The latest examples: at most one for each shown bucket in a time slot. Keeps none before `begin` is called, so that
 * examples cost nothing while they are not read.
 */
export class Exemplars {
  readonly #now: () => number;
  /** For each cell: the examples of its shown buckets, and the slots in which they were taken. */
  #kept: Map<Cell, Kept[]> | null = null;
  #slot = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  begin(): void {
    this.#kept ??= new Map();
  }

  /** Begins a new time slot, in which each bucket may take a new example. */
  nextSlot(): void {
    this.#slot++;
  }

  add(cell: Cell, ms: number, of: MeasuredCommand): void {
    if (!this.#kept) return;
    const known = this.#kept.get(cell);
    const shown = shownIndexOf(ms);
    if (known?.[shown]?.slot === this.#slot) return;
    const labels = labelsOf(of);
    if (!labels) return;
    const examples = known ?? [];
    const exemplar = { labels, seconds: Math.max(0, ms) / 1000, at: this.#now() / 1000 };
    examples[shown] = { exemplar, slot: this.#slot };
    if (!known) this.#kept.set(cell, examples);
  }

  /** Returns the example of a shown bucket. `shown`: its index, as `shownIndexOf` returns it. */
  get(cell: Cell, shown: number): Exemplar | undefined {
    return this.#kept?.get(cell)?.[shown]?.exemplar;
  }
}

type Kept = { readonly exemplar: Exemplar; readonly slot: number };

/**
 * Returns the labels of an example: the trace, if it is recorded anywhere, and the command. If they do not fit
 * together, it returns only the first one that fits. Null if neither fits, because a part of an id would find nothing.
 */
function labelsOf(of: MeasuredCommand): Exemplar['labels'] | null {
  const traceId = recordedTraceOf(of);
  const ids: readonly (readonly [string, string])[] = [
    ...(traceId === null ? [] : [['trace_id', traceId] as const]),
    ['command_id', of.commandId],
  ];
  const labels: Record<string, string> = {};
  let chars = 0;
  for (const [name, value] of ids) {
    chars += name.length + value.length;
    if (chars > LABELS_MAX_CHARS) chars -= name.length + value.length;
    else labels[name] = copyOf(value);
  }
  return chars === 0 ? null : labels;
}

/** Returns the id of the relay's trace, or of the caller's; null if flags say that the trace is not recorded. */
function recordedTraceOf({ callSpan, traceId, traceFlags }: MeasuredCommand): string | null {
  if (callSpan === DECLINED) return null;
  if (callSpan !== null) {
    const span = readTraceparent(callSpan, null);
    return isSampled(span.traceFlags) ? span.traceId : null;
  }
  return traceFlags === null || isSampled(traceFlags) ? traceId : null;
}

/** Copies a text. It may be a part of a frame, and would otherwise keep the whole frame in memory. */
function copyOf(text: string): string {
  return Buffer.from(text).toString();
}
