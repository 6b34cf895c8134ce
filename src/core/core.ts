/** Creates core from a backend and the platform's ports, connects its parts, and starts, drains and closes the node. */
import type { Durability } from './backend.ts';
import type { AuditSign } from './audit/audit-rows.ts';
import { createAuditTrail, createAudits, type AuditBounds } from './audit/audit.ts';
import type { PolicyReport, RevealMode } from './auth/policy.ts';
import { createRpc } from './calls/calls.ts';
import { Correlator } from './calls/correlator.ts';
import { reattachWaits } from './calls/reattach-waits.ts';
import { releaseWaits } from './calls/release-waits.ts';
import { createCommandRecorder, type CommandRecorder } from './commands/command-recorder.ts';
import { createStoreRetryQueue, type StoreRetryQueue } from './commands/retry-queue.ts';
import { Dispatcher } from './commands/dispatcher.ts';
import { CommandEvents } from './commands/events.ts';
import { createLinks } from './commands/link-session.ts';
import { countNodes } from './commands/other-nodes.ts';
import { drainLinks, endWaits } from './commands/drain.ts';
import { handleNodeLoss } from './commands/node-loss.ts';
import { startLoops } from './commands/loops.ts';
import { NodeQuestions } from './commands/node-questions.ts';
import { createLookup } from './commands/lookup.ts';
import { createDeliveries } from './commands/delivery.ts';
import { createPermits } from './commands/permits.ts';
import { createActions } from './connections/action-sample.ts';
import { createConnections } from './connections/connections.ts';
import { createContexts } from './contexts/contexts.ts';
import { createDevices } from './devices/devices.ts';
import { NO_DEVICE_CREDENTIALS, type DeviceCredentials } from './devices/device.ts';
import { createDedup } from './dedup/dedup.ts';
import { serverInfo, type ServerInfo } from './server-info.ts';
import type { Deps } from './deps.ts';
import { fail } from './errors.ts';
import { createPayloadStorage } from './history/payload-storage.ts';
import { createHistories } from './history/history.ts';
import { createIngest } from './ingest/ingest.ts';
import { AUDIT_KEEP_MS, AUDIT_ROWS, READ_TURNS } from './limits.ts';
import { thenDo, type MaybePromise } from './maybe-promise.ts';
import { createSeries, type Series } from './metrics/series.ts';
import { PausedClients } from './pauses/paused-clients.ts';
import { createPauses } from './pauses/pauses.ts';
import type { Cancel, Clock, EventLoop } from './ports.ts';
import { createReveals } from './reveal/reveal.ts';
import { Admissions, RevocationIndex } from './revocations/revocation.ts';
import { createRevocations, type Revocations } from './revocations/revocations.ts';
import { fullShares } from './shares/full-shares.ts';
import type { ShareName } from './shares/share-bounds.ts';
import { readShareTotals, type ShareTotals } from './shares/share-totals.ts';
import { ReadTurns, createDocumentTurns, createMessageTurns } from './shares/turns.ts';
import { createProjector } from './sites/site-events.ts';
import { createSites } from './sites/sites.ts';
import { createUsers } from './users/users.ts';

export type { Requester } from './auth/principal.ts';
export type { ConnectionEvent } from './backend.ts';
export type { ExecutionEvidence, Outcome, Stage } from './commands/command.ts';
export type { TerminalError } from './history/message.ts';
export type { Summary } from './page.ts';
export type * from './connections/action-sample.ts';
export type * from './connections/connections.ts';
export type * from './calls/call.ts';
export type * from './commands/client-link.ts';
export type * from './commands/link-session.ts';
export type * from './commands/lookup.ts';
export type * from './commands/command-updates.ts';
export type * from './commands/delivery.ts';
export type * from './connections/action-sample.ts';
export type * from './connections/connections.ts';
export type * from './history/history.ts';
export type * from './history/raw-sample.ts';
export type * from './sites/projection.ts';
export type * from './sites/sites.ts';
export type * from './users/users.ts';

type CoreOptions = Omit<
  Deps,
  'readTurns' | 'events' | 'audit' | 'reveal' | 'tracing' | 'revoked' | 'admissions' | 'closed'
> & {
  /** The event loop of the process. Long reads yield to it. */
  readonly loop: EventLoop;
  /** Records trace spans. Absent: nothing is traced. */
  readonly tracing?: Deps['tracing'];
  /**
   * The bounds of the audit, the function that signs audit rows, and all functions that may have signed earlier rows.
   * Absent members have their defaults. Without `sign`, rows are signed with the key of `crypto`.
   */
  readonly audit?: Partial<AuditBounds & { readonly sign: AuditSign; readonly keys: readonly AuditSign[] }> | undefined;
  readonly reveal?: RevealMode | undefined;
  /** Checks proofs of devices, and signs their tokens. Absent: no device can be enrolled. */
  readonly devices?: DeviceCredentials | undefined;
};

const NOT_DURABLE = { sync: null, bytes: null, full: false, snapshotAt: null, away: null } as const;

/** Core as the HTTP, GraphQL and WebSocket layers use it. */
export type Core = ReturnType<typeof createCore>;

/**
 * Builds core over one backend. Nothing runs in the background before `start`. Every method takes the requester,
 * refuses what the requester may not do, and bounds its answer. Methods "for nested fields" do not check the requester
 * again, because the parent object was authorized.
 */
export function createCore({
  audit: bounds,
  reveal = 'argument',
  tracing = null,
  loop,
  devices = NO_DEVICE_CREDENTIALS,
  ...given
}: CoreOptions) {
  const kept = { maxRows: AUDIT_ROWS, keepMs: AUDIT_KEEP_MS, sign: given.crypto.sign, ...bounds };
  const audit = createAuditTrail({ ...given, ...kept, store: given.backend.audit });
  const events = new CommandEvents(given);
  const made = { readTurns: new ReadTurns(READ_TURNS), revoked: new RevocationIndex(), admissions: new Admissions() };
  const closing = new AbortController();
  const deps: Deps = { ...given, ...made, audit, reveal, tracing, events, loop, closed: closing.signal };
  const { backend, clock, nodeId, shares } = deps;
  const { capabilities } = backend;
  const correlator = new Correlator(deps.metrics);
  const keeper = createPayloadStorage(deps);
  const recorder = createCommandRecorder(deps, keeper);
  const retryQueue = createStoreRetryQueue(deps);
  const dispatcher = new Dispatcher(deps, retryQueue, recorder);
  const questions = new NodeQuestions(deps);
  const series = createSeries(deps, questions);
  const revocations = createRevocations({ deps, recorder, questions });
  const server = serverInfo(deps);
  const pausedClients = new PausedClients(deps);
  const background = { series, revocations, pausedClients };
  const lifecycleParts = { deps, closing, correlator, dispatcher, recorder, retryQueue, questions, server, background };
  const { isDraining, ...lifecycle } = createLifecycle(lifecycleParts);
  const calls = { deps, correlator, recorder, keeper, dispatcher, isDraining };
  const renewPermits = createPermits({ deps, dispatcher, questions });
  const inUse = (): MaybePromise<ShareTotals> => readShareTotals(shares, backend.sharesInUse);
  const nodeWaits = (): NodeWaits => waitsOf(correlator, clock);
  sampleNode(deps, dispatcher, nodeWaits);
  return {
    nodeId,
    mode: capabilities.shared ? ('shared' as const) : ('direct' as const),
    capabilities,
    /** Describes how much of the data survives this process. For nested fields of administrators. */
    durability: (): Durability =>
      backend.durability?.() ?? { ...NOT_DURABLE, kind: capabilities.shared ? 'store' : 'memory' },
    /** Reports which policy this node runs; null if the program that opened the relay has its own policy. */
    policyReport: (): PolicyReport | null => deps.policy.report?.() ?? null,
    clock,
    loop,
    crypto: given.crypto,
    server,
    /**
     * The idempotency window, in milliseconds: how long the id of an ended command stays known, so that the command
     * does not run again.
     */
    idempotencyWindowMs: backend.commands.windowMs,
    /** Reads the audit of what administrators did. */
    audit: createAudits({ ...deps, store: backend.audit, keys: kept.keys ?? [kept.sign] }),
    /** Pauses and resumes calls. */
    pauses: createPauses({ deps, settle: recorder.settle, renewPermits }),
    /** Says which clients are paused completely. */
    pausedClients: pausedClients as Pick<PausedClients, 'of' | 'onChange'>,
    /** Lets administrators read payloads, if the deployment allows it. */
    reveals: createReveals(deps),
    /** Revokes tokens, and says which tokens are revoked. */
    revocations,
    /** Enrols devices, and issues their tokens. */
    devices: createDevices({ deps, credentials: devices, revocations }),
    users: createUsers(deps),
    connections: createConnections(deps),
    actions: createActions(deps),
    contexts: createContexts(deps),
    rpc: createRpc(calls, questions),
    history: createHistories(deps),
    dedup: createDedup(deps),
    ingest: createIngest({ deps, keeper, projector: createProjector(deps) }),
    delivery: createDeliveries(deps, dispatcher),
    /** The waits of the callers of this node. */
    nodeWaits,
    nodeCounts: () => countNodes(deps),
    /** Finds commands by an id or a trace id, and groups failures. */
    lookup: createLookup(deps),
    /** Reads what the nodes counted and measured over time. */
    series: { read: series.read },
    /**
     * Resolves when each subscription that has begun receives the events of other nodes, after one second at most; at once
     * if they do already.
     */
    subscribed: (): MaybePromise<void> => backend.bus.confirmed(null),
    /** See `Backend.onLost`. */
    onLost: (run: () => void): Cancel => backend.onLost?.(run) ?? (() => {}),
    /** See `Backend.homeOf` and `Backend.onHome`. */
    homeOf: (userId: string): string | null => backend.homeOf?.(userId) ?? null,
    onHome: (run: (concerns: (userId: string) => boolean) => void): Cancel => backend.onHome?.(run) ?? (() => {}),
    links: createLinks({ deps, dispatcher, recorder, retryQueue, isDraining, questions }),
    sites: createSites(calls),
    /** Runs documents that only read, in turns by user, so that no user waits behind all documents of another. */
    documents: createDocumentTurns({ shares, loop }),
    /** Handles large messages of links, in turns by user. */
    messages: createMessageTurns(loop),
    /** The resources that each user holds in this process. */
    shares,
    /**
     * How much of each share is in use: over all nodes if the store counts the share, and in this process otherwise.
     */
    sharesInUse: inUse,
    /** The shares whose total is used up. They refuse users who hold a lot; other traffic still gets in. */
    fullShares: (): MaybePromise<readonly ShareName[]> => thenDo(inUse(), (amounts) => fullShares(shares, amounts)),
    ...lifecycle,
    get draining(): boolean {
      return isDraining();
    },
  };
}

/** Registers the gauges of this node that core computes. */
function sampleNode({ metrics }: Deps, dispatcher: Dispatcher, waits: () => NodeWaits): void {
  metrics.sample('commands_queued', () => [[null, dispatcher.load.queued]]);
  metrics.sample('commands_in_flight', () => [[null, dispatcher.load.inFlight]]);
  metrics.sample('waiters', () => [[null, waits().count]]);
  metrics.sample('oldest_wait_seconds', () => [[null, waits().oldestMs]]);
}

/** How many callers wait on a node, and how long the first of them has waited, in milliseconds; 0 if none waits. */
type NodeWaits = { readonly count: number; readonly oldestMs: number };

function waitsOf({ size, oldestSince }: Correlator, clock: Pick<Clock, 'now'>): NodeWaits {
  return { count: size, oldestMs: oldestSince === null ? 0 : clock.now() - oldestSince };
}

// Starts, drains and closes core. Each step handles the parts of core in the order of their dependencies.

type LifecycleOptions = {
  readonly deps: Deps;
  /** Aborts `deps.closed`. */
  readonly closing: AbortController;
  readonly correlator: Correlator;
  readonly dispatcher: Dispatcher;
  readonly recorder: CommandRecorder;
  readonly retryQueue: StoreRetryQueue;
  readonly questions: NodeQuestions;
  readonly server: ServerInfo;
  /** The parts of core that work in the background. */
  readonly background: {
    readonly series: Pick<Series, 'start'>;
    readonly revocations: Pick<Revocations, 'start' | 'readAnew'>;
    readonly pausedClients: Pick<PausedClients, 'start'>;
  };
};

function createLifecycle(parts: LifecycleOptions) {
  const { deps, closing, correlator, dispatcher, recorder, retryQueue, questions, server, background } = parts;
  const { series, revocations, pausedClients } = background;
  const { backend } = deps;
  let draining = false;
  let cancels: Cancel[] = [];
  const isDraining = (): boolean => draining;
  const reattach = (concerns = (_userId: string) => true): Promise<void> =>
    reattachWaits({ deps, correlator }, concerns);
  const drain = async (withinMs: number): Promise<void> => {
    draining = true;
    await drainLinks({ deps, dispatcher, withinMs });
  };
  return {
    isDraining,
    /** Attaches to this node's mailbox and starts the background loops. */
    async start(): Promise<void> {
      const loops = await startLoops({
        deps,
        dispatcher,
        recorder,
        questions,
        isDraining,
        server,
        onDrain(withinMs) {
          drain(withinMs).catch((error: unknown) => deps.log.error({ err: error }, 'draining failed'));
        },
        waiters: () => correlator.size,
        onLost: (cause, concerns) => handleNodeLoss({ deps, dispatcher, recorder, reattach, concerns }, cause),
        onMoved: (concerns) => void reattach(concerns),
        onRevived: () => revocations.readAnew(),
        onReply: correlator.resolve.bind(correlator),
      });
      cancels = [loops, revocations.start(), pausedClients.start(), series.start(), () => deps.events.close()];
    },
    /**
     * Stops admitting commands (`draining`), waits at most `withinMs` for the commands in flight, then closes the
     * links.
     */
    drain,
    async close(): Promise<void> {
      draining = true;
      if (backend.capabilities.shared) await releaseWaits({ deps, correlator });
      else await endWaits({ deps, recorder, waiting: correlator.size });
      retryQueue.stop();
      closing.abort();
      for (const cancel of cancels.splice(0)) cancel();
    },
    /** Throws `draining`, `store_full` or `store_unavailable` if this node should get no new traffic. */
    ready(): MaybePromise<void> {
      if (draining) fail('draining', 'This node is draining.');
      return backend.ready();
    },
  };
}
