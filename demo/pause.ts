/** Makes the demo wait: at a faster pace, for shorter times. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Waits `ms` milliseconds divided by the tempo. If the signal is aborted, rejects at once with an AbortError. */
export type Pause = (ms: number, signal?: AbortSignal) => Promise<void>;

/** Creates a function that waits at this tempo: 1 is the default speed, and 5 is five times as fast. */
export function pauseAt(tempo: number): Pause {
  return (ms, signal) => sleep(ms / tempo, undefined, signal ? { signal } : {});
}

/** Returns a random time between 75 and 125 percent of `ms`, so that the demo is not regular. */
export function roughly(ms: number): number {
  return ms * (0.75 + Math.random() / 2);
}
