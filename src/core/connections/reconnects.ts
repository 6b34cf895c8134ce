/** The port of reconnects: how often clients reconnected in the last hour. */
import type { ClientKey } from '../ids.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Completeness } from '../page.ts';

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
  top(first: number): MaybePromise<{ readonly rows: readonly Reconnects[]; readonly complete: boolean }>;
}

/** A bounded sample of the clients that reconnect most. */
export type FlappingSample = {
  readonly items: readonly Reconnects[];
  readonly complete: boolean;
  readonly completeness: Completeness;
};

/** Compares clients for sorting: most reconnects first, then in order of user and client. */
export function compareReconnects(a: Reconnects, b: Reconnects): number {
  if (a.reconnects !== b.reconnects) return b.reconnects - a.reconnects;
  const [left, right] = a.userId === b.userId ? [a.clientId, b.clientId] : [a.userId, b.userId];
  return left < right ? -1 : left > right ? 1 : 0;
}
