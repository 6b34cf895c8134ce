/** Makes the pauses of the demo, which are shorter at a faster pace. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Waits `ms` milliseconds divided by the demo's tempo. Rejects with an AbortError as soon as the signal is aborted. */
export type Pause = (ms: number, signal?: AbortSignal) => Promise<void>;

/** Returns a function that makes pauses at this tempo: 1 is the default speed, and 5 is five times as fast. */
export function pauseAt(tempo: number): Pause {
  return (ms, signal) => sleep(ms / tempo, undefined, signal ? { signal } : {});
}

/** Returns a random time from 75 to 125 percent of `ms`, so that the demo is not regular. */
export function roughly(ms: number): number {
  return ms * (0.75 + Math.random() / 2);
}
