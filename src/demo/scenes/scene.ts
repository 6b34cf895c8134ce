/** Defines what a scene of the demo is, and what it may use. */
import type { Caller, Target } from '../../clients/caller/index.ts';
import type { DemoEvent } from '../ingest.ts';
import type { Pause } from '../pause.ts';

/** What a scene may use. Everything ends when `signal` is aborted. */
export type SceneContext = {
  /** Returns the user's caller, over HTTP or over a link. */
  caller(userId: string): Caller;
  /** Sends events of this user. Rejects unless each was retained, now or earlier. */
  ingest(userId: string, events: readonly DemoEvent[]): Promise<void>;
  readonly pause: Pause;
  readonly signal: AbortSignal;
  /** Returns a new unique id that begins with `kind`. */
  id(kind: string): string;
};

/** A few related calls. A scene may reject with a refusal. */
export type Scene = (stage: SceneContext) => Promise<unknown>;

/** Scenes, and how many times each is played in one round. */
export type Program = readonly (readonly [times: number, scene: Scene])[];

export function target(userId: string, clientId: string, action: string): Target {
  return { userId, clientId, action };
}

export function pick<T>(first: T, ...others: readonly T[]): T {
  return others[Math.floor(Math.random() * (others.length + 1))] ?? first;
}
