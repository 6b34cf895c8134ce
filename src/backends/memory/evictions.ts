/** Remembers that messages were dropped early, so that answers can report the gap. */
import { List, type ListItem } from './list.ts';

/**
 * What is remembered of one user's dropped messages, in epoch milliseconds. `droppedAt`: when the newest message that
 * was dropped for lack of room had been retained. `wholeStreamAt`: the same, but only of streams that were dropped
 * completely.
 */
type Note = { readonly userId: string; droppedAt: number; wholeStreamAt: number; place: ListItem<Note> | null };

/**
 * Remembers messages that were dropped early, for as long as they would still be shown: an answer that could have
 * contained one has a gap. Constant time, and one small note per user.
 */
export interface Evictions {
  /**
   * Records that a message of this user, retained at this time, was dropped. `streamGone`: it was the last of its
   * stream.
   */
  note(userId: string, at: number, streamGone: boolean): void;
  droppedAt(userId: string): number;
  wholeStreamAt(userId: string): number;
  /** Like `droppedAt`, but over all users. */
  anyDroppedAt(): number;
  anyWholeStreamAt(): number;
  /** Forgets messages that would no longer be shown: those retained at this time or before. */
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
