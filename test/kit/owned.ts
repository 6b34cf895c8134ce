/** Opens backends of one deployment whose processes own partitions, over the Redis of the run. */
import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import { openOwned, type OwnedBackend, type OwnedOptions } from '../../src/backends/owned/open.ts';
import { connectTo } from '../../src/backends/redis/client.ts';
import { readTarget } from '../../src/backends/redis/target.ts';
import type { Backend } from '../../src/core/backend.ts';
import { silentLog, type Cancel, type Clock } from '../../src/core/ports.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { createCrypto, systemClock, systemLoop } from '../../src/platform/system.ts';
import { alsoSettles, turns, type FakeClock } from './clock.ts';
import { eventually } from './patience.ts';

/** A lease that no test outlives. */
const LEASE_MS = 120_000;

export type OwnedPlace = {
  open(of: OwnedProcessOptions): Promise<OwnedBackend>;
};

type OwnedProcessOptions = Pick<OwnedOptions, 'nodeId' | 'scopeOf' | 'address' | 'leaseMs'> & {
  readonly memory?: Partial<OwnedOptions['memory']>;
  /** Absent: the Redis of the run. */
  readonly redisUrl?: string;
};

/** The first backend that is opened owns all partitions, until it is closed: they move to another then. */
export function ownedPlace(clock: Clock, partitions = 3): OwnedPlace {
  const namespace = randomUUID();
  const { sha256 } = createCrypto('test');
  return {
    async open({ nodeId, scopeOf, memory = {}, redisUrl = inject('redisUrl'), address, leaseMs = LEASE_MS }) {
      const target = readTarget(redisUrl);
      const opened = await openOwned({
        connect: (purpose, findNode) => connectTo(target, purpose, silentLog, { findNode }),
        ...{ namespace, partitions, groups: 2, digest: 'd', nodeId, claims: true, clock, version: 'test', scopeOf },
        ...{ leaseMs, address, system: systemClock, loop: systemLoop, random: createCrypto('test'), log: silentLog },
        memory: { sha256, markSecret: 'x', shares: createShares(), ...memory },
      });
      await eventually(() => {
        if (opened.owners.orphans > 0) throw new Error('some partitions have no owner yet');
      });
      return opened;
    },
  };
}

export type OwnedDeployment = {
  /** Opens the backend of one more process. The caller must close it. */
  open(of: OwnedProcessOptions): Promise<Backend>;
};

/** A row that is mailed to another process may lead to mail from there, and that to an answer. */
const HOPS = 3;
const NO_WAIT = { userId: 'none', clientId: 'none', commandId: 'none' } as const;

/**
 * As `ownedPlace`, with the time of a FakeClock. Afterwards, `clock.advance` waits until each process has received the
 * mail of the others, and knows those that have started. `settle` does the same while a backend is open. Questions
 * about nodes are answered by their newest reports.
 */
export function ownedDeployment(clock: FakeClock): OwnedDeployment {
  const place = ownedPlace(clock);
  const open = new Set<OwnedBackend>();
  let hasStarted = false;
  let reported = 0;
  let reading = { reported, done: Promise.resolve() };
  /** Resolves when each process knows all reports until now. */
  const reportsKnown = (): Promise<void> => {
    if (reading.reported < reported) reading = { reported, done: reading.done.then(() => known(open)) };
    return reading.done;
  };
  const quiet = async (): Promise<void> => {
    await received(open);
    if (!hasStarted) return;
    hasStarted = false;
    await reportsKnown();
  };
  let settled: Cancel = () => {};
  clock.alsoAwaits(quiet);
  return {
    async open(options) {
      const opened = await place.open(options);
      const { backend } = opened;
      open.add(opened);
      if (open.size === 1) settled = alsoSettles(quiet);
      const { nodes } = backend;
      let isFirst = true;
      const reporting: Partial<Backend['nodes']> = {
        beat(...report) {
          reported++;
          hasStarted ||= isFirst;
          isFirst = false;
          return nodes.beat(...report);
        },
        list: (page) => reportsKnown().then(() => nodes.list(page)),
        get: (nodeId) => reportsKnown().then(() => nodes.get(nodeId)),
        silent: () => reportsKnown().then(() => nodes.silent()),
        reportTimes: () => reportsKnown().then(() => nodes.reportTimes?.() ?? []),
      };
      const close = async (): Promise<void> => {
        open.delete(opened);
        if (open.size === 0) settled();
        await backend.close();
      };
      return { ...backend, nodes: { ...nodes, ...reporting }, close };
    },
  };
}

/**
 * Resolves when each process has received the mail that the others sent before: the answer to a change, here of a wait
 * that does not exist, comes after it.
 */
async function received(processes: ReadonlySet<OwnedBackend>): Promise<void> {
  for (let hop = 0; hop < HOPS; hop++) {
    await turns();
    await Promise.all([...processes].map(({ backend: { waiters } }) => waiters.remove(NO_WAIT, 'none')));
  }
}

/**
 * Resolves when each process knows what the others have reported: with a lease that no test outlives, they renew it too
 * seldom. A renewal that was in progress may know nothing of a report; the next one writes it, and the one after reads it.
 */
async function known(processes: ReadonlySet<OwnedBackend>): Promise<void> {
  for (let renewal = 0; renewal < 3; renewal++)
    for (const process of processes) {
      const { owners } = process;
      const { alive } = owners;
      owners.doubt();
      await eventually(() => {
        if (owners.alive === alive && processes.has(process)) throw new Error('the lease was not renewed');
      }, 1);
    }
}
