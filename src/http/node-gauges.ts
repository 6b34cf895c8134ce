/** Registers the gauges that show the state of this node and of its deployment. Each is computed when it is read. */
import type { AdminPrincipal } from '../core/auth/principal.ts';
import type { Core } from '../core/core.ts';
import { PAGE_MAX } from '../core/limits.ts';
import { CallboardError } from '../core/errors.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { Meter } from '../platform/metrics.ts';
import type { Sockets } from './sockets.ts';

export type GaugeSources = {
  readonly core: Pick<Core, 'delivery' | 'rpc'>;
  /** Throws or rejects with a CallboardError while this node takes no new links and commands. */
  readonly ready: () => unknown;
  readonly gateway: Pick<Gateway, 'size' | 'peers'>;
  readonly sockets: Pick<Sockets, 'unauthenticated'>;
};

const READER: AdminPrincipal = { kind: 'admin', name: 'metrics', expiresAt: null };
const CALLER = 'caller';

export function meterNode(
  meter: Pick<Meter, 'gauge' | 'gauges' | 'sample'>,
  { core: { delivery, rpc }, ready, gateway, sockets }: GaugeSources,
): void {
  meter.gauge('ready', async () => {
    try {
      await ready();
      return 1;
    } catch (error) {
      if (error instanceof CallboardError) return 0;
      throw error;
    }
  });
  meter.gauges('nodes', async () => {
    const { nodes } = await delivery.nodes(READER, { first: PAGE_MAX });
    const stale = nodes.filter((node) => node.stale).length;
    return [
      ['live', nodes.length - stale],
      ['stale', stale],
    ];
  });
  meter.gauge('links', () => gateway.size);
  const clients = (): [string, number][] => [...gateway.peers()].filter(([peer]) => peer !== CALLER);
  const callers = (): number => gateway.peers().get(CALLER) ?? 0;
  meter.gauges('client_links', clients);
  meter.gauge('caller_links', callers);
  meter.sample('client_links', clients);
  meter.sample('caller_links', () => [[null, callers()]]);
  meter.gauge('commands_queued', () => delivery.nodeLoad().queued);
  meter.gauge('commands_in_flight', () => delivery.nodeLoad().inFlight);
  meter.gauge('waiters', async () => (await rpc.count(READER, {})).count);
  meter.gauge('oldest_wait_seconds', async () => {
    const { nodes } = await rpc.pending(READER, {}, { first: 1 });
    return (nodes[0]?.ageMs ?? 0) / 1000;
  });
  const readReservations = shared(() => delivery.reservations(READER));
  meter.gauges('reservations', async () => {
    const { named, others } = await readReservations();
    return [...named.map(({ scopeId, reservedCommands }) => [scopeId, reservedCommands] as const), ['other', others]];
  });
  meter.gauges('reservations_limit', async () => {
    const { named } = await readReservations();
    return named.flatMap(({ scopeId, limit }) => (limit === null ? [] : [[scopeId, limit] as const]));
  });
  meter.gauge('reservations_fullest_ratio', async () => (await readReservations()).fullest);
  meter.gauge('unauthenticated_sockets', () => sockets.unauthenticated);
}

/** Lets all calls that arrive while a read is in progress share that read. */
function shared<T>(read: () => Promise<T>): () => Promise<T> {
  let current: Promise<T> | null = null;
  return () => (current ??= read().finally(() => (current = null)));
}
