/**
 * Keeps the JSON texts of entities and of lists of entities, so that what has not changed is written once. A cached text
 * must not outlive a change of a derived field.
 */
import type { Clock } from '../../core/ports.ts';
import { insertMark } from '../../web/reply.ts';
import { isNonAscii, type Run, type TextInfo, type WriteValue } from './values.ts';

/** A cache of the texts of entities; each lives as long as its entity. */
export type JsonCache<T> = {
  get(entity: object): T | undefined;
  /** Caches the text of an entity. `chars`: the length of the texts in `kept`. */
  set(entity: object, kept: T, chars: number): void;
};

/** Creates caches that share one bound. */
export type JsonCaches = { create<T>(): JsonCache<T> };

/** The cost of an entry besides its text, in characters. */
const OVERHEAD = 200;

/**
 * Creates caches of the texts of entities. An entity is immutable, so its text is valid while the entity lives and is
 * freed with it. At most `chars` characters are cached in all; when they are used up, every cache is cleared at once.
 * Text that was freed with its entity still counts until then.
 */
export function createJsonCaches(chars: number): JsonCaches {
  let generation = 0;
  let used = 0;
  const pay = (cost: number): void => {
    used += cost + OVERHEAD;
    if (used <= chars) return;
    generation++;
    used = 0;
  };
  return {
    create<T>(): JsonCache<T> {
      let kept = new WeakMap<object, T>();
      let ofGeneration = generation;
      const renew = (): void => {
        kept = new WeakMap();
        ofGeneration = generation;
      };
      return {
        get: (entity) => (ofGeneration === generation ? kept.get(entity) : undefined),
        set(entity, value, cost) {
          pay(cost);
          if (ofGeneration !== generation) renew();
          kept.set(entity, value);
        },
      };
    },
  };
}

/** Resolves a derived member of an entity. Throws what the resolver throws. */
type Peek = (entity: unknown, run: Run) => unknown;

type CachedEntity = { readonly text: string; readonly nonAscii: boolean; readonly derived: readonly unknown[] };

/**
 * Caches the text of an entity together with the values of its derived members. Writes the text again when one of these
 * values differs.
 */
export function cacheEntity(write: WriteValue, derived: readonly Peek[], cache: JsonCache<CachedEntity>): WriteValue {
  const still = (values: readonly unknown[], entity: object, run: Run): boolean =>
    derived.every((peek, i) => Object.is(peek(entity, run), values[i]));
  return (entity, run) => {
    if (typeof entity !== 'object' || entity === null) return null;
    try {
      const known = cache.get(entity);
      if (known && (derived.length === 0 || still(known.derived, entity, run))) {
        run.note.nonAscii ||= known.nonAscii;
        return known.text;
      }
      const values = derived.map((peek) => peek(entity, run));
      const text = withoutInserts(run.note, () => write(entity, run));
      if (typeof text === 'string' && still(values, entity, run)) {
        cache.set(entity, { text, nonAscii: isNonAscii(text), derived: values }, text.length);
      }
      return text;
    } catch {
      return null;
    }
  };
}

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

type CachedList = {
  readonly text: string;
  /** The same text as bytes, created when they are first needed. Only for a text of ASCII characters. */
  bytes: Buffer | null;
  readonly nonAscii: boolean;
  readonly from: number;
  readonly until: number;
};
type ListCaching = {
  /** The function that tells when the text of the list may change. Null when nothing in it changes with time. */
  readonly changesAt: ChangesAt | null;
  readonly cache: JsonCache<CachedList>;
};

/**
 * Caches the text of a list of entities, until a derived field of one of them may change. An array that was handed out
 * is never modified: a changed list is a new array.
 */
export function cacheList(write: WriteValue, { changesAt, cache }: ListCaching): WriteValue {
  return (list, run) => {
    if (!Array.isArray(list) || list.length < MIN_CACHED_ITEMS) return write(list, run);
    const clock = changesAt ? clockOf(run) : null;
    if (changesAt && !clock) return write(list, run);
    const from = clock?.now() ?? 0;
    const known = cache.get(list);
    if (known && from >= known.from && from < known.until) {
      run.note.nonAscii ||= known.nonAscii;
      return inserted(known, run);
    }
    const text = withoutInserts(run.note, () => write(list, run));
    if (typeof text !== 'string') return text;
    const until = changesAt ? soonest(list, (entity) => changesAt(entity, from)) : Infinity;
    const made = { text: flat(text), bytes: null, nonAscii: isNonAscii(text), from, until };
    // A derived field may have changed while the list was written.
    if ((clock?.now() ?? 0) < until) cache.set(list, made, text.length);
    return made.text;
  };
}

/** Returns a reference to the list's bytes if the answer may contain one. Otherwise returns the list's text. */
function inserted(list: CachedList, { note: { inserts } }: Run): string {
  if (!inserts || list.nonAscii || list.text.length < INSERTED_CHARS) return list.text;
  list.bytes ??= Buffer.from(list.text, 'latin1');
  return insertMark(inserts.push(list.bytes) - 1);
}

/** Runs `write` so that its text contains no references to bytes, because the text is cached. */
function withoutInserts<T>(note: TextInfo, write: () => T): T {
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
  let least = Infinity;
  for (const entity of list) least = Math.min(least, of(entity));
  return least;
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
