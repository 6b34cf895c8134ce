/** Runs one plan: starts its processes, carries out faults under load, waits for quiet, and judges the logs. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { auditNamespace } from '../audit/audit.ts';
import { sleep, until } from './acts/act.ts';
import { check, type Report } from './judge/checker.ts';
import { createReader, type Reader } from './log/reader.ts';
import { leftovers } from './log/leftovers.ts';
import { readComplaints } from './log/complaints.ts';
import { createDriver } from './processes/driver.ts';
import { mergeLogs, openLog, readLogs, type FaultLog } from './log/log.ts';
import { createNemesis } from './acts/nemesis.ts';
import { pauseAgainAndAgain } from './acts/pauses.ts';
import { revokeAgainAndAgain } from './acts/revocations.ts';
import { plantMutant } from './mutants/plant.ts';
import { socketsOf } from './processes/processes.ts';
import type { Fault, FaultKind, Plan } from './plan/plan.ts';
import { scheduleOf } from './plan/schedule.ts';
import { NAMESPACE, startWorld, type World } from './world.ts';

export type EpisodeOptions = {
  readonly plan: Plan;
  readonly seed: number;
  readonly commands: number;
  readonly perSecond: number;
  readonly faults: number;
  readonly direct: boolean;
  /** In direct mode: whether the relay has a data directory. */
  readonly durable?: boolean;
  /** Whether the relays own partitions. Default: Redis decides each step of a call. */
  readonly owned?: boolean;
  /** The folder of the relays' sources; default: this project's sources. */
  readonly source?: string | undefined;
};

export type Episode = {
  readonly report: Report;
  /** The number of faults that were carried out. */
  readonly faults: number;
  readonly seconds: number;
  /** The folder of the run's logs. */
  readonly folder: string;
};

/** How long a fault may take in addition to its duration, in milliseconds: about a lease and a start, or a failover. */
const EXTRA_FAULT_MS: Partial<Record<FaultKind, number>> = {
  'relay-kill': 10_000,
  'relay-kill-pausing': 10_000,
  'relays-kill': 10_000,
  'relay-tear': 10_000,
  'relay-halt': 10_000,
  'relay-power': 10_000,
  'relay-shut': 10_000,
  'relay-drain': 5_000,
  'relay-break': 5_000,
  'redis-break': 5_000,
  'relay-twin': 3_000,
  'relay-swap': 25_000,
  'redis-kill': 1_500,
  'redis-cut': 2_500,
  'redis-failover': 10_000,
  'cluster-failover': 5_000,
  'slots-move': 2_000,
  'handover-failover': 12_000,
  'relays-full': 10_000,
  'links-hello': 4_000,
  'links-away-pausing': 3_000,
  'links-deaf': 2_000,
  'links-mute': 2_000,
};
/** The faults that separate a relay from Redis for longer than its lease. */
const HELD_KINDS: readonly FaultKind[] = ['relay-pause', 'relay-swap', 'hole', 'all-holes', 'half-open', 'redis-pause'];
/** The corresponding maximum for relays that own partitions, whose lease is shorter, in milliseconds. */
const OWNED_EXTRA_MS = 6_000;
/** How long the start of a relay without Redis takes, in milliseconds. It has no lease to wait for. */
const DIRECT_START_MS = 4_000;
/** The report that is recorded for a relay that is missing in the list of nodes. */
const UNLISTED = { waiters: -1, unfinished: -1 } as const;
/** The interval at which the records of commands are read under load, in milliseconds. */
const COUNT_MS = 1_500;
/** How long an aimed kill may take, in milliseconds: until its moment has come, and until the relay is back. */
const AIMED_MS = 12_000;
/**
 * The size of a log, in bytes of cost, from which a snapshot is due, if kills aim at snapshots. With this value, each
 * partition with users writes several snapshots in a run. It is planted in a copy of the sources, because relays have
 * no setting for it.
 */
const SNAPSHOT_COST = { least: 64 * 1024, ofCommand: 10 };
/** The maximum number of commands for which the records are read repeatedly under load. */
const COUNTED_MAX = 2_000;
/** The timeout for the last waits to end after the last call, in milliseconds. */
const QUIET_MS = 60_000;
/** The timeout for the relays to close the sockets of clients that have disconnected, in milliseconds. */
const LEAVE_MS = 20_000;
/** How long calls are made after the last fault is healed, in milliseconds. */
const AFTERMATH_MS = 5_000;

/** Runs one plan: load under faults, a quiet time, the last reading, the shutdown, and the judgement. */
export async function runEpisode(options: EpisodeOptions): Promise<Episode> {
  const { plan, seed, faults } = options;
  const folder = mkdtempSync(join(tmpdir(), `callboard-faults-${plan.name}-`));
  const log = openLog({ folder, proc: 'driver', boot: '1' });
  const from = performance.now();
  let done = 0;
  {
    await using planted = plan.aimed ? oftenSnapshots(options) : null;
    await using world = await startWorld({ ...options, folder, source: planted?.source ?? options.source });
    const schedule = scheduleOf({ seed, plan, faults, targets: world.relays.length });
    const nemesis = createNemesis(world, log, schedule);
    const relay = () => world.relays.find(({ proc }) => proc.alive) ?? missing();
    const reader = createReader({ log, relay, bytes: plan.bytes });
    await load({ ...options, perSecond: paceOf(options, schedule) }, { world, log, nemesis, reader });
    done = nemesis.done;
    await judgeable(world, log, reader);
  }
  log.close();
  const events = mergeLogs(readLogs(folder).events, readComplaints(folder));
  // Relays that own partitions count in memory. The event `count` compares those counts with the records.
  const inStore = options.direct || options.owned ? [] : (['counters'] as const);
  const ofOwners = options.owned ? (['unfenced'] as const) : [];
  const { loss, promises } = options.owned ? whileOwnersLive(plan) : plan;
  const unrecorded = options.owned === true && plan.kinds.some((kind) => HELD_KINDS.includes(kind));
  const report = check(events, { loss, unrecorded, promises: ['prompt', ...inStore, ...ofOwners, ...promises] });
  return { report, faults: done, seconds: (performance.now() - from) / 1000, folder };
}

/** Copies the relays' sources, and changes the copy so that snapshots are written more often. */
function oftenSnapshots({ commands, source }: EpisodeOptions): ReturnType<typeof plantMutant> {
  const cost = Math.max(SNAPSHOT_COST.least, SNAPSHOT_COST.ofCommand * commands);
  const [find, replace] = ['{ ...recordRoom,', `{ dueCost: ${cost},`];
  return plantMutant({ file: 'backends/owned/partition.ts', find, replace }, source);
}

/**
 * Relays that own partitions write data again that Redis has lost. As long as these relays live, nothing is lost and no
 * loss is reported.
 */
function whileOwnersLive({ loss, promises }: Plan): Pick<Plan, 'loss' | 'promises'> {
  const isOfLoss = (promise: string): boolean => promise === 'noticed' || promise === 'answered';
  return { loss: loss && promises.includes('kept'), promises: promises.filter((promise) => !isOfLoss(promise)) };
}

/**
 * Returns the rate of commands with which the load lasts longer than the schedule of faults. A fault without load would
 * prove nothing.
 */
function paceOf({ commands, perSecond, direct, owned }: EpisodeOptions, schedule: readonly Fault[]): number {
  const last = schedule.at(-1);
  if (!last) return perSecond;
  // In any mode, a second process waits for a paused one, and a sentinel waits before it moves the master.
  const mostOf = (kind: FaultKind): number =>
    kind === 'relay-swap' || kind === 'redis-failover'
      ? Infinity
      : direct
        ? DIRECT_START_MS
        : owned
          ? OWNED_EXTRA_MS
          : Infinity;
  const mendingOf = ({ kind, role }: Fault): number =>
    role ? AIMED_MS : Math.min(EXTRA_FAULT_MS[kind] ?? 0, mostOf(kind));
  const mending = schedule.reduce((sum, fault) => sum + mendingOf(fault), 0);
  const seconds = (last.atMs + last.holdMs + mending + AFTERMATH_MS) / 1000;
  return Math.min(perSecond, commands / seconds);
}

type Loading = {
  readonly world: World;
  readonly log: FaultLog;
  readonly nemesis: ReturnType<typeof createNemesis>;
  readonly reader: Reader;
};

async function load(options: EpisodeOptions, { world, log, nemesis, reader }: Loading): Promise<void> {
  const { seed, commands, perSecond, plan } = options;
  await using driver = createDriver({
    log,
    seed,
    commands,
    perSecond,
    relays: world.relays,
    clients: world.who.slice(0, plan.clients),
    doubled: plan.doubled,
    workMs: plan.workMs,
    connectMs: plan.connectMs,
    respondMs: plan.respondMs,
    bytes: plan.bytes,
    again: plan.again,
    owners: world.owners,
  });
  log.write({ event: 'phase', phase: 'load' });
  await using _counting = commands > COUNTED_MAX ? null : countAgain(reader);
  const suffering = nemesis.run();
  const isOver = (): boolean => driver.begun >= commands;
  const stopping = plan.stops
    ? [pauseAgainAndAgain(world, { log, seed, isOver }), revokeAgainAndAgain(world, { driver, log, seed, isOver })]
    : [];
  await Promise.all([driver.run(), ...stopping]);
  nemesis.stop();
  await suffering;
  if (plan.again) await driver.again();
  log.write({ event: 'phase', phase: 'quiet' });
  await until(async () => (await reader.waiting()) === 0, QUIET_MS);
}

/**
 * Reads the records repeatedly under load and faults, until it is disposed. After a failed read, the next one reads
 * everything again.
 */
function countAgain(reader: Reader): AsyncDisposable {
  let ended = false;
  const counting = (async () => {
    while (!ended) {
      await sleep(COUNT_MS);
      await reader.census().catch(() => {});
    }
  })();
  return {
    async [Symbol.asyncDispose]() {
      ended = true;
      await counting;
    },
  };
}

/**
 * Reads everything that the judge needs. Records are read before and after the phase `read` begins, because none of
 * them may change from then on.
 */
async function judgeable(world: World, log: FaultLog, reader: Reader): Promise<void> {
  await reader.records();
  log.write({ event: 'phase', phase: 'read' });
  await reader.records();
  await reader.history(world.who);
  await reader.bounds();
  for (const url of await world.storeUrls())
    for (const key of await leftovers(url)) log.write({ event: 'leftover', key });
  recordProcesses(world, log);
  await Promise.all(world.clients.map(({ proc }) => proc.stop()));
  for (const { proc, name, baseline } of world.relays) {
    await until(async () => socketsOf(proc.pid) <= baseline, LEAVE_MS);
    const sockets = socketsOf(proc.pid);
    // Zeros appear with a delay, because a relay reports its waiters and its unfinished commands with its heartbeat.
    await until(async () => isIdle(await reader.node(name)), LEAVE_MS);
    const node = await reader.node(name);
    log.write({ event: 'idle', of: name, ...(node ?? UNLISTED), sockets, baseline });
  }
  await auditCounters(world, log);
}

/** Compares the counters in Redis with the stored data. At this time only heartbeats change them. */
async function auditCounters(world: World, log: FaultLog): Promise<void> {
  const urls = await world.storeUrls();
  if (urls.length === 0) return;
  const { keys, wrong } = await auditNamespace({ urls, namespace: NAMESPACE });
  for (const what of wrong) log.write({ event: 'miscount', what });
  log.write({ event: 'audited', keys });
}

/** Records for each process that had become ready how it ended. */
function recordProcesses({ relays }: World, log: FaultLog): void {
  for (const { name, boots } of relays)
    for (const { boot, end } of boots) {
      const { code, signal } = end ?? { code: null, signal: null };
      const by = end === null ? 'nobody' : (end.asked ?? 'itself');
      log.write({ event: 'process', of: `${name}.${boot}`, by, code, signal });
    }
}

function isIdle(node: Awaited<ReturnType<Reader['node']>>): boolean {
  return node?.waiters === 0 && node.unfinished === 0;
}

function missing(): never {
  throw new Error('no relay is alive');
}
