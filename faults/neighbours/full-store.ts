/** Fills the store of an episode's relays for a while: the disk of a data directory, or the memory of Redis. */
import { Redis } from 'ioredis';
import { z } from 'zod';
import type { Child } from '../lib/child.ts';
import { NOT_MOUNTED, type SmallDisk } from '../outages/processes/small-disk.ts';
import { HELD, PHASE } from './figures.ts';
import type { Site } from './site.ts';
import type { FullTime } from './verdict.ts';

/** A store that can be without room. Null: it cannot be filled on this machine. */
export type Filler = { fill(): Promise<void>; free(): Promise<void> } | null;

/** How long the store is full at least, in milliseconds, and how long the honest user works before and after it. */
const FULL_MS = 5_000;
const MARGIN_MS = 1_000;
/** The time after which the handlers that are in progress end, in milliseconds since the store became full. */
const RELEASE_MS = 2_000;
/** How long the relays may take to notice that the store is full, and that there is room again, in milliseconds. */
const NOTICED_MS = 30_000;
const ROOM_MS = 10_000;
/** The interval at which /readyz is read, and how long its answer may take, in milliseconds. */
const READY_EACH_MS = 100;
const READY_MS = 2_000;
/** How long the commands that are in progress may take to begin and to end, in milliseconds. */
const HELD_MS = 60_000;
/** The limit of Redis while it is full, in bytes. It uses more, so it has no room for anything. */
const NO_MEMORY = '1mb';

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Fills a disk. */
export function fillerOfDisk(disk: SmallDisk): Filler {
  if (!disk.mounted) return null;
  const set = (full: boolean): Promise<void> =>
    disk.setFull(full) ? Promise.resolve() : Promise.reject(new Error('the size of the disk cannot be changed'));
  return { fill: () => set(true), free: () => set(false) };
}

/** Takes all memory from a Redis that evicts nothing, or gives it back. */
export function fillerOfRedis(url: string): Filler {
  const limitTo = async (memory: string): Promise<void> => {
    const redis = new Redis(url);
    await redis.config('SET', 'maxmemory', memory);
    redis.disconnect();
  };
  return { fill: () => limitTo(NO_MEMORY), free: () => limitTo('0') };
}

/**
 * Fills the store while the honest user works and has commands in progress, whose handlers end while it is full. Frees
 * it, and waits until each relay says that it has room.
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

/** Resolves when the store has been full for long enough and a relay has said so: whether it has. */
async function watchFull(site: Site): Promise<boolean> {
  const began = performance.now();
  let seen = false;
  while (performance.now() - began < (seen ? FULL_MS : NOTICED_MS)) {
    seen ||= (await readyOf(site)).includes('store_full');
    await sleep(READY_EACH_MS);
  }
  return seen;
}

/** Waits until every relay is ready, and returns how long that took, in milliseconds; null if it took longer. */
async function roomAfter(site: Site): Promise<number | null> {
  const began = performance.now();
  while ((await readyOf(site)).some((code) => code !== null)) {
    if (performance.now() - began > ROOM_MS) return null;
    await sleep(READY_EACH_MS);
  }
  return performance.now() - began;
}

/** Returns why each relay is not ready; null for one that is. */
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
