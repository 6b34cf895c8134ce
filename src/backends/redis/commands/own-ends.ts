/** A cache of the ends of commands that this process recorded, so that rows in its own mailbox need not repeat them. */
import type { Command } from '../../../core/commands/command.ts';
import type { JsonText } from '../../../core/json.ts';

/** The end of a command that this process recorded: the values that its waiters are resolved with. */
export type OwnEnd = { readonly command: Command; readonly result: JsonText | null };
/** A recorded end. `rows`: how many rows that name it were added to this process's own mailbox. */
export type RecordedEnd = OwnEnd & { readonly rows: number };

/**
 * The most ends in the cache, and the most characters of their results. Beyond that the oldest are dropped, and are
 * read from Redis instead.
 */
const MOST = 4_096;
const MOST_CHARS = 16 * 1024 * 1024;

/**
 * Keeps each end that this process records until it has read all rows of its own mailbox that name the end. So these
 * rows need not contain the end: a caller that waits on this node gets it from here.
 */
export interface OwnEnds {
  /**
   * Adds an end before it is recorded. `recording` resolves to the recorded end, or to null if Redis did not record it
   * as the command's end. It may reject.
   */
  begin(name: string, recording: Promise<RecordedEnd | null>): void;
  /**
   * Returns the end that a mailbox row names. Waits if it is still being recorded. Resolves to null if it is not in the
   * cache.
   */
  take(name: string): Promise<OwnEnd | null>;
}

type Entry = { readonly recording: Promise<RecordedEnd | null>; taken: number; rows: number | null; chars: number };

/** Creates an empty cache. `most`: the most ends in it. */
export function createOwnEnds(most = MOST): OwnEnds {
  const entries = new Map<string, Entry>();
  let chars = 0;
  const remove = (name: string, entry: Entry): void => {
    if (entries.get(name) !== entry) return;
    entries.delete(name);
    chars -= entry.chars;
  };
  const trim = (): void => {
    for (const [name, entry] of entries) {
      if (entries.size <= most && chars <= MOST_CHARS) return;
      remove(name, entry);
    }
  };
  const recorded = (name: string, entry: Entry, end: RecordedEnd | null): void => {
    if (entries.get(name) !== entry) return;
    entry.rows = end?.rows ?? 0;
    if (entry.taken >= entry.rows) return remove(name, entry);
    entry.chars = end?.result?.length ?? 0;
    chars += entry.chars;
    trim();
  };
  return {
    begin(name, recording) {
      const before = entries.get(name);
      if (before) remove(name, before);
      const entry: Entry = { recording: recording.catch(() => null), taken: 0, rows: null, chars: 0 };
      entries.set(name, entry);
      trim();
      void entry.recording.then((end) => recorded(name, entry, end));
    },
    async take(name) {
      const entry = entries.get(name);
      if (!entry) return null;
      const end = await entry.recording;
      entry.taken++;
      if (entry.rows !== null && entry.taken >= entry.rows) remove(name, entry);
      return end;
    },
  };
}
