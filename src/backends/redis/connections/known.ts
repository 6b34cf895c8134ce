/** A cache of connections as this process last read them, so that Redis need not send them again. */
import { BoundedMap } from '../../../core/bounded-map.ts';
import type { Connection } from '../../../core/connections/connection.ts';
import { clientKeyText, type ClientKey } from '../../../core/ids.ts';

/**
 * A cache of connections as this process last read them. Because of it, the answer to a sign of life need not repeat
 * what the client advertises.
 */
export interface Known {
  /** Keeps a connection if it is up. Returns its argument. */
  note(connection: Connection | null): Connection | null;
  /** Returns the connection that was kept last for this client; null if there is none. */
  last(key: ClientKey): Connection | null;
  /** Returns the same as `last`; null if that connection has another epoch. */
  of(key: ClientKey, epoch: number): Connection | null;
  forget(key: ClientKey, epoch: number): void;
}

/** The most connections in the cache: as many as the links that a node may have by default. */
const KNOWN = 20_000;

/** Creates an empty cache. `most`: the most connections in it. Beyond that the oldest are dropped. */
export function createKnown(most = KNOWN): Known {
  const known = new BoundedMap<string, Connection>({ most });
  const last = (key: ClientKey): Connection | null => known.get(clientKeyText(key)) ?? null;
  const of = (key: ClientKey, epoch: number): Connection | null => {
    const connection = last(key);
    return connection?.epoch === epoch ? connection : null;
  };
  return {
    note(connection) {
      if (connection === null || connection.disconnectedAt !== null) return connection;
      known.set(clientKeyText(connection), connection);
      return connection;
    },
    last,
    of,
    forget(key, epoch) {
      if (of(key, epoch)) known.delete(clientKeyText(key));
    },
  };
}
