/** Runs a relay under a steady load and samples its heap and its Redis, to find memory that is never freed. */
import { passTime } from '../lib/pass-time.ts';
import { startRelay, type Relay } from '../lib/relay.ts';
import { openLoad, type Load } from './load.ts';
import type { Sample } from './slope.ts';
import { startStore, type SoakStore } from './store.ts';

type SoakOptions = {
  readonly minutes: number;
  /** The number of calls per second of real time. */
  readonly rate: number;
  /** The number of minutes between two samples of the heap. */
  readonly everyMinutes: number;
  /**
   * How long ended commands, their results and history are kept, in milliseconds. A deployment keeps them for an hour
   * by default; these runs use less.
   */
  readonly hourMs: number;
  /** Whether the relay stores its data in a Redis, which the run starts. Default false: direct mode. */
  readonly shared?: boolean;
  readonly source?: string | undefined;
  readonly onSample?: (sample: Sample) => void;
};

type Soaked = {
  readonly samples: readonly Sample[];
  readonly calls: number;
  /** The number of requests that were repeated because their connection broke. */
  readonly resent: number;
  /**
   * Descriptions of the first calls that did not end with their result, and of the first errors that the relay logged.
   */
  readonly wrong: readonly string[];
  /** Sentences about counters in Redis that differed from the stored data at the end; empty in direct mode. */
  readonly miscounts: readonly string[];
};

const NAMESPACE = 'soak';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const MIB = 1024 * 1024;

/**
 * Runs a relay with the system clock under a steady load of calls. Ended commands, results and history are kept for
 * `hourMs`, and history is limited to 64 MiB.
 */
export async function soak({
  minutes,
  rate,
  everyMinutes,
  hourMs,
  shared,
  source,
  onSample,
}: SoakOptions): Promise<Soaked> {
  await using store = shared ? await startStore() : null;
  const config = {
    ...{ retentionMs: hourMs, idempotencyWindowMs: hourMs, historyMaxBytes: 64 * MIB },
    ...(store && { redis: redisOf(store) }),
  };
  await using relay = await startRelay({ clock: 'real', config, ...(source !== undefined && { source }) });
  await using load = await openLoad(relay, rate);
  const samples: Sample[] = [];
  const began = performance.now();
  for (let minute = everyMinutes; minute <= minutes + 1e-9; minute += everyMinutes) {
    await new Promise((done) => setTimeout(done, Math.max(0, began + minute * MINUTE_MS - performance.now())));
    const sample = await look({ relay, load, store }, minute);
    samples.push(sample);
    onSample?.(sample);
  }
  // Calls in progress end first, because closing their callers would make them fail.
  await load.finish();
  return ended(load, samples, (await store?.audit(NAMESPACE)) ?? []);
}

/** Returns the relay's settings for this Redis. */
function redisOf({ url }: SoakStore) {
  const legacy = { commandStream: null, pending: null };
  return {
    url,
    store: 'redis' as const,
    partitions: 1,
    durability: 'memory',
    namespace: NAMESPACE,
    strictMigration: false,
    legacy,
  };
}

type Run = { readonly relay: Relay; readonly load: Load; readonly store: SoakStore | null };

async function look({ relay, load, store }: Run, minute: number): Promise<Sample> {
  const { worstMs, stalledMs, errors } = await relay.turns();
  for (const error of errors) load.note(`logged: ${error}`);
  const { heap, rss } = await relay.memory();
  const held = (await store?.size()) ?? null;
  return { minute, heapBytes: heap, rssBytes: rss, store: held, calls: load.calls, worstTurnMs: worstMs, stalledMs };
}

function ended({ calls, resent, wrong }: Load, samples: readonly Sample[], miscounts: readonly string[] = []): Soaked {
  return { samples, calls, resent, wrong, miscounts };
}

type RoundsOptions = {
  readonly rounds: number;
  readonly callsOfRound: number;
  readonly source?: string | undefined;
};

/**
 * Runs a shorter soak, suitable for any machine. Each round makes this many calls, advances the relay's clock by more
 * than an hour, and samples the heap. A round counts as a minute.
 */
export async function soakRounds({ rounds, callsOfRound, source }: RoundsOptions): Promise<Soaked> {
  const config = { retentionMs: HOUR_MS, historyMaxBytes: 64 * MIB };
  await using relay = await startRelay({ config, ...(source !== undefined && { source }) });
  await relay.run(1);
  await using load = await openLoad(relay, 0);
  const samples: Sample[] = [];
  for (let round = 1; round <= rounds; round++) {
    await load.make(callsOfRound);
    await passTime(relay, 1.1 * HOUR_MS);
    samples.push(await look({ relay, load, store: null }, round));
  }
  return ended(load, samples);
}
