/** The port of reconnects: how often clients reconnected in the last hour. */
import { clientKeyText, type ClientKey } from '../ids.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Completeness } from '../completeness.ts';
import { type Leading, compareClients } from './connection-store.ts';

/** A client, and how often its link was opened again in the last hour. */
export type Reconnects = ClientKey & { readonly reconnects: number };

/**
 * Counts reconnects over the last hour, in slots of RECONNECT_SLOT_MS: a count covers between 55 and 60 minutes. Counts
 * outlive the connection's row. Each slot counts at most RECONNECT_CLIENTS clients of a partition.
 */
export interface ReconnectStore {
  /**
   * Notes that a client's link opened. It counts as a reconnect if `again` is true, or if the client's link is known to
   * have opened within the last hour.
   */
  note(client: ClientKey, again: boolean): MaybePromise<void>;
  /** Returns one count per client, in the order of the clients. */
  counts(clients: readonly ClientKey[]): MaybePromise<readonly number[]>;
  /**
   * Returns the clients with the most reconnects, most first, then in order of user and client; at most `first`.
   * `complete`: whether every client that reconnected was looked at.
   */
  top(first: number): MaybePromise<Leading<Reconnects>>;
}

/** A bounded sample of the clients that reconnect most. */
export type FlappingSample = ClientSample & { readonly items: readonly Reconnects[] };

/** Compares clients for sorting: most reconnects first, then in order of user and client. */
export function compareReconnects(a: Reconnects, b: Reconnects): number {
  return b.reconnects - a.reconnects || compareClients(a, b);
}

/**
 * What the clients of a `ClientSample` are chosen and ordered by. `backlog`: most live commands first. `reconnects`:
 * most reconnects in the last hour first. `silence`: in the order of `ConnectionStore.quietest`.
 */
export type ClientMeasure = 'backlog' | 'reconnects' | 'silence';

/** A bounded sample of the clients that lead by a measure. */
export type ClientSample = {
  readonly items: readonly ClientKey[];
  readonly complete: boolean;
  readonly completeness: Completeness;
};

/** A client and the number of its live commands. */
export type Busy = ClientKey & { readonly commands: number };

/** Counts the clients of live commands, and returns those with the most in the order of `DeliveryInspector.busiest`. */
export function busiestOf(clients: Iterable<ClientKey>, first: number): readonly Busy[] {
  const counts = new Map<string, { readonly client: ClientKey; commands: number }>();
  for (const client of clients) {
    const text = clientKeyText(client);
    const known = counts.get(text);
    if (known) known.commands++;
    else counts.set(text, { client, commands: 1 });
  }
  return [...counts.values()]
    .sort((a, b) => b.commands - a.commands || compareClients(a.client, b.client))
    .slice(0, first)
    .map(({ client: { userId, clientId }, commands }) => ({ userId, clientId, commands }));
}
