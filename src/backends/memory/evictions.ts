import { createList, type Entry } from './list.ts';

/** Times of the newest message that was dropped for lack of room: of any stream of the user, and of those that went whole. */
type Note = { readonly userId: string; droppedAt: number; wholeStreamAt: number; place: Entry<Note> | null };

/**
 * What was dropped early, for as long as it would still be shown: an answer that it could have stood in has a gap. Constant time, and one
 * small note a user.
 */
export interface Evictions {
  /** A message of this user, retained at this time, was dropped; `streamGone` when it was the last one of its stream. */
  note(userId: string, at: number, streamGone: boolean): void;
  droppedAt(userId: string): number;
  wholeStreamAt(userId: string): number;
  /** The same of any user. */
  anyDroppedAt(): number;
  anyWholeStreamAt(): number;
  /** Forgets what would not be shown any more: retained at this time or before. */
  expire(before: number): void;
}

const NEVER = -Infinity;

export function createEvictions(): Evictions {
  const notes = new Map<string, Note>();
  const byEviction = createList<Note>();
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
      for (let head = byEviction.first(); head && head.value.droppedAt <= before; head = byEviction.first()) {
        byEviction.remove(head);
        notes.delete(head.value.userId);
      }
    },
  };
}
