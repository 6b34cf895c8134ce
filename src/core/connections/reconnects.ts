/** The storage port that counts how often each client reconnected in the last hour. */
import { clientKeyText, type ClientKey } from '../ids.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Completeness } from '../completeness.ts';
import { type Leading, compareClients } from './connection-store.ts';

/** A client, and how often it reconnected in the last hour. */
export type Reconnects = ClientKey & { readonly reconnects: number };

/**
 * Counts reconnects over the last hour in slots of RECONNECT_SLOT_MS, so a count covers between 55 and 60 minutes. The
 * counts remain when the row of the connection is deleted. In each slot of a partition at most RECONNECT_CLIENTS
 * clients are counted.
 */
export interface ReconnectStore {
  /**
   * Notes that a client's link opened. This counts as a reconnect if `again` is true, or if the store knows of another
   * opening of the client's link within the last hour.
   */
  note(client: ClientKey, again: boolean): MaybePromise<void>;
  /** Returns one count per client, in the order of the clients. */
  counts(clients: readonly ClientKey[]): MaybePromise<readonly number[]>;
  /**
   * Returns the clients with the most reconnects: at most `first`, in descending order, then by user and client.
   * `complete`: whether all clients that reconnected were compared.
   */
  top(first: number): MaybePromise<Leading<Reconnects>>;
}

/** A bounded sample of the clients that reconnect most often. */
export type FlappingSample = ClientSample & { readonly items: readonly Reconnects[] };

/** Compares clients for sorting: descending by reconnects, then by user and client. */
export function compareReconnects(a: Reconnects, b: Reconnects): number {
  return b.reconnects - a.reconnects || compareClients(a, b);
}

/**
 * The measure by which the clients of a `ClientSample` are selected and ordered. `backlog`: most live commands first.
 * `reconnects`: most reconnects in the last hour first. `silence`: in the order of `ConnectionStore.quietest`.
 */
export type ClientMeasure = 'backlog' | 'reconnects' | 'silence';

/** A bounded sample of the clients with the highest values of a measure. */
export type ClientSample = {
  readonly items: readonly ClientKey[];
  readonly complete: boolean;
  readonly completeness: Completeness;
};

/** A client and the number of its live commands. */
export type Busy = ClientKey & { readonly commands: number };

/**
 * Counts the given clients, one for each live command, and returns those with the most commands, in the order of
 * `DeliveryInspector.busiest`.
 */
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
