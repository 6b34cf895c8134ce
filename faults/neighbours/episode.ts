/**
 * Runs one attack beside an honest user, with its own relays and its own Redis, and collects what the honest user
 * measured.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { memoryOf } from '../outages/processes/processes.ts';
import { startRelay, type Relay } from '../outages/processes/relays.ts';
import { startRedis, type RedisServer } from '../../test/kit/redis.ts';
import { startChild } from '../lib/child.ts';
import { attackOf } from './attacks/attacks.ts';
import type { Attack } from './attacks/attack.ts';
import { OPERATION_COUNTS, PHASE, WHOLENESS } from './figures.ts';
import type { Site } from './site.ts';
import type { Episode } from './verdict.ts';

export type EpisodeOptions = {
  readonly attack: string;
  readonly mode: 'direct' | 'shared';
  /**
   * How long the attack lasts, in seconds. `aloneSeconds`: how long the honest user is measured alone before the
   * attack.
   */
  readonly seconds: number;
  readonly aloneSeconds: number;
  /** The folder of the relays' sources. Absent: those of this project. */
  readonly source?: string | undefined;
  /** The settings of the relays, as variables of their environment. */
  readonly env?: Readonly<Record<string, string>>;
};

/** The interval at which the memory of the relays is read, in milliseconds. */
const MEMORY_MS = 250;
/** The longest time that a phase may exceed its length, in milliseconds: its last call may wait that long. */
const REST_MS = 60_000;
/** The time limit of what an attack stores before it begins, in milliseconds. */
const PREPARE_MS = 180_000;
/** The time limit of the check of the honest user's data, in milliseconds. The check repeats each command. */
const CHECK_MS = 600_000;
const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** Runs one attack on separate relays, beside an honest user. */
export async function runEpisode(options: EpisodeOptions): Promise<Episode> {
  const { attack: name, mode, seconds, aloneSeconds } = options;
  const attack = attackOf(name);
  const folder = mkdtempSync(join(tmpdir(), 'callboard-neighbours-'));
  const redis = mode === 'shared' ? await startRedis() : null;
  const relays = await startRelays(options, attack, { folder, redis });
  try {
    const site: Site = { urls: relays.map(({ url }) => url) };
    await using honest = await startChild(file('honest.ts'), { args: [JSON.stringify(site)] });
    const phase = (name: string, seconds: number) =>
      honest.ask('phase', { name, seconds }, PHASE, seconds * 1000 + REST_MS);
    await honest.ask('ready', null, z.null());
    const alone = await phase('alone', aloneSeconds);
    await honest.ask('note', null, z.null(), CHECK_MS);
    const memory = watchMemory(relays);
    await using hostile = await startChild(file('hostile.ts'), { args: [JSON.stringify(site), name] });
    await hostile.ask('begin', null, z.null(), PREPARE_MS);
    const beside = await phase('beside', seconds);
    const operations = await hostile.ask('end', null, OPERATION_COUNTS);
    const peaks = memory.stop();
    await hostile[Symbol.asyncDispose]();
    const wholeness = await honest.ask('whole', null, WHOLENESS, CHECK_MS);
    const ended = relays.filter(({ proc }) => !proc.alive).map(({ name, proc }) => `${name}: ${proc.complaint()}`);
    return { attack: name, mode, alone, beside, wholeness, operations, memory: peaks, ended };
  } finally {
    for (const { proc } of relays) await proc.kill();
    await redis?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function startRelays(
  { source, env }: EpisodeOptions,
  attack: Attack,
  { folder, redis }: { readonly folder: string; readonly redis: RedisServer | null },
): Promise<readonly Relay[]> {
  const names = redis ? ['a', 'b'] : ['a'];
  const all = { CALLBOARD_LOG_LEVEL: 'error', ...(redis && { CALLBOARD_DURABILITY: 'memory' }), ...attack.env, ...env };
  const of = { folder, redisUrl: redis?.url ?? null, namespace: 'neighbours', source, env: all };
  return Promise.all(names.map((name) => startRelay({ name, ...of, descriptors: attack.descriptors })));
}

/** Samples the resident memory of each relay until it is stopped. */
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
