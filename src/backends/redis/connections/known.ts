/** The connections that this process knows, so that Redis need not send them again. Only a cache. */
import type { Connection } from '../../../core/connections/connection.ts';
import { clientKeyText, type ClientKey } from '../../../core/ids.ts';

/**
 * Connections as this process last read them. With it the answer to a sign of life need not repeat what the client
 * advertises.
 */
export interface Known {
  /** Keeps a connection that is up. Returns its argument. */
  note(connection: Connection | null): Connection | null;
  /** The connection that was kept last for this client. */
  last(key: ClientKey): Connection | null;
  /** As `last`; null if it has another epoch. */
  of(key: ClientKey, epoch: number): Connection | null;
  forget(key: ClientKey, epoch: number): void;
}

/** The number of links that a node may have by default. */
const KNOWN = 20_000;

/** `most`: how many connections it keeps. Beyond that the ones that were kept first are dropped. */
export function createKnown(most = KNOWN): Known {
  const known = new Map<string, Connection>();
  const last = (key: ClientKey): Connection | null => known.get(clientKeyText(key)) ?? null;
  const of = (key: ClientKey, epoch: number): Connection | null => {
    const connection = last(key);
    return connection?.epoch === epoch ? connection : null;
  };
  return {
    note(connection) {
      if (connection === null || connection.disconnectedAt !== null) return connection;
      const text = clientKeyText(connection);
      known.delete(text);
      known.set(text, connection);
      const [oldest] = known.keys();
      if (known.size > most && oldest !== undefined) known.delete(oldest);
      return connection;
    },
    last,
    of,
    forget(key, epoch) {
      if (of(key, epoch)) known.delete(clientKeyText(key));
    },
  };
}
