/** Creates core from a backend and the platform's ports, and connects the parts of core with each other. */
import { createActions } from './actions/actions.ts';
import { createAudits } from './audit/audits.ts';
import type { AuditSign } from './audit/row.ts';
import { createAuditTrail, type AuditBounds } from './audit/trail.ts';
import { createConnections } from './connections/connections.ts';
import { createContexts } from './contexts/contexts.ts';
import type { Core } from './core.ts';
import { createDedup } from './dedup/dedup.ts';
import { createActs } from './delivery/acts.ts';
import { CommandEvents } from './delivery/command-events.ts';
import { createDeliveries } from './delivery/delivery.ts';
import { Dispatcher } from './delivery/dispatcher.ts';
import { createLinks } from './delivery/links.ts';
import { NodeQuestions } from './delivery/node-questions.ts';
import { createStoreRetryQueue } from './delivery/store-retry-queue.ts';
import type { Deps } from './deps.ts';
import type { EventLoop } from './event-loop.ts';
import { createHistories } from './history/history.ts';
import { createPayloadStorage } from './history/payload-storage.ts';
import { createIngest } from './ingest/ingest.ts';
import { createLifecycle } from './lifecycle.ts';
import { serverInfo } from './server.ts';
import { AUDIT_KEEP_MS, AUDIT_ROWS } from './limits.ts';
import { READ_TURNS } from './limits-queries.ts';
import type { RevealMode } from './reveal/api.ts';
import { createReveals } from './reveal/reveal.ts';
import { thenDo } from './maybe-promise.ts';
import { sampleNode } from './metrics/node-samples.ts';
import { createSeries } from './metrics/series.ts';
import { createDocumentTurns } from './shares/documents.ts';
import { sharesInUse } from './shares/in-use.ts';
import { ReadTurns } from './shares/read-turns.ts';
import { fullShares } from './shares/room.ts';
import { createProjector } from './sites/projector.ts';
import { Correlator } from './rpc/correlator.ts';
import { createRpc } from './rpc/rpc.ts';
import { createSites } from './sites/sites.ts';
import { createUsers } from './users/users.ts';

export type CoreOptions = Omit<Deps, 'readTurns' | 'events' | 'audit' | 'reveal' | 'tracing'> & {
  /** The event loop of the process, to which long reads step back. */
  readonly loop: EventLoop;
  /** Records spans. Absent: nothing is traced. */
  readonly tracing?: Deps['tracing'];
  /**
   * The bounds of the audit, and the function that signs its rows. Absent members have their defaults; without `sign`,
   * rows are signed with the key of `crypto`.
   */
  readonly audit?: Partial<AuditBounds & { readonly sign: AuditSign }> | undefined;
  readonly reveal?: RevealMode | undefined;
};

/** Builds core over one backend. Nothing runs before `start`. */
export function createCore({ audit: bounds, reveal = 'argument', tracing = null, loop, ...given }: CoreOptions): Core {
  const kept = { maxRows: AUDIT_ROWS, keepMs: AUDIT_KEEP_MS, sign: given.crypto.sign, ...bounds };
  const audit = createAuditTrail({ ...given, ...kept, store: given.backend.audit });
  const events = new CommandEvents(given);
  const deps: Deps = { ...given, audit, reveal, tracing, events, loop, readTurns: new ReadTurns(READ_TURNS) };
  const { backend, clock, nodeId } = deps;
  const correlator = new Correlator(deps.metrics);
  const keeper = createPayloadStorage({ ...deps, retentionMs: backend.history.retentionMs });
  const acts = createActs(deps, keeper);
  const outbox = createStoreRetryQueue(deps);
  const dispatcher = new Dispatcher(deps, outbox);
  const questions = new NodeQuestions(deps);
  const series = createSeries(deps, questions);
  sampleNode(deps, {
    load: () => dispatcher.load,
    waits: () => ({ count: correlator.size, oldestSince: correlator.oldestSince }),
  });
  const { isDraining, ...life } = createLifecycle({ deps, correlator, dispatcher, acts, outbox, questions, series });
  const calls = { deps, correlator, acts, keeper, dispatcher, isDraining };
  return {
    nodeId,
    idempotencyWindowMs: backend.commands.windowMs,
    mode: backend.capabilities.shared ? 'shared' : 'direct',
    capabilities: backend.capabilities,
    clock,
    server: serverInfo(deps),
    documents: createDocumentTurns({ shares: deps.shares, loop }),
    shares: deps.shares,
    sharesInUse: () => sharesInUse(deps.shares, backend.sharesInUse),
    fullShares: () => thenDo(sharesInUse(deps.shares, backend.sharesInUse), (inUse) => fullShares(deps.shares, inUse)),
    audit: createAudits({ ...deps, store: backend.audit }),
    reveals: createReveals(deps),
    users: createUsers(deps),
    connections: createConnections(deps),
    actions: createActions(deps),
    contexts: createContexts(deps),
    history: createHistories(deps),
    dedup: createDedup(deps),
    ingest: createIngest({ deps, keeper, projector: createProjector(deps) }),
    rpc: createRpc(calls, questions),
    sites: createSites(calls),
    delivery: createDeliveries(deps, dispatcher),
    series,
    links: createLinks({ deps, dispatcher, acts, retryQueue: outbox, isDraining, questions }),
    ...life,
    get draining() {
      return isDraining();
    },
  };
}
