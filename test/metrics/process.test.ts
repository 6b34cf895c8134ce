/** Tests the figures of the process that a node reports. */
import { expect, it } from 'vitest';
import { systemProcess } from '../../src/platform/system.ts';

/** How long the event loop is blocked, in milliseconds. */
const BLOCKED_MS = 80;

it('are its resident memory, and how late its event loop ran since they were read before', async () => {
  expect(systemProcess.take().loopDelayMs).toBe(null);
  expect(await delayWhileBlocked()).toBeGreaterThan(BLOCKED_MS / 2);
  expect(systemProcess.take().memoryBytes).toBeGreaterThan(1_000_000);
});

/** Blocks the event loop again and again, until the delay of one turn was measured. */
async function delayWhileBlocked(): Promise<number> {
  for (;;) {
    const began = performance.now();
    while (performance.now() - began < BLOCKED_MS);
    await new Promise((resolve) => setImmediate(resolve));
    const { loopDelayMs } = systemProcess.take();
    if (loopDelayMs !== null) return loopDelayMs;
  }
}
