/** A cache of the records of live commands, from which this process decides the next act on them without a read. */
import type { ClientKey, CommandKey } from '../../../core/ids.ts';
import { textsOf, type RecordTexts } from './record.ts';

/** A live command as this process last read or wrote it. */
export type Held = {
  /** The first part of the record's text; `request` is the second (see record.ts). */
  readonly state: string;
  readonly request: string;
  /** The fields of `state` and `request`. Each record is split only once. */
  readonly texts: RecordTexts;
  /** The waiters of the command, as the text in its client's HASH; null if they are not known. */
  readonly waits: string | null;
  /** The command's params as JSON; null if they are not known. */
  readonly params: string | null;
};

/**
 * The most commands in the cache, and the most characters. The oldest are dropped; each drop costs a slower act later.
 */
const MOST = 20_000;
const MOST_CHARS = 32 * 1024 * 1024;

/** The memory that a record's split fields take besides its text, estimated in characters. */
const TEXTS_CHARS = 1_500;

/** Creates an entry of the cache. `texts`: the fields of the record as far as they are known already. */
export function heldCommand(known: Omit<Held, 'texts'>, texts: Partial<RecordTexts> = {}): Held {
  const { state = textsOf(known.state), request = textsOf(known.request) } = texts;
  return { ...known, texts: { state, request } };
}

/**
 * Live commands whose records this process knows. A missing or outdated entry does no harm: Redis compares what an act
 * was decided by, and if it differs the act is decided again by what is read.
 */
export interface HeldCommands {
  get(key: CommandKey): Held | undefined;
  put(key: CommandKey, held: Held): void;
  drop(key: CommandKey): void;
}

/** Creates an empty cache. `most`: the most commands in it. */
export function createHeldCommands(most = MOST): HeldCommands {
  const known = new Map<string, Held>();
  let chars = 0;
  const remove = (name: string): void => {
    const held = known.get(name);
    if (!held) return;
    known.delete(name);
    chars -= sizeOf(held);
  };
  return {
    get: (key) => known.get(nameOf(key)),
    put(key, held) {
      const name = nameOf(key);
      remove(name);
      known.set(name, held);
      chars += sizeOf(held);
      for (const oldest of known.keys()) {
        if (known.size <= most && chars <= MOST_CHARS) break;
        remove(oldest);
      }
    },
    drop: (key) => remove(nameOf(key)),
  };
}

function sizeOf({ state, request, waits, params }: Held): number {
  return state.length + request.length + TEXTS_CHARS + (waits?.length ?? 0) + (params?.length ?? 0);
}

function nameOf({ userId, clientId, commandId }: ClientKey & CommandKey): string {
  return `${userId}\0${clientId}\0${commandId}`;
}
