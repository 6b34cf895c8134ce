import type { Cancel, Clock } from '../core/clock.ts';
import { atTime } from './at-time.ts';
import type { SseStream } from './sse-stream.ts';

export type Ending = Pick<SseStream, 'terms' | 'end'>;

/** Ends streams when the tokens that opened them expire. */
export type Expiries = {
  /**
   * Ends the stream at its `terms.expiresAt`, unless cancelled. Streams that expire within the same second share one
   * timer.
   */
  add(wire: Ending): void;
  cancel(wire: Ending): void;
};

/** The streams that expire within one second, and the timer of the earliest. */
type Row = { readonly wires: Set<Ending>; at: number; cancel: Cancel };

const ROW_MS = 1000;

export function createExpiries(clock: Clock): Expiries {
  const rows = new Map<number, Row>();
  const rowOf = ({ terms: { expiresAt } }: Ending): number | null => expiresAt && Math.floor(expiresAt / ROW_MS);
  const arm = (key: number, row: Row, at: number): void => {
    row.cancel();
    row.at = at;
    row.cancel = atTime(clock, at, () => end(key, row));
  };
  const end = (key: number, row: Row): void => {
    const now = Math.max(clock.now(), row.at);
    let next = Infinity;
    for (const wire of row.wires) {
      const at = wire.terms.expiresAt ?? Infinity;
      if (at > now) next = Math.min(next, at);
      else {
        // Removed before `end`: the stream may close later, when its reader allows it, and other streams may join this
        // row until then.
        row.wires.delete(wire);
        wire.end();
      }
    }
    if (row.wires.size > 0) arm(key, row, next);
    else rows.delete(key);
  };
  return {
    add(wire) {
      const key = rowOf(wire);
      const at = wire.terms.expiresAt;
      if (key === null || at === null) return;
      const row = rows.get(key) ?? { wires: new Set(), at: Infinity, cancel: () => {} };
      rows.set(key, row);
      row.wires.add(wire);
      if (at < row.at) arm(key, row, at);
    },
    cancel(wire) {
      const key = rowOf(wire);
      const row = key === null ? undefined : rows.get(key);
      if (key === null || !row?.wires.delete(wire) || row.wires.size > 0) return;
      row.cancel();
      rows.delete(key);
    },
  };
}
