import type { Maybe } from '../core/maybe.ts';
import type { Fragments, FragmentStores } from './fragments.ts';
import { flat, keptList, type ChangesAt } from './writer-lists.ts';
import type { ObjectWriter, Run, Text, WriteValue } from './writer-values.ts';

/**
 * One member of an object, as `"key":value`. `pure`: a function of the object alone. `derived`: of the object and of the time, and cheap, and
 * then `peek` is its value. `live`: of anything.
 */
export type Member = {
  readonly nature: 'pure' | 'derived' | 'live';
  readonly write: WriteValue;
  /** The value of a derived member; throws what its resolver throws. */
  readonly peek: (parent: unknown, run: Run) => unknown;
};

/** Writes an object of these members. Of an entity, what does not change with time is written once, and so are lists of it. */
export function objectWriter(members: readonly Member[], keeping: Keeping | null): ObjectWriter {
  const plain = members.map((member) => member.write);
  if (!keeping) return { write: membersWriter(joinedWriter(plain)), kept: null };
  const { stores } = keeping;
  if (members.length === 0 || members.some(({ nature }) => nature === 'live'))
    return { write: membersWriter(joinedWriter(merged(members, stores))), kept: null };
  const derived = members.filter(({ nature }) => nature === 'derived').map(({ peek }) => peek);
  return {
    write: remembering(membersWriter(flatWriter(plain)), derived, stores.create()),
    kept: keptLists(derived.length > 0, keeping),
  };
}

/** What a text needs to be kept. `changesAt`: when what is derived of an entity is next another; absent where the type does not say. */
export type Keeping = { readonly stores: FragmentStores; readonly changesAt: ChangesAt | null };

function keptLists(timed: boolean, { stores, changesAt }: Keeping): ObjectWriter['kept'] {
  if (timed && !changesAt) return null;
  return (writeList) => keptList(writeList, { changesAt: timed ? changesAt : null, kept: stores.create() });
}

/** Runs of pure members between live ones, each as one. */
function merged(members: readonly Member[], stores: FragmentStores): readonly WriteValue[] {
  const writers: WriteValue[] = [];
  let pure: WriteValue[] = [];
  const close = (): void => {
    if (pure.length > 1) writers.push(remembering(flatWriter(pure), [], stores.create()));
    else writers.push(...pure);
    pure = [];
  };
  for (const { nature, write } of members) {
    if (nature === 'pure') pure.push(write);
    else (close(), writers.push(write));
  }
  close();
  return writers;
}

type Kept = { readonly text: string; readonly derived: readonly unknown[] };

/** Writes an entity once for each set of its derived values: where one differs now, the text is written anew. */
function remembering(write: WriteValue, derived: readonly Member['peek'][], kept: Fragments<Kept>): WriteValue {
  const still = (known: Kept, entity: object, run: Run): boolean =>
    derived.every((peek, i) => Object.is(peek(entity, run), known.derived[i]));
  return (entity, run) => {
    if (typeof entity !== 'object' || entity === null) return null;
    try {
      const known = kept.get(entity);
      if (known && (derived.length === 0 || still(known, entity, run))) return known.text;
      const values = derived.map((peek) => peek(entity, run));
      const text = write(entity, run);
      if (typeof text === 'string' && still({ text, derived: values }, entity, run)) {
        kept.set(entity, { text, derived: values }, text.length);
      }
      return text;
    } catch {
      return null;
    }
  };
}

function membersWriter(write: WriteValue): WriteValue {
  return (parent, run) => {
    const text = write(parent, run);
    if (typeof text === 'string') return `{${text}}`;
    return text === null ? null : text.then((later) => (later === null ? null : `{${later}}`));
  };
}

/** What is kept must be one flat text, not a tree of its pieces. */
function flatWriter(writers: readonly WriteValue[]): WriteValue {
  const write = joinedWriter(writers);
  return (parent, run) => {
    const text = write(parent, run);
    return typeof text === 'string' ? flat(text) : text;
  };
}

/** All members are begun before any is waited for, so that nested fields can be asked for in one batch. */
function joinedWriter(writers: readonly WriteValue[]): WriteValue {
  return (parent, run) => {
    let text = '';
    let pieces: Maybe<Text>[] | null = null;
    for (let i = 0; i < writers.length; i++) {
      const piece = writers[i]?.(parent, run) ?? null;
      if (piece === null) return null;
      if (pieces) pieces.push(piece);
      else if (typeof piece !== 'string') pieces = i === 0 ? [piece] : [text, piece];
      else text = i === 0 ? piece : `${text},${piece}`;
    }
    return pieces ? joinLater(pieces) : text;
  };
}

async function joinLater(pieces: readonly Maybe<Text>[]): Promise<Text> {
  const texts = await Promise.all(pieces);
  return texts.includes(null) ? null : texts.join(',');
}
