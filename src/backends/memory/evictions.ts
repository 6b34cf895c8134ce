/** Remembers when messages were dropped early, so that answers can report the gap. */
import { List, type ListItem } from './list.ts';

/**
 * What is remembered about one user's messages that were dropped for lack of room. `droppedAt`: when the newest of them
 * was retained, in epoch milliseconds. `wholeStreamAt`: the same, but only of messages that were the last of their
 * stream.
 */
type Note = { readonly userId: string; droppedAt: number; wholeStreamAt: number; place: ListItem<Note> | null };

/**
 * Remembers that messages were dropped early, for as long as these messages would still be shown. An answer that could
 * have contained one of them has a gap. Each method takes constant time, and each user takes one small object.
 */
export interface Evictions {
  /**
   * Records that a message of this user was dropped. `at`: when the message was retained. `streamGone`: whether it was
   * the last message of its stream.
   */
  note(userId: string, at: number, streamGone: boolean): void;
  droppedAt(userId: string): number;
  wholeStreamAt(userId: string): number;
  /** Returns the latest `droppedAt` of all users. */
  anyDroppedAt(): number;
  anyWholeStreamAt(): number;
  /** Forgets dropped messages that would no longer be shown, because they were retained at `before` or earlier. */
  expire(before: number): void;
}

const NEVER = -Infinity;

export function createEvictions(): Evictions {
  const notes = new Map<string, Note>();
  const byEviction = new List<Note>();
  let anyDropped = NEVER;
  let anyWholeStream = NEVER;
  return {
    note(userId, at, streamGone) {
      const note = notes.get(userId) ?? { userId, droppedAt: NEVER, wholeStreamAt: NEVER, place: null };
      notes.set(userId, note);
      note.droppedAt = Math.max(note.droppedAt, at);
      anyDropped = Math.max(anyDropped, at);
      if (streamGone) {
        note.wholeStreamAt = Math.max(note.wholeStreamAt, at);
        anyWholeStream = Math.max(anyWholeStream, at);
      }
      if (note.place) byEviction.remove(note.place);
      note.place = byEviction.push(note);
    },
    droppedAt: (userId) => notes.get(userId)?.droppedAt ?? NEVER,
    wholeStreamAt: (userId) => notes.get(userId)?.wholeStreamAt ?? NEVER,
    anyDroppedAt: () => anyDropped,
    anyWholeStreamAt: () => anyWholeStream,
    expire(before) {
      for (let head = byEviction.first; head && head.value.droppedAt <= before; head = byEviction.first) {
        byEviction.remove(head);
        notes.delete(head.value.userId);
      }
    },
  };
}
