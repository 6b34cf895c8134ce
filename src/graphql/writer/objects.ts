/** Writes objects as JSON text, with cached parts for entities. */
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { JsonCache, JsonCaches } from './json-cache.ts';
import { flat, keptList, withoutInserts, type ChangesAt } from './lists.ts';
import {
  isThenable,
  isNonAscii,
  isPlain,
  settle,
  type ObjectWriter,
  type Run,
  type Text,
  type WriteValue,
} from './values.ts';

/**
 * One member of an object. `pure`: depends on the object alone. `derived`: depends on the object and the time, and is
 * cheap. `live`: may depend on anything.
 */
export type Member = Part & { readonly cacheHint: 'pure' | 'derived' | 'live' };

/** A part of an object's text: a prefix and a value. */
type Part = {
  /** The text before the value, such as `"key":`. */
  readonly prefix: string;
  /** Resolves the value. Throws what the resolver throws. */
  readonly peek: (parent: unknown, run: Run) => unknown;
  readonly write: WriteValue;
  /** Whether the values are strings that are written unchanged. */
  readonly texts: boolean;
};

/**
 * Creates the writer of an object with these members. For an entity without live members, the whole text is cached, and
 * so are lists of the entity. With live members, only adjacent pure members are cached. `keeping` null: nothing is
 * cached.
 */
export function objectWriter(members: readonly Member[], keeping: Keeping | null): ObjectWriter {
  if (!keeping) return { write: joinedWriter(members, BRACES), kept: null };
  const { stores } = keeping;
  if (members.length === 0 || members.some(({ cacheHint }) => cacheHint === 'live'))
    return { write: joinedWriter(merged(members, stores), BRACES), kept: null };
  const derived = members.filter(({ cacheHint }) => cacheHint === 'derived').map(({ peek }) => peek);
  return {
    write: remembering(flatWriter(members, BRACES), derived, stores.create()),
    kept: keptLists(derived.length > 0, keeping),
  };
}

/**
 * What caching needs. `changesAt`: when a derived field of the entity may next change; null when the type does not
 * declare it.
 */
export type Keeping = { readonly stores: JsonCaches; readonly changesAt: ChangesAt | null };

function keptLists(timed: boolean, { stores, changesAt }: Keeping): ObjectWriter['kept'] {
  if (timed && !changesAt) return null;
  return (writeList) => keptList(writeList, { changesAt: timed ? changesAt : null, kept: stores.create() });
}

/** Merges adjacent pure members into one cached part. */
function merged(members: readonly Member[], stores: JsonCaches): readonly Part[] {
  const parts: Part[] = [];
  let pure: Member[] = [];
  const close = (): void => {
    if (pure.length > 1) parts.push(whole(remembering(flatWriter(pure), [], stores.create())));
    else parts.push(...pure);
    pure = [];
  };
  for (const member of members) {
    if (member.cacheHint === 'pure') pure.push(member);
    else (close(), parts.push(member));
  }
  close();
  return parts;
}

/** Returns a part that writes several members of an object at once. `write` receives the object itself. */
function whole(write: WriteValue): Part {
  return { prefix: '', peek: (parent) => parent, write, texts: false };
}

type Kept = { readonly text: string; readonly nonAscii: boolean; readonly derived: readonly unknown[] };

/**
 * Caches the text of an entity together with the values of its derived members. Writes the text again when one of these
 * values differs.
 */
function remembering(write: WriteValue, derived: readonly Member['peek'][], kept: JsonCache<Kept>): WriteValue {
  const still = (values: readonly unknown[], entity: object, run: Run): boolean =>
    derived.every((peek, i) => Object.is(peek(entity, run), values[i]));
  return (entity, run) => {
    if (typeof entity !== 'object' || entity === null) return null;
    try {
      const known = kept.get(entity);
      if (known && (derived.length === 0 || still(known.derived, entity, run))) {
        run.note.nonAscii ||= known.nonAscii;
        return known.text;
      }
      const values = derived.map((peek) => peek(entity, run));
      const text = withoutInserts(run.note, () => write(entity, run));
      if (typeof text === 'string' && still(values, entity, run)) {
        kept.set(entity, { text, nonAscii: isNonAscii(text), derived: values }, text.length);
      }
      return text;
    } catch {
      return null;
    }
  };
}

type Around = { readonly open: string; readonly close: string };
const BRACES: Around = { open: '{', close: '}' };
const NOTHING: Around = { open: '', close: '' };

/** Creates a writer whose text is one flat string, because cached text must not be a tree of its pieces. */
function flatWriter(parts: readonly Part[], around: Around = NOTHING): WriteValue {
  const write = joinedWriter(parts, around);
  return (parent, run) => {
    const text = write(parent, run);
    return typeof text === 'string' ? flat(text) : text;
  };
}

/**
 * Creates a writer that starts all members before it waits for any, so that nested fields can be loaded in one batch.
 */
function joinedWriter(parts: readonly Part[], { open, close }: Around): WriteValue {
  const writers = parts.map((part, i) => partWriter(part, i === 0 ? open : ','));
  const empty = parts.length === 0 ? open : '';
  return (parent, run) => {
    let text = empty;
    let pieces: MaybePromise<Text>[] | null = null;
    try {
      for (const write of writers) {
        const piece = write(parent, run);
        if (piece === null) return null;
        if (pieces) pieces.push(piece);
        else if (typeof piece !== 'string') pieces = [text, piece];
        else text += piece;
      }
    } catch {
      return null;
    }
    return pieces ? joinLater(pieces, close) : text + close;
  };
}

/** Creates the writer of one part. The writer throws what the resolver throws. */
function partWriter({ prefix, peek, write, texts }: Part, before: string): WriteValue {
  const lead = before + prefix;
  const quoted = `${lead}"`;
  return (parent, run) => {
    const value = peek(parent, run);
    if (texts && typeof value === 'string' && isPlain(value)) return `${quoted}${value}"`;
    const piece = isThenable(value) ? settle(value, write, run) : write(value, run);
    if (typeof piece === 'string') return lead + piece;
    return piece === null ? null : piece.then((later) => (later === null ? null : lead + later));
  };
}

async function joinLater(pieces: readonly MaybePromise<Text>[], close: string): Promise<Text> {
  let text = '';
  for (const piece of await Promise.all(pieces)) {
    if (piece === null) return null;
    text += piece;
  }
  return text + close;
}
