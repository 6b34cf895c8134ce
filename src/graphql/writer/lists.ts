/** Caches the JSON text of lists of entities. A cached text must not outlive a change of a derived field. */
import type { Clock } from '../../core/clock.ts';
import type { JsonCache } from './json-cache.ts';
import { insertMark } from '../../web/json-text.ts';
import { isNonAscii, type Run, type TextInfo, type WriteValue } from './values.ts';

/**
 * The earliest time, in epoch milliseconds and later than `now`, at which any derived field of an entity may change
 * while the entity stays the same object. It may be earlier than the actual change, never later. Infinity: never.
 */
export type ChangesAt = (entity: unknown, now: number) => number;

/** The fewest items of a list that is cached: shorter lists are written about as fast as they are looked up. */
const MIN_CACHED_ITEMS = 2;

/**
 * The fewest characters of a text that is also kept as bytes: from that length on, copying the text into a socket's
 * buffer costs more than a separate write of the bytes.
 */
const INSERTED_CHARS = 8 * 1024;

export type KeptList = {
  readonly text: string;
  /** The same text as bytes, created when they are first needed. Only for a text of ASCII characters. */
  bytes: Buffer | null;
  readonly nonAscii: boolean;
  readonly from: number;
  readonly until: number;
};
type ListKeeping = {
  /** The function that tells when the text of the list may change. Null when nothing in it changes with time. */
  readonly changesAt: ChangesAt | null;
  readonly kept: JsonCache<KeptList>;
};

/**
 * Caches the text of a list of entities while it is the same array and no derived field of its entities changes with
 * time. An array that was handed out is never modified: a changed list is a new array.
 */
export function keptList(write: WriteValue, { changesAt, kept }: ListKeeping): WriteValue {
  return (list, run) => {
    if (!Array.isArray(list) || list.length < MIN_CACHED_ITEMS) return write(list, run);
    const clock = changesAt ? clockOf(run) : null;
    if (changesAt && !clock) return write(list, run);
    const from = clock?.now() ?? 0;
    const known = kept.get(list);
    if (known && from >= known.from && from < known.until) {
      run.note.nonAscii ||= known.nonAscii;
      return inserted(known, run);
    }
    const text = withoutInserts(run.note, () => write(list, run));
    if (typeof text !== 'string') return text;
    const until = changesAt ? soonest(list, (entity) => changesAt(entity, from)) : Infinity;
    const whole = { text: flat(text), bytes: null, nonAscii: isNonAscii(text), from, until };
    // A derived field may have changed while the list was written.
    if ((clock?.now() ?? 0) < until) kept.set(list, whole, text.length);
    return whole.text;
  };
}

/** Returns a reference to the list's bytes if the answer may contain one. Otherwise returns the list's text. */
function inserted(list: KeptList, { note: { inserts } }: Run): string {
  if (!inserts || list.nonAscii || list.text.length < INSERTED_CHARS) return list.text;
  list.bytes ??= Buffer.from(list.text, 'latin1');
  return insertMark(inserts.push(list.bytes) - 1);
}

/** Runs `write` so that its text contains no references to bytes, because the text is cached. */
export function withoutInserts<T>(note: TextInfo, write: () => T): T {
  const { inserts } = note;
  if (!inserts) return write();
  note.inserts = null;
  try {
    return write();
  } finally {
    note.inserts = inserts;
  }
}

function soonest(list: readonly unknown[], of: (entity: unknown) => number): number {
  let soonest = Infinity;
  for (const entity of list) soonest = Math.min(soonest, of(entity));
  return soonest;
}

/**
 * Returns the same text as one flat string. Concatenation leaves a tree of pieces; only joining two strings makes V8
 * copy the pieces.
 */
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
