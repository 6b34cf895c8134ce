import type { Cancel, Clock } from '../core/clock.ts';
import { atTime } from './at-time.ts';
import type { Wire } from './sse-wire.ts';

/** Ends streams with the tokens that opened them. */
export type Expiries = {
  /** Ends the stream at this time (epoch milliseconds; null: never), unless cancelled. Streams that end together share one timer. */
  add(wire: Wire, expiresAt: number | null): void;
  cancel(wire: Wire, expiresAt: number | null): void;
};

export function createExpiries(clock: Clock): Expiries {
  const due = new Map<number, { readonly wires: Set<Wire>; readonly cancel: Cancel }>();
  const end = (at: number): void => {
    const wires = due.get(at)?.wires ?? [];
    due.delete(at);
    for (const wire of wires) wire.end();
  };
  return {
    add(wire, expiresAt) {
      if (expiresAt === null) return;
      const row = due.get(expiresAt) ?? { wires: new Set(), cancel: atTime(clock, expiresAt, () => end(expiresAt)) };
      due.set(expiresAt, row);
      row.wires.add(wire);
    },
    cancel(wire, expiresAt) {
      if (expiresAt === null) return;
      const row = due.get(expiresAt);
      if (!row?.wires.delete(wire) || row.wires.size > 0) return;
      row.cancel();
      due.delete(expiresAt);
    },
  };
}
