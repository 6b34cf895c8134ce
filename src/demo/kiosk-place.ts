/** Makes the report of the kiosk, which contains its windows and workers, and renews the windows. */
import { roughly, type Pause } from './pause.ts';
import { windowOf, type DemoPlace } from './place.ts';
import type { WorkerPool } from './worker-pool.ts';

/** The approximate time between two replacements of a worker's window, in milliseconds. */
const RENEW_EVERY_MS = 20_000;
/** How long a window without tasks stays open, in milliseconds. */
const LINGER_MS = 3_000;
const HALL = 'hall';

/** Returns what the kiosk reports: the screen in the entrance hall, and the windows of the workers. */
export function kioskPlace(pool: WorkerPool): DemoPlace {
  const screen = { contextId: 'hall-screen', windowId: HALL, title: 'Welcome' } as const;
  return {
    contexts: () => [{ ...screen, status: 'active', ownership: 'user-owned' }, ...pool.contexts()],
    windows: () => [windowOf(HALL, { focused: true, type: 'app', state: 'fullscreen' }), ...pool.windows()],
    onChange: (listener) => pool.onChange(listener),
  };
}

/**
 * Replaces the windows of workers one after the other: drains a window and opens a new one. Programs do this to bound
 * the memory that their windows leak.
 */
export async function renewDesks(pool: WorkerPool, pause: Pause, signal: AbortSignal): Promise<never> {
  for (;;) {
    await pause(roughly(RENEW_EVERY_MS), signal);
    await pool.renew(() => pause(LINGER_MS, signal));
  }
}
