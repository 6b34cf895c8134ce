/** Repeatedly pauses and resumes calls at the relays of a run, as an administrator over REST. */
import { isRecord } from '../../../src/core/json.ts';
import { between, pick, seeded } from '../../lib/random.ts';
import type { Cover } from '../log/events.ts';
import type { FaultLog } from '../log/log.ts';
import { ADMIN_TOKEN, type Relay } from '../processes/relays.ts';
import type { World } from '../world.ts';
import { given, sleep, until } from './act.ts';

/**
 * The timeout for an answer of a relay, in milliseconds. It is long, because a stopped relay answers only when it
 * continues.
 */
const ANSWER_MS = 60_000;
/** The timeout for ending a pause while relays are killed, in milliseconds. */
const END_MS = 60_000;
/** The interval between attempts to end a pause, in milliseconds. */
const AGAIN_MS = 100;

/** Sends a relay a request as an administrator. Rejects unless the answer is successful. */
export async function askAdmin(
  { url }: Pick<Relay, 'url'>,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body?: object,
): Promise<Readonly<Record<string, unknown>>> {
  const headers = {
    authorization: `Bearer ${ADMIN_TOKEN}`,
    'content-type': 'application/json',
    connection: 'close',
  };
  const signal = AbortSignal.timeout(ANSWER_MS);
  const answer = await fetch(`${url}${path}`, { method, headers, signal, ...(body && { body: JSON.stringify(body) }) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return JSON.parse(text);
}

export function textsIn(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.map(String) : [];
}

/** Returns a relay that is running, as far as this program knows. */
export function aliveOf({ relays }: Pick<World, 'relays'>, random: () => number): Relay {
  return pick(
    random,
    relays.filter(({ proc }) => proc.alive && !proc.isPaused),
  );
}

/** Draws which calls to pause: those of a user, a client or an action, or all calls. */
export function drawCover(random: () => number, { who }: Pick<World, 'who'>): Cover {
  const { user, client } = pick(random, who);
  const covers: readonly Cover[] = [
    { user_id: user },
    { user_id: user, client_id: client },
    { user_id: user, action: 'wo*' },
    { action: 'r*t' },
    { all: true },
  ];
  return pick(random, covers);
}

/**
 * Pauses calls at a relay. `name`: the reason of the pause, which is unique in the run. Rejects if the answer is lost.
 */
export async function pauseCalls(
  relay: Relay,
  { name, cover }: { readonly name: string; readonly cover: Cover },
  log: FaultLog,
): Promise<void> {
  log.write({ event: 'pause-asked', name, relay: relay.name, cover });
  const receipt = await askAdmin(relay, 'POST', '/pauses', { ...cover, reason: name });
  const pauseId = String(receipt['pause_id']);
  const silent = textsIn(receipt['silent']);
  log.write({ event: 'pause-answered', name, pauseId, partial: receipt['partial'] === true, silent });
}

/**
 * Ends a pause by its name. It repeats this until all relays have answered with lists that do not contain the pause,
 * and throws if that does not happen in time.
 */
export async function resumeCalls(world: World, name: string, log: FaultLog): Promise<void> {
  log.write({ event: 'resume-asked', name });
  const isOver = await until(() => endOnce(given(world.relays.find(({ proc }) => proc.alive)), name), END_MS, AGAIN_MS);
  if (!isOver) throw new Error(`the pause ${name} does not end`);
  log.write({ event: 'resumed', name });
}

/** Ends a pause if it is listed. Resolves with whether the pause certainly no longer exists. */
async function endOnce(relay: Relay, name: string): Promise<boolean> {
  const page = await askAdmin(relay, 'GET', '/pauses?limit=1000');
  const items: readonly unknown[] = Array.isArray(page['items']) ? page['items'] : [];
  const found = items.filter(isRecord).filter(({ reason }) => reason === name);
  for (const { pause_id: id } of found) await askAdmin(relay, 'DELETE', `/pauses/${String(id)}`);
  const { completeness } = page;
  return found.length === 0 && isRecord(completeness) && completeness['complete'] === true;
}

/**
 * The number of people who pause calls at the same time, how long they wait before the next pause, and how long a pause
 * lasts, in milliseconds.
 */
const PEOPLE = 3;
const IDLE_MS = [500, 3_000] as const;
const HOLD_MS = [100, 800] as const;
/**
 * The interval at which people check whether a relay is stopped, and how long after that they pause calls, in
 * milliseconds.
 */
const LOOK_MS = 50;
const STOPPED_MS = 150;

type People = { readonly log: FaultLog; readonly seed: number; readonly isOver: () => boolean };

/**
 * Repeatedly pauses and resumes calls, in particular soon after a relay was stopped. Resolves when the run is over and
 * nothing is paused.
 */
export async function pauseAgainAndAgain(world: World, { log, seed, isOver }: People): Promise<void> {
  const ending: Promise<void>[] = [];
  const one = async (person: number): Promise<void> => {
    const random = seeded(seed + person);
    for (let n = 1; !isOver(); n++) {
      const name = `pause ${n} of person ${person}`;
      const isStopped = await until(
        async () => world.relays.some(({ proc }) => proc.isPaused),
        between(random, ...IDLE_MS),
        LOOK_MS,
      );
      // For this, the pause must cover only one user. The user may have another owner; then only the stopped relay does
      // not answer.
      const cover = isStopped ? { user_id: pick(random, world.who).user } : drawCover(random, world);
      if (isStopped) await sleep(STOPPED_MS);
      const holdMs = between(random, ...HOLD_MS);
      // Ignored: an answer that is lost with its relay promises nothing.
      await pauseCalls(aliveOf(world, random), { name, cover }, log).catch(() => {});
      await sleep(holdMs);
      // Not awaited here. While an owner is gone, it takes long until it is certain that the pause has ended.
      const over = resumeCalls(world, name, log);
      over.catch(() => {});
      ending.push(over);
    }
  };
  await Promise.all(Array.from({ length: PEOPLE }, (_, person) => one(person + 1)));
  await Promise.all(ending);
}
