/**
 * The records of live commands that this process knows. Only a cache: each act compares what it predicts from it with
 * Redis.
 */
import type { ClientKey, CommandKey } from '../../../core/ids.ts';
import type { Fields } from '../replies.ts';
import { textsOf, type RecordTexts } from './record.ts';

/** A live command as this process last read or wrote it. */
export type Held = {
  /** The two parts of its record's text. */
  readonly state: string;
  readonly request: string;
  /** Their fields: each record is split once, when it is read or predicted. */
  readonly texts: RecordTexts;
  /** The text of its waiters in its client's HASH; null if it is not known. */
  readonly waits: string | null;
  /** Null if they are not known. */
  readonly params: string | null;
};

/** Commands held at once, and characters of them. Beyond that the oldest are dropped, which costs a slower act each. */
const MOST = 20_000;
const MOST_CHARS = 32 * 1024 * 1024;

/** About how much the fields of a record take besides its text, in characters. */
const TEXTS_CHARS = 1_500;

/** Makes a held command. `texts`: its fields as far as they are known already. */
export function heldCommand(known: Omit<Held, 'texts'>, texts: Partial<RecordTexts> = {}): Held {
  const { state = textsOf(known.state), request = textsOf(known.request) } = texts;
  return { ...known, texts: { state, request } };
}

/**
 * Live commands whose records this process knows, so that it can predict the record after the next act. A missing or
 * outdated entry does no harm: each act compares it with the record in Redis, and if they differ a slower act follows.
 */
export interface HeldCommands {
  get(key: CommandKey): Held | undefined;
  put(key: CommandKey, held: Held): void;
  drop(key: CommandKey): void;
}

/** `most`: how many commands it holds at once. */
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

/** Updates a held command with the state that an act returned. */
export function hold({ held }: { readonly held: HeldCommands }, key: CommandKey, record: Fields | undefined): void {
  const before = held.get(key);
  if (!before || typeof record !== 'string') return;
  const state = record.slice(0, record.length - before.request.length);
  held.put(key, heldCommand({ ...before, state }, { request: before.texts.request }));
}

function sizeOf({ state, request, waits, params }: Held): number {
  return state.length + request.length + TEXTS_CHARS + (waits?.length ?? 0) + (params?.length ?? 0);
}

function nameOf({ userId, clientId, commandId }: ClientKey & CommandKey): string {
  return `${userId}\0${clientId}\0${commandId}`;
}
