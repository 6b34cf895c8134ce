/** Core's ReconnectStore in memory: counts how often each client reconnected in the last hour. */
import { ByClient } from '../../core/collections.ts';
import { compareReconnects, type ReconnectStore } from '../../core/connections/reconnects.ts';
import type { ClientKey } from '../../core/ids.ts';
import { RECONNECT_CLIENTS, RECONNECT_SLOTS, RECONNECT_SLOT_MS } from '../../core/limits.ts';
import type { Clock } from '../../core/ports.ts';

/**
 * The clients whose links opened in one time slot, and how often each of them reconnected in it. `full`: true if there
 * were more clients than the slot can count.
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
      // On a quiet relay most clients did not reconnect, so only clients that did are summed up and sorted.
      const sums = new ByClient<number>();
      for (const { counts } of current())
        for (const [client, count] of counts.entries())
          if (count > 0) sums.set(client, (sums.get(client) ?? 0) + count);
      const found = [...sums.entries()].map(([client, reconnects]) => ({ ...client, reconnects }));
      found.sort(compareReconnects);
      return { rows: found.slice(0, first), complete: current().every(({ full }) => !full) };
    },
  };
}
