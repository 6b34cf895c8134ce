import type { Clock } from '../core/clock.ts';
import type { Fragments } from './fragments.ts';
import { isWide, type Run, type WriteValue } from './writer-values.ts';

/**
 * From when on what is derived of an entity may be another than it is at `now`, as long as the entity is there: later than `now`, and never
 * later than it is so; Infinity when never.
 */
export type ChangesAt = (entity: unknown, now: number) => number;

/** Shorter lists are written about as fast as they are found. */
const WORTH = 2;

export type KeptList = { readonly text: string; readonly wide: boolean; readonly from: number; readonly until: number };
type ListKeeping = {
  /** Null: nothing in the list changes with time. */
  readonly changesAt: ChangesAt | null;
  readonly kept: Fragments<KeptList>;
};

/**
 * Writes a list of entities once, for as long as it is the same array and nothing derived of its entities changes with time. An array that
 * was given out is never changed: another list is another array.
 */
export function keptList(write: WriteValue, { changesAt, kept }: ListKeeping): WriteValue {
  return (list, run) => {
    if (!Array.isArray(list) || list.length < WORTH) return write(list, run);
    const clock = changesAt ? clockOf(run) : null;
    if (changesAt && !clock) return write(list, run);
    const from = clock?.now() ?? 0;
    const known = kept.get(list);
    if (known && from >= known.from && from < known.until) {
      run.note.wide ||= known.wide;
      return known.text;
    }
    const text = write(list, run);
    if (typeof text !== 'string') return text;
    const until = changesAt ? soonest(list, (entity) => changesAt(entity, from)) : Infinity;
    const whole = { text: flat(text), wide: isWide(text), from, until };
    // It may have changed while it was written.
    if ((clock?.now() ?? 0) < until) kept.set(list, whole, text.length);
    return whole.text;
  };
}

function soonest(list: readonly unknown[], of: (entity: unknown) => number): number {
  let soonest = Infinity;
  for (const entity of list) soonest = Math.min(soonest, of(entity));
  return soonest;
}

/** The same text without the tree of pieces that adding them up leaves. Only joining two copies them. */
export function flat(text: string): string {
  return [text.slice(0, 1), text.slice(1)].join('');
}

function clockOf({ context }: Run): Clock | null {
  return isTimed(context) ? context.core.clock : null;
}

function isTimed(context: unknown): context is { readonly core: { readonly clock: Clock } } {
  if (typeof context !== 'object' || context === null || !('core' in context)) return false;
  const { core } = context;
  return typeof core === 'object' && core !== null && 'clock' in core;
}
