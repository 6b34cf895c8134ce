import type {
  ActionAdvertisement,
  ClientType,
  Connection,
  DisconnectCause,
  Predecessor,
} from '../../../core/connections/connection.ts';
import { trustJson, type JsonText } from '../../../core/json.ts';
import { DEAD_MS, FORGET_MS } from '../../../core/limits.ts';
import type { Standing } from './look.ts';
import { fieldsOf, type Fields } from '../replies.ts';
import type { Reply } from '../types.ts';

/** Stamps of a row as Redis holds them. */
export type Stamps = Pick<Connection, 'nodeId' | 'lastSeenAt' | 'disconnectedAt' | 'disconnectCause'>;

/** A connection out of its hash, as it stands there; null of an empty one. */
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

/** As `connections_predecessors` of connections/lib-connections.lua writes them; none where there is no text. */
export function predecessorsOf(text: Reply | undefined): readonly Predecessor[] {
  if (typeof text !== 'string' || text === '') return NO_PREDECESSORS;
  return text.split('\n').map((one) => {
    const [instanceId = '', nodeId = '', replacedAt = '', cause = ''] = one.split('\0');
    return { instanceId, nodeId, replacedAt: Number(replacedAt), cause: cause as DisconnectCause };
  });
}

/** A row as it reads now, if these are its stamps: null past its time, and down when its node's lease is over. */
export function asOf(
  connection: Connection | null,
  standing: Standing,
  stamps: Stamps | null = connection,
): Connection | null {
  const now = stamps && stampsAt(stamps, standing);
  return connection && now && { ...connection, ...now };
}

/**
 * What the stamps of a row say now: of a node whose lease is over, that its links were lost then, unless they were lost before. Null: the
 * row is past its time.
 */
export function stampsAt(stamps: Stamps, { now, over }: Standing): Stamps | null {
  const { nodeId, lastSeenAt } = stamps;
  const silentAt = lastSeenAt + DEAD_MS;
  const lease = over.get(nodeId);
  const leaseAt = lease === undefined ? Infinity : Math.max(lease, lastSeenAt);
  const lostAt = stamps.disconnectedAt ?? Math.min(silentAt, leaseAt);
  if (now >= lostAt + FORGET_MS) return null;
  if (stamps.disconnectedAt !== null || leaseAt >= silentAt) return stamps;
  return { nodeId, lastSeenAt, disconnectedAt: leaseAt, disconnectCause: 'node_lost' };
}

export function stampsOf(row: ReadonlyMap<string, string>): Stamps {
  return {
    nodeId: row.get('nodeId') ?? '',
    lastSeenAt: Number(row.get('lastSeenAt')),
    disconnectedAt: stampOf(row.get('disconnectedAt')),
    disconnectCause: (row.get('disconnectCause') ?? null) as DisconnectCause | null,
  };
}

function stampOf(text: string | undefined): number | null {
  return text === undefined ? null : Number(text);
}

function jsonOf(text: string | undefined): JsonText | null {
  return text === undefined ? null : trustJson(text);
}
