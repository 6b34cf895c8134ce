/** Ends event streams when their tokens expire, with one timer for many streams. */
import type { Cancel, Clock } from '../core/clock.ts';
import { atTime } from './at-time.ts';
import type { SseStream } from './sse-stream.ts';

export type Ending = Pick<SseStream, 'options' | 'end'>;

/** Ends streams when the tokens that opened them expire. */
export type Expiries = {
  /**
   * Ends the stream at its `options.expiresAt`, unless cancelled. Streams that expire within the same second share one
   * timer.
   */
  add(stream: Ending): void;
  cancel(stream: Ending): void;
};

/** The streams that expire within one second, and the timer for the earliest of them. */
type Row = { readonly streams: Set<Ending>; at: number; cancel: Cancel };

/** The length of the time that one row covers, in milliseconds. */
const ROW_MS = 1000;

export function createExpiries(clock: Clock): Expiries {
  const rows = new Map<number, Row>();
  const rowOf = ({ options: { expiresAt } }: Ending): number | null => expiresAt && Math.floor(expiresAt / ROW_MS);
  const arm = (key: number, row: Row, at: number): void => {
    row.cancel();
    row.at = at;
    row.cancel = atTime(clock, at, () => end(key, row));
  };
  const end = (key: number, row: Row): void => {
    const now = Math.max(clock.now(), row.at);
    let next = Infinity;
    for (const stream of row.streams) {
      const at = stream.options.expiresAt ?? Infinity;
      if (at > now) next = Math.min(next, at);
      else {
        // The stream is removed before `end`, because it may close only later. Other streams may join this row until
        // then.
        row.streams.delete(stream);
        stream.end();
      }
    }
    if (row.streams.size > 0) arm(key, row, next);
    else rows.delete(key);
  };
  return {
    add(stream) {
      const key = rowOf(stream);
      const at = stream.options.expiresAt;
      if (key === null || at === null) return;
      const row = rows.get(key) ?? { streams: new Set(), at: Infinity, cancel: () => {} };
      rows.set(key, row);
      row.streams.add(stream);
      if (at < row.at) arm(key, row, at);
    },
    cancel(stream) {
      const key = rowOf(stream);
      const row = key === null ? undefined : rows.get(key);
      if (key === null || !row?.streams.delete(stream) || row.streams.size > 0) return;
      row.cancel();
      rows.delete(key);
    },
  };
}
