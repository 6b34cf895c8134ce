/** Plays scenes at random, which makes the demo's traffic. */
import { randomUUID } from 'node:crypto';
import { CallerError, createHttpCaller, createLinkCaller, type Caller } from '../clients/caller/index.ts';
import type { Log } from '../core/log.ts';
import { createIngest } from './ingest.ts';
import { pauseAt, roughly } from './pause.ts';
import { connectUrl, type Relay } from './relay.ts';
import { ALICE } from './scenes/alice.ts';
import { BOB } from './scenes/bob.ts';
import { CAROL } from './scenes/carol.ts';
import type { Scene, SceneContext } from './scenes/scene.ts';

export type TrafficOptions = {
  readonly relay: Relay;
  /** The number of scenes per second. */
  readonly pace: number;
  readonly tempo: number;
  readonly log: Log;
};

/** The most scenes that run at the same time. */
const AT_ONCE = 24;
const PROGRAM: readonly Scene[] = [...ALICE, ...BOB, ...CAROL].flatMap(([times, scene]) => Array(times).fill(scene));

/** Plays the scenes in random order until it is disposed of. After the disposal, no call is pending. */
export function startTraffic(options: TrafficOptions): AsyncDisposable {
  const { pace, tempo, log } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const callers = createCallers(options.relay);
  const stage: SceneContext = {
    caller: (userId) => callers.get(userId) ?? neverCast(userId),
    ingest: createIngest(options.relay, signal),
    pause: pauseAt(tempo),
    signal,
    id: (kind) => `${kind}-${randomUUID()}`,
  };
  const playing = new Set<Promise<void>>();
  const play = (scene: Scene): void => {
    const done = playScene(scene, stage, log).finally(() => playing.delete(done));
    playing.add(done);
  };
  const beat = (): Promise<void> => pauseAt(pace)(roughly(1000), signal);
  const over = playAll({ play, beat, isFull: () => playing.size >= AT_ONCE }).catch(() => {});
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.all([...callers.values()].map((caller) => caller.close()));
      await Promise.all([over, ...playing]);
    },
  };
}

/** Creates the callers of the users: alice's over HTTP, the others' over links. */
function createCallers({ url, token }: Relay): ReadonlyMap<string, Caller> {
  return new Map([
    ['alice', createHttpCaller({ url, token: () => token('alice') })],
    ['bob', createLinkCaller({ url: connectUrl(url), token: () => token('bob') })],
    ['carol', createLinkCaller({ url: connectUrl(url), token: () => token('carol') })],
  ]);
}

type Play = { play(scene: Scene): void; beat(): Promise<void>; isFull(): boolean };

/**
 * Plays scenes until `beat` rejects. Each round contains the whole program, so that every scene is played regularly.
 */
async function playAll({ play, beat, isFull }: Play): Promise<never> {
  let round: Scene[] = [];
  for (;;) {
    if (!isFull()) {
      if (round.length === 0) round = shuffled(PROGRAM);
      const scene = round.pop();
      if (scene) play(scene);
    }
    await beat();
  }
}

/** Plays one scene. A refusal (CallerError) is expected. Any other error is a fault of the demo and is logged. */
async function playScene(scene: Scene, stage: SceneContext, log: Log): Promise<void> {
  try {
    await scene(stage);
  } catch (error) {
    if (!(error instanceof CallerError) && !stage.signal.aborted) log.warn({ error }, 'a scene of the demo failed');
  }
}

function shuffled(scenes: readonly Scene[]): Scene[] {
  return scenes
    .map((scene) => ({ scene, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ scene }) => scene);
}

function neverCast(userId: string): never {
  throw new RangeError(`The demo has no user ${userId}.`);
}
