/** The relays of a simulated deployment, as a workload and the judges see them, whatever their store is. */
import { defaultPolicy } from '../../src/core/auth/policy.ts';
import type { Backend } from '../../src/core/backend.ts';
import { createCore, type Core } from '../../src/core/core.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { silentMetrics } from '../../src/core/metrics.ts';
import { Cursors } from '../../src/core/cursors.ts';
import type { Clock, Log } from '../../src/core/ports.ts';
import type { SpillStore } from '../../src/core/history/message.ts';
import type { Shares } from '../../src/core/shares/shares.ts';
import { createMemorySpill } from '../../src/backends/spill/memory.ts';
import type { SimulatedProcess } from './process.ts';
import type { Simulation } from './virtual.ts';

/**
 * A relay. `clock`: the clock of the deployment; null while the relay starts, as `backend`. `core`: what the workload opens over its backend; null: nothing yet.
 */
export type Relay = {
  readonly process: SimulatedProcess;
  readonly clock: Clock | null;
  readonly shares: Shares;
  readonly backend: Backend | null;
  core: Core | null;
  /** How the workload ends the relay in order, before its backend closes; null: not opened yet. */
  leave: (() => Promise<void>) | null;
};

/** A relay whose store is open. */
export type OpenRelay = Relay & { readonly clock: Clock; readonly backend: Backend };

export interface Relays {
  readonly simulation: Simulation;
  /** The relays whose stores are open, and whose processes live. */
  readonly living: readonly OpenRelay[];
  /** From when on nothing should be wrong, in milliseconds of the simulation, until the next fault moves it. */
  readonly calmFrom: number;
  /** Whether what was recorded between these times of the simulation may be lost: the fault was more than is survived. */
  mayBeLost(from: number, to: number): boolean;
  /** Whether a command that was admitted at this time, and had not ended, may have been given up because of a loss. */
  mayBeGivenUp(since: number): boolean;
  /** Whether the clock of the deployment went on between these times: a relay that starts alone takes that of its machine. */
  hasKeptTime(from: number, to: number): boolean;
  /** How far the clock of a relay that was started was apart from the time of the simulation at most, in milliseconds. */
  readonly skewMs: number;
  /** Prints a line about what happens, if the run is traced. */
  trace(line: string): void;
  /** Counts something that happened. */
  count(what: string): void;
}

/** Relays, and what they run on, with faults that a plan decides. */
export interface SimulatedDeployment extends Relays {
  /** How often each fault, and each answer of an act, occurred. */
  readonly seen: Readonly<Record<string, number>>;
  /** The faults of the plan begin at their times from now on. */
  beginFaults(): void;
  /** Ends all faults. Relays that are gone are started again. */
  heal(): void;
  /** Whether the relays can do what they are for. */
  isInOrder(): boolean;
  /** Says how the relays are, for people. */
  state(): string;
  /** Judges the deployment itself, once everything is in order. */
  judge(): Promise<readonly string[]>;
  stop(): void;
}

/** Makes the core of a relay. The caller starts it. `spill`: where large payloads are; default: in its memory. */
export function coreOf({ process, clock, backend, shares }: OpenRelay, log: Log, spill?: SpillStore): Core {
  const { crypto, loop } = process;
  return createCore({
    ...{ loop, clock, crypto, shares, nodeId: process.name, backend, log },
    ...{
      cursors: new Cursors(crypto),
      policy: defaultPolicy,
      metrics: silentMetrics,
      tracing: null,
      rawMessages: false,
    },
    processMeter: { take: () => ({ memoryBytes: 0, loopDelayMs: null }) },
    spill: spill ?? createMemorySpill(clock, crypto, shares),
    server: { version: 'simulated', label: null, traceUrl: null, maxBodyBytes: 1_000_000 },
  });
}

/** A log that counts its lines by their texts: what a relay tells its operator has occurred. */
export function countingLog({ count, trace }: Pick<Relays, 'count' | 'trace'>, process: SimulatedProcess): Log {
  const line = (fields: object, text: string): void => {
    count(`log: ${text}`);
    const shown = JSON.stringify(fields, (_, value) => (value instanceof Error ? String(value) : value));
    trace(`${process.name} logs: ${text} ${shown}`);
  };
  return { debug: line, info: line, warn: line, error: line };
}

/** The same, for which an error that a relay does not expect is a fault of it. */
export function faultLog(
  relays: Pick<Relays, 'count' | 'trace'>,
  process: SimulatedProcess,
  report: (fault: string) => void,
): Log {
  const counting = countingLog(relays, process);
  return {
    ...counting,
    error: (fields, message) => {
      counting.error(fields, message);
      const { err } = fields;
      // A relay that has lost its partitions, or cannot reach their owners, says so.
      if (err instanceof CallboardError && err.code === 'store_unavailable') return;
      report(`${process.name}: ${message}: ${err instanceof Error ? err.stack : String(err)}`);
    },
  };
}

/**
 * Calls `run` once what the relay has decided so far is recorded, as a socket of the relay does before it writes.
 * `holder`: see `Backend.onRecord`.
 */
export function onRecord({ backend }: OpenRelay, run: () => void, holder?: { destroy(): void }): void {
  if (backend.onRecord) backend.onRecord(run, holder);
  else run();
}

/** Returns the code of a refusal, or the beginning of any other error. */
export function codeOf(error: unknown): string {
  return error instanceof CallboardError ? error.code : String(error).slice(0, 80);
}
