/** Decodes connection rows, and computes whether a connection is up at a given time. */
import {
  connectionStatus,
  type ClientType,
  type Connection,
  type DisconnectCause,
  type Predecessor,
} from '../../core/connections/connection.ts';
import type { Reported } from '../../core/contexts/context.ts';
import type { ClientKey } from '../../core/ids.ts';
import { DEAD_MS, FORGET_MS } from '../../core/limits.ts';
import { decodeActions } from './connections-actions.ts';
import type { LeaseView } from './connections-index.ts';
import { fieldsOf, jsonOr, numberOr, type Fields, type Reply } from './replies.ts';

/** The fields of a row that tell whether and where the link is up, when it was last seen, and when and why it ended. */
type Stamps = Pick<Connection, 'nodeId' | 'lastSeenAt' | 'disconnectedAt' | 'disconnectCause' | 'closeCode'>;

/** Decodes the HASH of a connection; null for an empty one. */
export function decodeConnection(fields: Fields): Connection | null {
  const row = fieldsOf(fields);
  if (!row.has('epoch')) return null;
  const text = (name: string): string => row.get(name) ?? '';
  const actions = decodeActions(text('actions'), row.get('rev'));
  return {
    userId: text('userId'),
    clientId: text('clientId'),
    instanceId: text('instanceId'),
    epoch: Number(text('epoch')),
    clientType: text('clientType') as ClientType,
    host: text('host') === '1',
    places: text('places') === '1',
    linkAttempt: numberOr(row.get('linkAttempt')) ?? undefined,
    metadata: jsonOr(row.get('metadata')),
    actions,
    connectedAt: Number(text('connectedAt')),
    replacedInstanceId: row.get('replacedInstanceId') ?? null,
    replacedAt: numberOr(row.get('replacedAt')),
    predecessors: predecessorsOf(row.get('predecessors')),
    ...stampsOf(row),
  };
}

const NO_PREDECESSORS: readonly Predecessor[] = [];

/**
 * Decodes the predecessors that `connections_predecessors` in connections.lua wrote; an empty list if there is no text.
 */
export function predecessorsOf(text: Reply | undefined): readonly Predecessor[] {
  if (typeof text !== 'string' || text === '') return NO_PREDECESSORS;
  return text.split('\n').map((one) => {
    const [instanceId = '', nodeId = '', replacedAt = '', cause = ''] = one.split('\0');
    return { instanceId, nodeId, replacedAt: Number(replacedAt), cause: cause as DisconnectCause };
  });
}

/**
 * Returns the connection in its state at the time of `leases`. It is down if the lease of its node is over. Returns
 * null if the connection is due to be forgotten.
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
 * Returns the fields that tell the state of a link at this time. If the lease of its node is over, the link was lost
 * when the lease ended, unless it was lost before. Returns null if the row is due to be forgotten.
 */
function stampsAt(stamps: Stamps, { now, over }: LeaseView): Stamps | null {
  const { nodeId, lastSeenAt } = stamps;
  const silentAt = lastSeenAt + DEAD_MS;
  const lease = over.get(nodeId);
  const leaseAt = lease === undefined ? Infinity : Math.max(lease, lastSeenAt);
  const lostAt = stamps.disconnectedAt ?? Math.min(silentAt, leaseAt);
  if (now >= lostAt + FORGET_MS) return null;
  if (stamps.disconnectedAt !== null || leaseAt >= silentAt) return stamps;
  return { nodeId, lastSeenAt, disconnectedAt: leaseAt, disconnectCause: 'node_lost', closeCode: null };
}

function stampsOf(row: ReadonlyMap<string, string>): Stamps {
  return {
    nodeId: row.get('nodeId') ?? '',
    lastSeenAt: Number(row.get('lastSeenAt')),
    disconnectedAt: numberOr(row.get('disconnectedAt')),
    disconnectCause: (row.get('disconnectCause') ?? null) as DisconnectCause | null,
    closeCode: numberOr(row.get('closeCode')),
  };
}

/** The values in a client's row that apply to all contexts and windows that the client reported. */
export type Reporter = Omit<Reported, 'reportedAt'> & { readonly reportsContexts: boolean };

/** The fields of a client's row that `reporterOf` needs, in this order. */
export const REPORTER_FIELDS = [
  'instanceId',
  'clientType',
  'nodeId',
  'lastSeenAt',
  'disconnectedAt',
  'disconnectCause',
  'closeCode',
  'reportsContexts',
] as const;

/** Decodes REPORTER_FIELDS of a client's row. Returns null if there is no row, or the row is due to be forgotten. */
export function reporterOf(key: ClientKey, values: readonly Reply[], leases: LeaseView): Reporter | null {
  const row = new Map<string, string>();
  REPORTER_FIELDS.forEach((name, i) => {
    const value = values[i];
    if (typeof value === 'string') row.set(name, value);
  });
  const stamps = row.has('instanceId') ? stampsAt(stampsOf(row), leases) : null;
  return (
    stamps && {
      ...key,
      clientType: row.get('clientType') as ClientType,
      instanceId: row.get('instanceId') ?? '',
      linkLost: connectionStatus(stamps, leases.now) !== 'connected',
      reportsContexts: row.has('reportsContexts'),
    }
  );
}
