/** Offers helpers to the contract tests of connections: hellos, filters, and reading all pages. */
import {
  ANY_CONNECTION,
  type ConnectionFilter,
  type ConnectRequest,
} from '../../../src/core/connections/connection.ts';
import type { Position } from '../../../src/core/page.ts';
import type { Bench } from './bench.ts';

export const ALL = ANY_CONNECTION;

export function hello(userId: string, clientId: string, over: Partial<ConnectRequest> = {}): ConnectRequest {
  return {
    userId,
    clientId,
    instanceId: 'i1',
    nodeId: 'n1',
    clientType: 'browser',
    host: true,
    metadata: null,
    actions: [],
    ...over,
  };
}

/** Returns `user/client` of the first thousand rows. */
export async function ids({ backend }: Bench, filter: ConnectionFilter): Promise<string[]> {
  const { rows } = await backend.connections.list(filter, { first: 1000, after: null });
  return rows.map(({ row }) => `${row.userId}/${row.clientId}`);
}

/** Returns `user/client` of all rows, read page by page. */
export async function paged({ backend }: Bench, filter: ConnectionFilter, first: number): Promise<string[]> {
  const found: string[] = [];
  let after: Position | null = null;
  do {
    const scan = await backend.connections.list(filter, { first, after });
    found.push(...scan.rows.map(({ row }) => `${row.userId}/${row.clientId}`));
    after = scan.next;
  } while (after !== null);
  return found;
}
