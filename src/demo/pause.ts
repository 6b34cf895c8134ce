import { setTimeout as sleep } from 'node:timers/promises';

/** Waits so many milliseconds, divided by the demo's tempo. Rejects with an AbortError as soon as the signal is aborted. */
export type Pause = (ms: number, signal?: AbortSignal) => Promise<void>;

/** Tempo 1 is the demo's calm pace; 5 is five times as fast. */
export function pauseAt(tempo: number): Pause {
  return (ms, signal) => sleep(ms / tempo, undefined, signal ? { signal } : {});
}

/** Between three quarters and five quarters of it: nothing in the demo happens like clockwork. */
export function roughly(ms: number): number {
  return ms * (0.75 + Math.random() / 2);
}
