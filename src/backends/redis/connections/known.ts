import type { Connection } from '../../../core/connections/connection.ts';
import { clientKeyText, type ClientKey } from '../../../core/ids.ts';

/** Connections as this process last saw them, so that a sign of life need not bring again what a client said of itself. */
export interface Known {
  /** Notes one that is up, and gives it back. */
  note(connection: Connection | null): Connection | null;
  /** The last one noted of this client. */
  last(key: ClientKey): Connection | null;
  of(key: ClientKey, epoch: number): Connection | null;
  forget(key: ClientKey, epoch: number): void;
}

/** As many as a node has links by default. */
const KNOWN = 20_000;

/** The oldest noted go first. */
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
