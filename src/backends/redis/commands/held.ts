import type { ClientKey, CommandKey } from '../../../core/ids.ts';
import type { Fields } from '../replies.ts';

/** A live command as this process last saw it. */
export type Held = {
  /** The two parts of its record's text. */
  readonly state: string;
  readonly asked: string;
  /** Who waits for it, as its client's HASH has it; null if that is not known. */
  readonly waits: string | null;
  /** Null if they are not known. */
  readonly params: string | null;
};

/** Commands held at once, and characters of them. Beyond that the oldest are dropped, which costs a slower act each. */
const MOST = 20_000;
const MOST_CHARS = 32 * 1024 * 1024;

/**
 * Live commands whose records this process knows, so that it can say what the record will be after the next act. Nothing is wrong where
 * one is missing or old: each act compares it with the record in Redis, and an act of another kind follows.
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

/** Notes the state that an act has answered, of a command that is held. */
export function hold({ held }: { readonly held: HeldCommands }, key: CommandKey, record: Fields | undefined): void {
  const before = held.get(key);
  if (!before || typeof record !== 'string') return;
  held.put(key, { ...before, state: record.slice(0, record.length - before.asked.length) });
}

function sizeOf({ state, asked, waits, params }: Held): number {
  return state.length + asked.length + (waits?.length ?? 0) + (params?.length ?? 0);
}

function nameOf({ userId, clientId, commandId }: ClientKey & CommandKey): string {
  return `${userId}\0${clientId}\0${commandId}`;
}
