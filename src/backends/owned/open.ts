/**
 * Opens the backend of a process that owns partitions: connects to Redis, and wires partitions, mail between processes,
 * and the routing of calls to owners.
 */
import type { Backend, Capabilities } from '../../core/backend.ts';
import { CallboardError } from '../../core/errors.ts';
import { DEDUP_TTL_MS, FORGET_MS, RETENTION_MS, TERMINAL_MS } from '../../core/limits.ts';
import type { Clock, Crypto, EventLoop, Log } from '../../core/ports.ts';
import { createShares } from '../../core/shares/shares.ts';
import type { MemoryOptions } from '../memory/backend.ts';
import type { Client, FindNode } from '../redis/client.ts';
import { ownedNamespace } from '../redis/keys.ts';
import { createBudget } from './budget.ts';
import { OwnedBus } from './bus.ts';
import { processIdOf } from './fence.ts';
import { Keys } from './keys.ts';
import { Lease } from './lease.ts';
import { Mail, type MailMessage } from './mail.ts';
import { MailChannels } from './mail-channels.ts';
import { Nodes } from './nodes.ts';
import { Owners, SUSPEND_LEASES } from './owner.ts';
import type { PartitionOptions } from './partition.ts';
import { createPlacement } from './placement.ts';
import { Replicas } from './replicas.ts';
import { createRoutedBackend } from './routed.ts';
import { Reports } from './reports.ts';
import { Turns } from './turns.ts';

export type OwnedOptions = {
  /** Creates a client that is not connected yet. `findNode`: chooses the cluster node for the bus, see `connectTo`. */
  readonly connect: (purpose: 'commands' | 'bus', findNode?: FindNode) => Client;
  readonly namespace: string;
  /**
   * `partitions`: the number of partitions that users are divided into. `groups`: the number of slots that their keys
   * are in.
   */
  readonly partitions: number;
  readonly groups: number;
  readonly scopeOf: (userId: string) => string;
  /**
   * A digest of the rule behind `scopeOf`. It must be the same in all processes, because the rule determines the
   * partition of a user.
   */
  readonly digest: string;
  readonly nodeId: string;
  readonly version: string;
  /** The address at which clients reach this relay, without spaces. Absent if the relay has no address of its own. */
  readonly address?: string | null | undefined;
  /** Whether this process may own partitions. */
  readonly claims: boolean;
  /** The length of the lease, in milliseconds. Default: LEASE_MS. */
  readonly leaseMs?: number;
  readonly recordRoom?: PartitionOptions['recordRoom'];
  readonly memory: Omit<
    MemoryOptions,
    'watcher' | 'makeTransaction' | 'mailboxes' | 'keepsAttempts' | 'evidence' | 'clock' | 'log'
  >;
  /** The clock of the deployment, for times that are stored. */
  readonly clock: Clock;
  /** The timers of this machine. */
  readonly system: Clock;
  readonly loop: EventLoop;
  /** Generates the random part of the process id. */
  readonly random: Pick<Crypto, 'randomToken'>;
  readonly log: Log;
};

export type OwnedBackend = {
  readonly backend: Backend;
  readonly owners: Owners;
};

/** The number of random characters that make the id of a process unique. */
const TOKEN_CHARS = 8;
/** How long a process that does not renew its lease still counts as alive, in milliseconds. */
const LEASE_MS = 2_500;

const CAPABILITIES: Capabilities = {
  shared: true,
  allWaits: true,
  exactDedupCounters: true,
  cheapStreamSummaries: true,
};

/** Opens the backend. Rejects if Redis does not answer. After an error, everything is closed again. */
export async function openOwned(options: OwnedOptions): Promise<OwnedBackend> {
  const client = options.connect('commands');
  await client.connect();
  const composition = composed(options, client);
  try {
    await checkDivision(client, composition.keys);
    await composition.channels.ready();
    await composition.owners.start();
    // If another relay of the namespace started at the same time, it may have set a different division of users.
    await checkDivision(client, composition.keys);
  } catch (error) {
    composition.owners.stop();
    composition.stop();
    throw error;
  }
  return { backend: composition.backend, owners: composition.owners };
}

/**
 * Throws `invalid_argument` if the namespace has another division of users: calls would look for data in the wrong
 * partition.
 */
async function checkDivision(client: Pick<Client, 'get'>, keys: Keys): Promise<void> {
  const map = await client.get(keys.ofGroup(0).map);
  if (map === null || map === keys.map) return;
  throw new CallboardError(
    'invalid_argument',
    'POLICY_FILE: scopes: the namespace was created with other ids or members, by which its data is divided: use those, or another NAMESPACE.',
  );
}

function composed(options: OwnedOptions, client: Client) {
  const { clock, system, log, leaseMs = LEASE_MS, claims, memory, namespace, groups, digest, nodeId } = options;
  const { loop, version, recordRoom, address = null } = options;
  const process = processIdOf(nodeId, options.random.randomToken().slice(0, TOKEN_CHARS));
  const keys = new Keys(ownedNamespace(namespace), { partitions: options.partitions, groups, digest });
  const shares = memory.shares ?? createShares();
  const { evidence, hasRoom } = createBudget(shares, memory.history?.linkBytes);
  const placement = createPlacement(options.partitions, options.scopeOf);
  // The additional partition holds the chain of the audit.
  const partitions = options.partitions + 1;
  // Stored times, and times that callers see, come from the clock of the deployment; elapsed time comes from this
  // machine.
  const storeClock: Clock = {
    now: () => clock.now(),
    monotonic: () => system.monotonic(),
    after: (ms, run) => system.after(ms, run),
    every: (ms, run) => system.every(ms, run),
  };
  const turns = new Turns({ client, keys, clock: storeClock, loop, log, takeMail: () => mail.take() });
  const mail = new Mail({
    ...{ process, clock: system, log, publish: (to, text) => channels.publish(to, text) },
    plan: () => turns.plan(),
    onRecord: (run) => turns.onRecord(run),
    receive: (from, message) => receive(from, message),
    isAlive: (other) => owners.isAlive(other),
    onLoss: () => lost(),
  });
  const replicas = new Replicas({ client, connect: () => options.connect('commands'), clock: system, log });
  const lease = new Lease({ process, client, keys, clock: system, leaseMs, partitions, claims });
  const nodes = new Nodes({
    ...{ process, nodeId, clock, log, alive: () => owners.alive, processes: () => owners.nodes },
    report(text, at, isDraining) {
      lease.report = { text, at };
      // The lease contains an address only while the relay accepts links.
      lease.address = isDraining ? null : address;
    },
    reportsOf: (processes) => lease.reportsOf(processes),
    livingNow: () => lease.living(),
    send: (to, text, after) => mail.send(to, { kind: 'row', text }, after),
  });
  const bus = new OwnedBus({
    ...{ process, log, clock: system, alive: () => owners.alive },
    send: (to, text, after) => mail.send(to, { kind: 'event', text }, after),
  });
  const owners = new Owners({
    ...{ process, client, keys, turns, log, loop, version, replicas },
    ...{ partitions, lease, leaseMs, claims, clock: storeClock, recordRoom },
    memory: (partition) => ({
      ...{ ...memory, shares, clock, log, evidence, keepsAttempts: true },
      markSecret: memory.markSecret ?? digest,
      mailboxes: nodes.mailboxesOf(partition),
    }),
    send: (to, text) =>
      to === null ? channels.publishToAll(`${process} ${text}`) : mail.send(to, { kind: 'note', text }, null),
    hasRoom,
    onJoined: (other) => bus.joined(other),
    onAddress: (other) => homesMoved((userId) => owners.ownerOf(placement.ofUser(userId))?.process === other),
    onGone(other, reportedAt) {
      reportsMissingUntil = clock.now() + FORGET_MS;
      if (reportedAt !== null) nodes.noteGone(other, reportedAt);
      mail.forget(other);
      bus.gone(other);
    },
    onLost() {
      for (const run of losing) run();
      mail.restart();
      textsLost();
    },
    onForgotten: (partition) => nodes.forgotten((userId) => placement.ofUser(userId) === partition),
    onLinksLost: (connections) => nodes.linksLost(connections),
    onRevived: () => nodes.revived(),
  });
  let reportsMissingUntil = 0;
  const lost = (): void => {
    nodes.moved(() => true);
    bus.interrupted();
    textsLost();
  };
  let onTextsLost: () => void = () => {};
  let isLossPlanned = false;
  /** Plans one repetition of the open requests, however many texts are lost in this turn. */
  const textsLost = (): void => {
    if (isLossPlanned) return;
    isLossPlanned = true;
    loop.atTurnEnd(() => {
      isLossPlanned = false;
      onTextsLost();
    });
  };
  let onRequest: (from: string, text: string) => void = () => {};
  const receive = (from: string, { kind, text }: MailMessage): void => {
    if (kind === 'request') onRequest(from, text);
    else if (kind === 'row') nodes.receive(text);
    else if (kind === 'event') bus.receive(from, text);
    else owners.receive(from, text);
  };
  const channels = new MailChannels({
    ...{ process, client, keys, log, loop, clock: system },
    connect: (findNode) => options.connect('bus', findNode),
    onText(text) {
      const toAll = /^(\S+) (\{.*)$/.exec(text);
      if (!toAll) mail.receive(text);
      else if (toAll[1] !== process) owners.receive(toAll[1] ?? '', toAll[2] ?? '');
    },
    onRestored: () => lost(),
  });
  const stop = (): void => {
    stopBeat();
    mail.close();
    turns.close();
    channels.close();
    replicas.close();
    client.disconnect();
  };
  const stopBeat = system.every(MAIL_BEAT_MS, () => {
    mail.beat();
    bus.beat();
  });
  const losing = new Set<() => void>();
  const homes = new Set<(concerns: (userId: string) => boolean) => void>();
  const homesMoved = (concerns: (userId: string) => boolean): void => {
    for (const run of homes) run(concerns);
  };
  owners.onMove((partition) => {
    if (!owners.ownerOf(partition)) return;
    const concerns = (userId: string): boolean => placement.ofUser(userId) === partition;
    nodes.moved(concerns);
    reports.again(concerns);
    homesMoved(concerns);
  });
  const routed = createRoutedBackend({
    ...{ placement, owners, log, sha256: memory.sha256 },
    clock: storeClock,
    transport: {
      send: (to, text, after) => mail.send(to, { kind: 'request', text }, after),
      onText: (run) => (onRequest = run),
      onLoss: (run) => (onTextsLost = run),
    },
    own: {
      nodes: nodes.store,
      connections: {},
      dedup: { backend: () => ({ implementation: 'owned', ttlSeconds: DEDUP_TTL_MS / 1000, namespace }) },
      audit: {},
      pauses: { deciderOf: (part) => owners.ownerOf(part)?.nodeId ?? null },
      bus: bus.bus,
    },
    members: {
      capabilities: CAPABILITIES,
      // By this time, clients of a process that died have reported again or are forgotten.
      reportsMissingUntil: () => reportsMissingUntil,
      homeOf(userId) {
        const owner = owners.ownerOf(placement.ofUser(userId));
        return owner && owners.addressOf(owner.process);
      },
      onLost(run) {
        losing.add(run);
        return () => void losing.delete(run);
      },
      onHome(run) {
        homes.add(run);
        return () => void homes.delete(run);
      },
      onRecord: (run, holder) => turns.onRecord(() => owners.whileOwner(run, holder), holder),
      ready() {
        if (turns.isFull)
          throw new CallboardError('store_full', 'Redis is full; ends of commands are still recorded.', RETRY);
        if (owners.orphans === 0 && lease.isValid) return;
        throw new CallboardError('store_unavailable', 'The data of some users has no owner.', RETRY);
      },
      async close() {
        const { promise: late, resolve } = Promise.withResolvers<void>();
        // If Redis does not answer, no partition can be given away. Then the other processes wait for the end of the
        // lease.
        const cancel = system.after(leaseMs, resolve);
        const closed = owners.close().catch((error: unknown) => {
          log.warn({ err: error }, 'partitions could not be given away; others take them over');
        });
        await Promise.race([closed, late]);
        cancel();
        owners.stop();
        stop();
      },
    },
    windowMs: memory.idempotencyWindowMs ?? TERMINAL_MS,
    retentionMs: memory.history?.retentionMs ?? RETENTION_MS,
    permitMs: leaseMs,
    quietMs: leaseMs * (1 + SUSPEND_LEASES),
  });
  const reports = new Reports(routed, { clock, log });
  return { backend: { ...routed, ...reports.stores }, owners, channels, keys, stop };
}

/**
 * How often each process repeats, for the others, how much mail it has sent and which topics it listens to.
 * Milliseconds.
 */
const MAIL_BEAT_MS = 500;

/** The delay that a refusal tells the caller to wait. */
const RETRY = { retryAfterMs: 1_000 } as const;
