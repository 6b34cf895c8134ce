/** Keeps the ends of commands that the relay has not acknowledged, within a limit. */
import { byteLength, OUTBOX_BYTES, OUTBOX_ENDS } from './limits.ts';

/**
 * Holds the frames that end commands until the relay acknowledges them, oldest first. Holds at most OUTBOX_ENDS frames
 * and OUTBOX_BYTES bytes: beyond that the oldest is dropped, and `dropped` is called with its command id.
 */
export interface Outbox {
  readonly size: number;
  put(commandId: string, text: string): void;
  /** Removes the end of a command. Returns false when there is none. */
  remove(commandId: string): boolean;
  texts(): readonly string[];
  clear(): readonly string[];
}

export function createOutbox(dropped: (commandId: string) => void): Outbox {
  const ends = new Map<string, { readonly text: string; readonly bytes: number }>();
  let bytes = 0;

  function remove(commandId: string): boolean {
    bytes -= ends.get(commandId)?.bytes ?? 0;
    return ends.delete(commandId);
  }

  return {
    get size() {
      return ends.size;
    },
    remove,
    put(commandId, text) {
      remove(commandId);
      const end = { text, bytes: byteLength(text) };
      ends.set(commandId, end);
      bytes += end.bytes;
      for (const oldest of ends.keys()) {
        if (ends.size <= OUTBOX_ENDS && bytes <= OUTBOX_BYTES) break;
        remove(oldest);
        dropped(oldest);
      }
    },
    texts: () => Array.from(ends.values(), ({ text }) => text),
    clear() {
      const ids = [...ends.keys()];
      ends.clear();
      bytes = 0;
      return ids;
    },
  };
}
