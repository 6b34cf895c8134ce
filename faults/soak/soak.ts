/** Runs a relay under steady load and samples its heap, to find memory that is never freed. */
import { passTime } from '../lib/pass-time.ts';
import { startRelay, type Relay } from '../lib/relay.ts';
import { openLoad, type Load } from './load.ts';
import type { Sample } from './slope.ts';

export type SoakOptions = {
  readonly minutes: number;
  /** The number of calls per second of real time. */
  readonly rate: number;
  /** The number of minutes between two samples of the heap. */
  readonly everyMinutes: number;
  /**
   * How long ended commands, their results and history are kept, in milliseconds. A deployment keeps them for an hour
   * by default; these runs keep them for less.
   */
  readonly hourMs: number;
  readonly source?: string | undefined;
  readonly onSample?: (sample: Sample) => void;
};

export type Soaked = {
  readonly samples: readonly Sample[];
  readonly calls: number;
  /** The number of requests that were repeated because their connection broke. */
  readonly resent: number;
  /** The first calls that did not end with their result, and the first errors that the relay logged, as text. */
  readonly wrong: readonly string[];
};

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const MIB = 1024 * 1024;

/**
 * Runs a relay in direct mode with the system clock under a steady load of calls. Ended commands, results and history
 * are kept for `hourMs`. History is also limited to 64 MiB.
 */
export async function soak({ minutes, rate, everyMinutes, hourMs, source, onSample }: SoakOptions): Promise<Soaked> {
  const config = { retentionMs: hourMs, idempotencyWindowMs: hourMs, historyMaxBytes: 64 * MIB };
  await using relay = await startRelay({ clock: 'real', config, ...(source !== undefined && { source }) });
  await using load = await openLoad(relay, rate);
  const samples: Sample[] = [];
  const began = performance.now();
  for (let minute = everyMinutes; minute <= minutes + 1e-9; minute += everyMinutes) {
    await new Promise((done) => setTimeout(done, Math.max(0, began + minute * MINUTE_MS - performance.now())));
    const sample = await look(relay, load, minute);
    samples.push(sample);
    onSample?.(sample);
  }
  // Calls that are in progress end first, because closing their callers would fail them.
  await load.finish();
  return ended(load, samples);
}

async function look(relay: Relay, load: Load, minute: number): Promise<Sample> {
  const { worstMs, stalledMs, errors } = await relay.turns();
  for (const error of errors) load.note(`logged: ${error}`);
  const { heap, rss } = await relay.memory();
  return { minute, heapBytes: heap, rssBytes: rss, calls: load.calls, worstTurnMs: worstMs, stalledMs };
}

function ended({ calls, resent, wrong }: Load, samples: readonly Sample[]): Soaked {
  return { samples, calls, resent, wrong };
}

export type RoundsOptions = {
  readonly rounds: number;
  readonly callsOfRound: number;
  readonly source?: string | undefined;
};

/**
 * Runs a shorter soak for any machine. Each round makes this many calls, moves the relay's clock forward by more than
 * an hour, and samples the heap. A round counts as a minute.
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
    samples.push(await look(relay, load, round));
  }
  return ended(load, samples);
}
