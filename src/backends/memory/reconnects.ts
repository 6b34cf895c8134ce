/** Core's ReconnectStore in memory: counts how often each client reconnected in the last hour. */
import type { Clock } from '../../core/clock.ts';
import { compareReconnects, type ReconnectStore } from '../../core/connections/reconnects.ts';
import { ByClient } from '../../core/by-client.ts';
import type { ClientKey } from '../../core/ids.ts';
import { RECONNECT_CLIENTS, RECONNECT_SLOT_MS, RECONNECT_SLOTS } from '../../core/limits.ts';

/**
 * The clients whose links opened in one time slot, and how often each reconnected in it. `full`: whether there were
 * more clients than are counted.
 */
type Slot = { readonly number: number; readonly counts: ByClient<number>; full: boolean };

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
    const made: Slot = { number, counts: new ByClient(), full: false };
    slots = [...slots, made];
    return made;
  };
  const sum = (client: ClientKey): number =>
    current().reduce((total, { counts }) => total + (counts.get(client) ?? 0), 0);
  return {
    note(client, again) {
      const counts = again || current().some((slot) => slot.counts.get(client) !== undefined);
      const slot = slotOfNow();
      const known = slot.counts.get(client);
      if (known === undefined && slot.counts.size >= RECONNECT_CLIENTS) slot.full = true;
      else slot.counts.set(client, (known ?? 0) + (counts ? 1 : 0));
    },
    counts: (clients) => clients.map(sum),
    top(first) {
      const clients = new ByClient<ClientKey>();
      for (const { counts } of current()) for (const [client] of counts.entries()) clients.set(client, client);
      const rows = [...clients.values()].map((client) => ({ ...client, reconnects: sum(client) }));
      const found = rows.filter(({ reconnects }) => reconnects > 0).sort(compareReconnects);
      return { rows: found.slice(0, first), complete: current().every(({ full }) => !full) };
    },
  };
}
