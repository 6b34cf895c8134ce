/** Fills the store of an episode's relays for a while: the disk of a data directory, or the memory of Redis. */
import { Redis } from 'ioredis';
import { z } from 'zod';
import type { Child } from '../lib/child.ts';
import { NOT_MOUNTED, type SmallDisk } from '../outages/processes/small-disk.ts';
import { HELD, PHASE } from './figures.ts';
import type { Site } from './site.ts';
import type { FullTime } from './verdict.ts';

/** Fills a store and frees it again. Null: the store cannot be filled on this machine. */
export type Filler = { fill(): Promise<void>; free(): Promise<void> } | null;

/** How long the store is full at least, and how long the honest user works before and after it, in milliseconds. */
const FULL_MS = 5_000;
const MARGIN_MS = 1_000;
/** The time after which handlers in progress end, in milliseconds after the store became full. */
const RELEASE_MS = 2_000;
/** The timeouts for the relays to notice that the store is full, and that it has room again, in milliseconds. */
const NOTICED_MS = 30_000;
const ROOM_MS = 10_000;
/** The interval at which /readyz is requested, and the timeout of its answer, in milliseconds. */
const READY_EACH_MS = 100;
const READY_MS = 2_000;
/** The timeout for the commands in progress to begin and to end, in milliseconds. */
const HELD_MS = 60_000;
/** The memory limit of a full Redis. Redis already uses more, so it has no room for anything. */
const NO_MEMORY = '1mb';

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Fills a disk. */
export function fillerOfDisk(disk: SmallDisk): Filler {
  if (!disk.mounted) return null;
  const set = (full: boolean): Promise<void> =>
    disk.setFull(full) ? Promise.resolve() : Promise.reject(new Error('the size of the disk cannot be changed'));
  return { fill: () => set(true), free: () => set(false) };
}

/** Takes all memory from a Redis that evicts nothing, and gives the memory back. */
export function fillerOfRedis(url: string): Filler {
  const limitTo = async (memory: string): Promise<void> => {
    const redis = new Redis(url);
    await redis.config('SET', 'maxmemory', memory);
    redis.disconnect();
  };
  return { fill: () => limitTo(NO_MEMORY), free: () => limitTo('0') };
}

/**
 * Fills the store while the honest user works and has commands in progress, whose handlers end while the store is full.
 * Then frees it, and waits until each relay reports that it has room.
 */
export async function passFull(filler: Filler, honest: Pick<Child, 'ask'>, site: Site): Promise<FullTime> {
  if (filler === null) return { skipped: NOT_MOUNTED };
  await honest.ask('hold', null, z.null(), HELD_MS);
  const length = FULL_MS + 2 * MARGIN_MS;
  const options = { name: 'full', seconds: length / 1000, isFull: true };
  const [during, { held, noticed, roomMs }] = await Promise.all([
    honest.ask('phase', options, PHASE, length + HELD_MS),
    fillOnce(filler, honest, site),
  ]);
  return { skipped: null, during, held, noticed, roomMs };
}

async function fillOnce(filler: NonNullable<Filler>, honest: Pick<Child, 'ask'>, site: Site) {
  await sleep(MARGIN_MS);
  await filler.fill();
  const [held, noticed] = await Promise.all([
    sleep(RELEASE_MS).then(() => honest.ask('release', null, HELD, HELD_MS)),
    watchFull(site).then(async (seen) => {
      await filler.free();
      return seen;
    }),
  ]);
  return { held, noticed, roomMs: await roomAfter(site) };
}

/** Waits until the store has been full for long enough, and returns whether a relay has reported it. */
async function watchFull(site: Site): Promise<boolean> {
  const began = performance.now();
  let seen = false;
  while (performance.now() - began < (seen ? FULL_MS : NOTICED_MS)) {
    seen ||= (await readyOf(site)).includes('store_full');
    await sleep(READY_EACH_MS);
  }
  return seen;
}

/** Waits until all relays are ready, and returns how long that took in milliseconds; null if it took too long. */
async function roomAfter(site: Site): Promise<number | null> {
  const began = performance.now();
  while ((await readyOf(site)).some((code) => code !== null)) {
    if (performance.now() - began > ROOM_MS) return null;
    await sleep(READY_EACH_MS);
  }
  return performance.now() - began;
}

/** Returns for each relay why it is not ready; null if it is ready. */
function readyOf({ urls }: Site): Promise<readonly (string | null)[]> {
  return Promise.all(
    urls.map(async (url) => {
      try {
        const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(READY_MS) });
        const { code } = z.object({ code: z.string().nullable().default(null) }).parse(await response.json());
        return response.status === 200 ? null : (code ?? String(response.status));
      } catch (error) {
        return String(error);
      }
    }),
  );
}
