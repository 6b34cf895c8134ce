/** Core's ReconnectStore in memory: counts how often each client reconnected in the last hour. */
import type { Clock } from '../../core/clock.ts';
import { compareReconnects, type ReconnectStore } from '../../core/connections/reconnects.ts';
import { clientKeyText, type ClientKey } from '../../core/ids.ts';
import { RECONNECT_CLIENTS, RECONNECT_SLOT_MS, RECONNECT_SLOTS } from '../../core/limits.ts';

/**
 * The clients whose links opened in one time slot, and how often each reconnected in it. `full`: whether there were
 * more clients than are counted.
 */
type Slot = { readonly number: number; readonly counts: Map<string, Counted>; full: boolean };
type Counted = { readonly client: ClientKey; reconnects: number };

/** Creates the store. It keeps one map for each time slot of the last hour. */
export function createMemoryReconnects(clock: Clock): ReconnectStore {
  let slots: readonly Slot[] = [];
  const current = (): readonly Slot[] => {
    const number = Math.floor(clock.now() / RECONNECT_SLOT_MS);
    const oldest = slots.at(0);
    if (oldest && oldest.number <= number - RECONNECT_SLOTS)
      slots = slots.filter((slot) => slot.number > number - RECONNECT_SLOTS);
    return slots;
  };
  const slotOfNow = (): Slot => {
    const number = Math.floor(clock.now() / RECONNECT_SLOT_MS);
    const known = current().find((slot) => slot.number === number);
    if (known) return known;
    const made: Slot = { number, counts: new Map(), full: false };
    slots = [...slots, made];
    return made;
  };
  const sum = (key: string): number =>
    current().reduce((total, { counts }) => total + (counts.get(key)?.reconnects ?? 0), 0);
  return {
    note({ userId, clientId }, again) {
      const client = { userId, clientId };
      const key = clientKeyText(client);
      const counts = again || current().some((slot) => slot.counts.has(key));
      const slot = slotOfNow();
      const known = slot.counts.get(key);
      if (known) known.reconnects += counts ? 1 : 0;
      else if (slot.counts.size < RECONNECT_CLIENTS) slot.counts.set(key, { client, reconnects: counts ? 1 : 0 });
      else slot.full = true;
    },
    counts: (clients) => clients.map((client) => sum(clientKeyText(client))),
    top(first) {
      const clients = new Map(current().flatMap(({ counts }) => [...counts].map(([key, { client }]) => [key, client])));
      const rows = [...clients].map(([key, client]) => ({ ...client, reconnects: sum(key) }));
      const found = rows.filter(({ reconnects }) => reconnects > 0).sort(compareReconnects);
      return { rows: found.slice(0, first), complete: current().every(({ full }) => !full) };
    },
  };
}
