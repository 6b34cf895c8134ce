/** Tests the figures of the process that a node reports. */
import { expect, it } from 'vitest';
import { systemProcess } from '../../src/platform/system.ts';

/** How long the event loop is blocked, in milliseconds. */
const BLOCKED_MS = 80;

it('are its resident memory, and how late its event loop ran since they were read before', async () => {
  systemProcess.take();
  const began = performance.now();
  while (performance.now() - began < BLOCKED_MS);
  const delay = await measured();
  expect(delay).toBeGreaterThan(BLOCKED_MS / 2);
  expect(systemProcess.take().memoryBytes).toBeGreaterThan(1_000_000);
});

/** Reads the figures until the timer that measures the delay has run. */
async function measured(): Promise<number> {
  for (;;) {
    await new Promise((resolve) => setImmediate(resolve));
    const { loopDelayMs } = systemProcess.take();
    if (loopDelayMs !== null) return loopDelayMs;
  }
}
