/** Decodes a connection's row from Redis, and says whether the connection is up at a given time. Pure. */
import type {
  ActionAdvertisement,
  ClientType,
  Connection,
  DisconnectCause,
  Predecessor,
} from '../../../core/connections/connection.ts';
import { trustJson, type JsonText } from '../../../core/json.ts';
import { DEAD_MS, FORGET_MS } from '../../../core/limits.ts';
import type { LeaseView } from './look.ts';
import { fieldsOf, type Fields } from '../replies.ts';
import type { Reply } from '../types.ts';

/** The fields of a row that change while its link is up or down. */
export type Stamps = Pick<Connection, 'nodeId' | 'lastSeenAt' | 'disconnectedAt' | 'disconnectCause' | 'closeCode'>;

/** Decodes the HASH of a connection; null for an empty one. */
export function decodeConnection(fields: Fields): Connection | null {
  const row = fieldsOf(fields);
  if (!row.has('epoch')) return null;
  const text = (name: string): string => row.get(name) ?? '';
  return {
    userId: text('userId'),
    clientId: text('clientId'),
    instanceId: text('instanceId'),
    epoch: Number(text('epoch')),
    clientType: text('clientType') as ClientType,
    host: text('host') === '1',
    metadata: jsonOf(row.get('metadata')),
    actions: JSON.parse(text('actions')) as readonly ActionAdvertisement[],
    connectedAt: Number(text('connectedAt')),
    replacedInstanceId: row.get('replacedInstanceId') ?? null,
    replacedAt: stampOf(row.get('replacedAt')),
    predecessors: predecessorsOf(row.get('predecessors')),
    ...stampsOf(row),
  };
}

const NO_PREDECESSORS: readonly Predecessor[] = [];

/**
 * Reads the predecessors that `connections_predecessors` of lib-connections-ends.lua wrote; none if there is no text.
 */
export function predecessorsOf(text: Reply | undefined): readonly Predecessor[] {
  if (typeof text !== 'string' || text === '') return NO_PREDECESSORS;
  return text.split('\n').map((one) => {
    const [instanceId = '', nodeId = '', replacedAt = '', cause = ''] = one.split('\0');
    return { instanceId, nodeId, replacedAt: Number(replacedAt), cause: cause as DisconnectCause };
  });
}

/**
 * Returns the connection in its state at the time of `leases`, computed from the stamps. It is down if its node's lease
 * is over. Returns null if the connection is due to be forgotten.
 */
export function asOf(
  connection: Connection | null,
  leases: LeaseView,
  stamps: Stamps | null = connection,
): Connection | null {
  const now = stamps && stampsAt(stamps, leases);
  return connection && now && { ...connection, ...now };
}

/**
 * Returns the stamps of a row at this time. If the lease of its node is over, the link was lost when the lease ended,
 * unless it was lost before. Returns null if the row is due to be forgotten.
 */
export function stampsAt(stamps: Stamps, { now, over }: LeaseView): Stamps | null {
  const { nodeId, lastSeenAt } = stamps;
  const silentAt = lastSeenAt + DEAD_MS;
  const lease = over.get(nodeId);
  const leaseAt = lease === undefined ? Infinity : Math.max(lease, lastSeenAt);
  const lostAt = stamps.disconnectedAt ?? Math.min(silentAt, leaseAt);
  if (now >= lostAt + FORGET_MS) return null;
  if (stamps.disconnectedAt !== null || leaseAt >= silentAt) return stamps;
  return { nodeId, lastSeenAt, disconnectedAt: leaseAt, disconnectCause: 'node_lost', closeCode: null };
}

export function stampsOf(row: ReadonlyMap<string, string>): Stamps {
  return {
    nodeId: row.get('nodeId') ?? '',
    lastSeenAt: Number(row.get('lastSeenAt')),
    disconnectedAt: stampOf(row.get('disconnectedAt')),
    disconnectCause: (row.get('disconnectCause') ?? null) as DisconnectCause | null,
    closeCode: stampOf(row.get('closeCode')),
  };
}

function stampOf(text: string | undefined): number | null {
  return text === undefined ? null : Number(text);
}

function jsonOf(text: string | undefined): JsonText | null {
  return text === undefined ? null : trustJson(text);
}
