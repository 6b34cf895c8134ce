import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { check, type Report } from './checker.ts';
import { createDriver } from './driver.ts';
import { openLog, readLogs, type FaultLog } from './log.ts';
import { createNemesis } from './nemesis.ts';
import { memoryOf, socketsOf } from './processes.ts';
import { createReader, type Reader } from './reader.ts';
import { leftovers } from './leftovers.ts';
import { scheduleOf, type Fault, type Plan } from './schedule.ts';
import { startWorld, type World } from './world.ts';

export type EpisodeOptions = {
  readonly plan: Plan;
  readonly seed: number;
  readonly commands: number;
  readonly perSecond: number;
  readonly faults: number;
  readonly direct: boolean;
  /** Where the relays' sources lie, if not here. */
  readonly source?: string | undefined;
};

export type Episode = {
  readonly report: Report;
  /** Faults that were done. */
  readonly faults: number;
  readonly seconds: number;
  /** Where its logs lie. */
  readonly folder: string;
};

const SAMPLE_MS = 1_000;
const QUIET_MS = 60_000;
const LEAVE_MS = 20_000;
const POLL_MS = 250;
const AFTERMATH_MS = 5_000;

/** One plan from beginning to end: load under faults, quiet, the last reading, everybody leaves, judgement. */
export async function runEpisode(options: EpisodeOptions): Promise<Episode> {
  const { plan, seed, faults } = options;
  const folder = mkdtempSync(join(tmpdir(), `callboard-faults-${plan.name}-`));
  const log = openLog({ folder, proc: 'driver', boot: '1' });
  const from = performance.now();
  let done = 0;
  {
    await using world = await startWorld({ ...options, folder });
    const schedule = scheduleOf({ seed, plan, faults, targets: world.relays.length });
    const nemesis = createNemesis(world, log, schedule);
    const reader = createReader(log, () => world.relays.find(({ proc }) => proc.alive) ?? missing());
    const sampling = setInterval(() => sample(world, log), SAMPLE_MS);
    await load({ ...options, perSecond: paceOf(options, schedule) }, { world, log, nemesis, reader });
    done = nemesis.done;
    await judgeable(world, log, reader);
    clearInterval(sampling);
  }
  log.close();
  const report = check(readLogs(folder).events, { loss: plan.loss });
  return { report, faults: done, seconds: (performance.now() - from) / 1000, folder };
}

/** Slow enough that the load outlasts the schedule: a fault that nobody suffers from shows nothing. */
function paceOf({ commands, perSecond }: EpisodeOptions, schedule: readonly Fault[]): number {
  const last = schedule.at(-1);
  if (!last) return perSecond;
  const seconds = (last.atMs + last.holdMs + AFTERMATH_MS) / 1000;
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
    clients: world.who,
    doubled: plan.doubled,
    workMs: plan.workMs,
  });
  log.write({ event: 'phase', phase: 'load' });
  sample(world, log);
  const suffering = nemesis.run();
  await driver.run();
  nemesis.stop();
  await suffering;
  log.write({ event: 'phase', phase: 'quiet' });
  await until(async () => (await reader.waiting()) === 0, QUIET_MS);
}

/** Everything that the judge needs, read twice: what was read once may not change any more. */
async function judgeable(world: World, log: FaultLog, reader: Reader): Promise<void> {
  await reader.records();
  log.write({ event: 'phase', phase: 'read' });
  await reader.records();
  await reader.history(world.who);
  await reader.bounds();
  for (const key of world.redis ? await leftovers(world.redis.url) : []) log.write({ event: 'leftover', key });
  await Promise.all(world.clients.map(({ proc }) => proc.stop()));
  for (const { proc, name, baseline } of world.relays) {
    await until(async () => socketsOf(proc.pid) <= baseline, LEAVE_MS);
    const sockets = socketsOf(proc.pid);
    const node = await reader.node(name);
    if (node) log.write({ event: 'idle', of: name, ...node, sockets, baseline });
  }
}

function sample({ relays }: World, log: FaultLog): void {
  for (const { name, proc } of relays) {
    const bytes = memoryOf(proc.pid);
    if (bytes !== null) log.write({ event: 'memory', of: `${name}.${proc.boot}`, bytes });
  }
}

/** Whether it came true in time. An error counts as not yet: a relay may still be on its way up. */
async function until(holds: () => Promise<boolean>, withinMs: number): Promise<boolean> {
  const end = performance.now() + withinMs;
  while (performance.now() < end) {
    if (await holds().catch(() => false)) return true;
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
  return false;
}

function missing(): never {
  throw new Error('no relay is alive');
}
