import type { Caller, Target } from '../../clients/caller/index.ts';
import type { DemoEvent } from '../ingest.ts';
import type { Pause } from '../pause.ts';

/** What a scene plays with. Everything of it ends when `signal` is aborted. */
export type Stage = {
  /** A caller as this user, over whichever way the user prefers. */
  caller(userId: string): Caller;
  /** Sends events of this user. Rejects unless each was retained, now or before. */
  ingest(userId: string, events: readonly DemoEvent[]): Promise<void>;
  readonly pause: Pause;
  readonly signal: AbortSignal;
  /** A new id of this kind, never given twice. */
  id(kind: string): string;
};

/** A few calls that belong together. It may reject: a refusal is as good an end as any. */
export type Scene = (stage: Stage) => Promise<unknown>;

/** Scenes and how often each is played in one round. */
export type Program = readonly (readonly [times: number, scene: Scene])[];

export function target(userId: string, clientId: string, action: string): Target {
  return { userId, clientId, action };
}

export function pick<T>(first: T, ...others: readonly T[]): T {
  return others[Math.floor(Math.random() * (others.length + 1))] ?? first;
}
