/** Builds the report that a node sends with each heartbeat. */
import type { ServerInfo } from '../server-info.ts';
import type { Deps } from '../deps.ts';
import { LOOP_ALIVE_MS } from '../limits.ts';
import type { CounterName } from '../metrics.ts';
import type { Outcome } from './command.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { NodeReport } from './node-store.ts';

export type ReportDeps = {
  readonly deps: Deps;
  readonly dispatcher: Dispatcher;
  /** How many callers wait on this node. */
  readonly waiters: () => number;
  readonly isDraining: () => boolean;
  readonly server: Pick<ServerInfo, 'version' | 'startedAt'>;
};

/** When each loop last did its work, in epoch milliseconds. */
export type LoopTimes = { heardAt: number; reconciledAt: number };

const OUTCOMES: Readonly<Record<Outcome, true>> = {
  completed: true,
  failed: true,
  cancelled: true,
  expired: true,
  outcome_unknown: true,
};
const COUNTED: readonly CounterName[] = [
  'commands_admitted',
  'commands_dispatched',
  'commands_acknowledged',
  'commands_recovered',
  'late_results',
  'fenced_results',
  'replies_dropped',
];
/**
 * The delivery counters with the value 0. They are reported from the start, so that a counter of something that has not
 * happened yet shows 0 instead of being absent.
 */
const ZEROS: ReadonlyMap<string, number> = new Map(
  [...COUNTED, ...Object.keys(OUTCOMES).map((outcome) => `commands_ended:${outcome}`)].map((name) => [name, 0]),
);

/** Returns this node's current report. */
export function reportOf({ deps, dispatcher, waiters, isDraining, server }: ReportDeps, times: LoopTimes): NodeReport {
  const now = deps.clock.now();
  const { inFlight, queued } = dispatcher.load;
  const { version, startedAt } = server;
  return {
    listenerAlive: now - times.heardAt < LOOP_ALIVE_MS,
    reconciliationAlive: now - times.reconciledAt < LOOP_ALIVE_MS,
    activeDrainers: dispatcher.draining,
    connectionWaiters: waiters(),
    links: dispatcher.links,
    unfinishedCommands: inFlight + queued,
    draining: isDraining(),
    counters: new Map([...ZEROS, ...deps.metrics.snapshot()]),
    process: { version, startedAt, ...deps.processMeter.take() },
    policy: deps.policy.report?.(),
  };
}
