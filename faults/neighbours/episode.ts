/**
 * Runs one attack beside an honest user, with separate relays and a separate Redis, and collects the honest user's
 * measurements.
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { memoryOf } from '../outages/processes/processes.ts';
import { makeSmallDisk } from '../outages/processes/small-disk.ts';
import { startRelay, type Relay } from '../outages/processes/relays.ts';
import { startRedis } from '../../test/kit/redis.ts';
import { startChild, type Child } from '../lib/child.ts';
import { attackOf } from './attacks/attacks.ts';
import type { Attack } from './attacks/attack.ts';
import { OPERATION_COUNTS, PHASE, type Phase, phasesTogether, WHOLENESS } from './figures.ts';
import { type Filler, fillerOfDisk, fillerOfRedis, passFull } from './full-store.ts';
import type { Site } from './site.ts';
import type { DiskUse, Episode, FullTime, Mode } from './verdict.ts';

export type EpisodeOptions = {
  readonly attack: string;
  readonly mode: Mode;
  /**
   * How long the attack lasts, in seconds. `aloneSeconds`: how long the honest user is measured alone before the
   * attack.
   */
  readonly seconds: number;
  readonly aloneSeconds: number;
  /**
   * Whether the relays' store has no room for some seconds in the middle of the attack. Not possible in direct mode,
   * which has no store. Default false.
   */
  readonly isFilled?: boolean;
  /** The folder of the relays' sources; default: those of this project. */
  readonly source?: string | undefined;
  /** The settings of the relays, as environment variables. */
  readonly env?: Readonly<Record<string, string>>;
};

/** The interval at which the memory of the relays is read, in milliseconds. */
const MEMORY_MS = 250;
/** How long a phase may take beyond its length, in milliseconds, because its last call may still wait. */
const REST_MS = 60_000;
/** The time limit of the honest client's connection, in milliseconds. */
const READY_MS = 120_000;
/**
 * How long the relays are left alone after their start, in milliseconds. In this time they load modules that are rarely
 * needed.
 */
const REST_AT_START_MS = 2_500;
/** The timeout for storing an attack's data before it begins, in milliseconds. */
const PREPARE_MS = 180_000;
/** The timeout for the check of the honest user's data, in milliseconds. The check repeats each command. */
const CHECK_MS = 600_000;
/** The size of the disk that is filled, in bytes. It is larger than any attack needs. */
const DISK_BYTES = 4 * 1024 * 1024 * 1024;
const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** Runs one attack on separate relays, beside an honest user. */
export async function runEpisode(options: EpisodeOptions): Promise<Episode> {
  const { attack: name, mode, seconds, aloneSeconds } = options;
  const attack = attackOf(name);
  await using ends = new AsyncDisposableStack();
  const { relays, data, filler } = await startSite(options, attack, ends);
  const site: Site = { urls: relays.map(({ url }) => url) };
  await using honest = await startChild(file('honest.ts'), { args: [JSON.stringify(site)] });
  const phase = (name: string, seconds: number) =>
    honest.ask('phase', { name, seconds, isFull: false }, PHASE, seconds * 1000 + REST_MS);
  await honest.ask('ready', null, z.null(), READY_MS);
  await new Promise((rested) => setTimeout(rested, REST_AT_START_MS));
  const alone = await phase('alone', aloneSeconds);
  await honest.ask('note', null, z.null(), CHECK_MS);
  const memory = watchMemory(relays);
  const disk = data === null ? null : watchDisk(data);
  await using hostile = await startChild(file('hostile.ts'), { args: [JSON.stringify(site), name] });
  await hostile.ask('begin', null, z.null(), PREPARE_MS);
  const { beside, full } = options.isFilled
    ? await phasesAround(phase, seconds, () => passFull(filler, honest, site))
    : { beside: await phase('beside', seconds), full: null };
  const operations = await hostile.ask('end', null, OPERATION_COUNTS);
  const peaks = memory.stop();
  const used = disk?.stop() ?? null;
  await hostile[Symbol.asyncDispose]();
  const ended = relays.filter(({ proc }) => !proc.alive).map(({ name, proc }) => `${name}: ${proc.complaint()}`);
  // Restarted, so that the check afterwards sees only what was recorded.
  if (full !== null && data !== null && ended.length === 0) ended.push(...(await startAgain(relays, honest)));
  const wholeness = await honest.ask('whole', null, WHOLENESS, CHECK_MS);
  return { attack: name, mode, alone, beside, full, wholeness, operations, memory: peaks, disk: used, ended };
}

/** Measures the honest user before, during and after the time in which the store is full. */
async function phasesAround(
  phase: (name: string, seconds: number) => Promise<Phase>,
  seconds: number,
  fill: () => Promise<FullTime>,
): Promise<Pick<Episode, 'beside' | 'full'>> {
  const before = await phase('beside', seconds / 2);
  const full = await fill();
  return { beside: phasesTogether(before, await phase('after', seconds / 2)), full };
}

/**
 * Kills the relays and starts them again from their recorded data. Returns why a relay did not start; empty if all did.
 */
async function startAgain(relays: readonly Relay[], honest: Pick<Child, 'ask'>): Promise<readonly string[]> {
  try {
    for (const relay of relays) {
      await relay.proc.kill();
      await relay.restart();
    }
    await honest.ask('ready', null, z.null(), READY_MS);
    return [];
  } catch (error) {
    return [String(error)];
  }
}

type StartedSite = {
  readonly relays: readonly Relay[];
  /** The path of the data directory; null if there is none. */
  readonly data: string | null;
  readonly filler: Filler;
};

/** Starts the relays and their store. They end with `ends`. */
async function startSite(
  { mode, isFilled = false, source, env }: EpisodeOptions,
  attack: Attack,
  ends: AsyncDisposableStack,
): Promise<StartedSite> {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-neighbours-'));
  ends.defer(() => rmSync(folder, { recursive: true, force: true }));
  const isOverRedis = mode === 'shared' || mode === 'owned';
  const redis = isOverRedis ? ends.adopt(await startRedis(), (server) => server.stop()) : null;
  const disk = mode === 'directory' && isFilled ? ends.use(makeSmallDisk(DISK_BYTES)) : null;
  const data = mode === 'directory' ? (disk?.path ?? join(folder, 'data')) : null;
  const all = {
    CALLBOARD_LOG_LEVEL: 'error',
    ...(redis && { CALLBOARD_DURABILITY: 'memory', CALLBOARD_STORE: mode === 'owned' ? 'owned' : 'redis' }),
    ...(data !== null && { CALLBOARD_DATA_DIR: data }),
    ...attack.env,
    ...env,
  };
  const of = { folder, redisUrl: redis?.url ?? null, namespace: 'neighbours', source, env: all };
  const relays = await Promise.all(
    (redis ? ['a', 'b'] : ['a']).map(async (name) =>
      ends.adopt(await startRelay({ name, ...of, descriptors: attack.descriptors }), ({ proc }) => proc.kill()),
    ),
  );
  const filler = disk ? fillerOfDisk(disk) : redis ? fillerOfRedis(redis.url) : null;
  return { relays, data, filler };
}

/** Samples the size of a data directory, without large payloads and the audit, until the sampling is stopped. */
function watchDisk(root: string) {
  let use: DiskUse = { peak: 0, snapshot: 0 };
  const sizeOf = (name: string): number => statSync(join(root, name), { throwIfNoEntry: false })?.size ?? 0;
  const timer = setInterval(() => {
    const names = readdirSync(root);
    const sum = names
      .filter((name) => /^(journal|snapshot|reserve)/.test(name))
      .reduce((all, one) => all + sizeOf(one), 0);
    const snapshots = names.filter((name) => name.startsWith('snapshot')).map(sizeOf);
    use = { peak: Math.max(use.peak, sum), snapshot: Math.max(use.snapshot, ...snapshots) };
  }, MEMORY_MS);
  return {
    stop(): DiskUse {
      clearInterval(timer);
      return use;
    },
  };
}

/** Samples the resident memory of each relay until the sampling is stopped. */
function watchMemory(relays: readonly Relay[]) {
  const read = (): number[] => relays.map(({ proc }) => memoryOf(proc.pid) ?? 0);
  const base = read();
  let peak = base;
  const timer = setInterval(() => (peak = read().map((now, i) => Math.max(now, peak[i] ?? 0))), MEMORY_MS);
  return {
    stop(): Episode['memory'] {
      clearInterval(timer);
      return base.map((base, i) => ({ base, peak: peak[i] ?? 0 }));
    },
  };
}
