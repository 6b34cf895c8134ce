/** Tests what a node knows of the pauses that cover clients as a whole: from its store, and from events. */
import { expect, it } from 'vitest';
import { createMemoryBackend } from '../../src/backends/memory/backend.ts';
import type { Backend } from '../../src/core/backend.ts';
import { gapOf } from '../../src/core/completeness.ts';
import type { ListedPauses, Pause } from '../../src/core/pauses/pause.ts';
import { PausedClients } from '../../src/core/pauses/paused-clients.ts';
import { silentLog } from '../../src/core/ports.ts';
import { FakeClock, settle } from '../kit/clock.ts';

const TAB = { userId: 'alice', clientId: 'tab' };
const NOBODY = { userId: null, clientId: null, callerKind: null, caller: null, action: null, label: null };
const made = (pauseId: string, given: Partial<Pause> = {}): Pause => ({
  ...{ ...NOBODY, pauseId, reason: 'lunch', by: { kind: 'admin', name: 'ops' }, since: 0, until: null },
  ...{ queued: 'keep', running: 'leave' },
  ...given,
});

/** A node whose store answers a reading when the test says so. */
function opened() {
  const clock = new FakeClock();
  const readings: ((listed: ListedPauses) => void)[] = [];
  let interrupted: () => void = () => {};
  const memory = createMemoryBackend({ clock, log: silentLog, sha256: (text) => text, markSecret: '' });
  const backend: Backend = {
    ...memory,
    capabilities: { ...memory.capabilities, shared: true },
    pauses: { ...memory.pauses, list: () => new Promise((resolve) => readings.push(resolve)) },
    bus: {
      ...memory.bus,
      publish: memory.bus.publish.bind(memory.bus),
      subscribe(topic, listener, onInterrupted) {
        interrupted = onInterrupted ?? interrupted;
        return memory.bus.subscribe(topic, listener);
      },
    },
  };
  const clients = new PausedClients({ backend, clock, log: silentLog });
  const told: boolean[] = [];
  clients.onChange((concerns) => told.push(concerns(TAB)));
  clients.start();
  const answer = async (listed: ListedPauses): Promise<void> => {
    readings.shift()?.(listed);
    await settle();
  };
  const says = (change: 'paused' | 'resumed', pause: Pause): void =>
    backend.bus.publish('pauses', { change, pause, at: 0 });
  return { clock, clients, told, readings, answer, says, interrupt: () => interrupted() };
}

it('reads them at the start, after lost events, and again if a part did not answer, and tells of it', async () => {
  const { clock, clients, told, readings, answer, interrupt } = opened();
  expect(clients.of(TAB)).toBeNull();
  await answer({ rows: [made('p1')] });
  expect([clients.of(TAB)?.pauseId, told]).toEqual(['p1', [true]]);
  interrupt();
  await answer({ rows: [made('p2', { userId: 'alice' })] });
  expect([clients.of(TAB)?.pauseId, clients.of({ userId: 'bob', clientId: 'tab' })]).toEqual(['p2', null]);
  interrupt();
  await answer({ rows: [], gaps: [gapOf('delivery', 0, null, 'node_silent')] });
  expect([clients.of(TAB)?.pauseId, readings.length]).toEqual(['p2', 0]);
  await clock.advance(5_000);
  expect(readings).toHaveLength(1);
  await answer({ rows: [] });
  expect([clients.of(TAB), told]).toEqual([null, [true, true, true]]);
});

it('reads them again from time to time while it knows of some, and never while there are none', async () => {
  const { clock, clients, readings, answer, says } = opened();
  await answer({ rows: [] });
  await clock.advance(60_000);
  expect(readings).toHaveLength(0);
  says('paused', made('p1'));
  await clock.advance(30_000);
  expect(readings).toHaveLength(1);
  // It was resumed, and the event was lost.
  await answer({ rows: [] });
  expect(clients.of(TAB)).toBeNull();
  await clock.advance(60_000);
  expect(readings).toHaveLength(0);
});

it('reads again what changed during a reading, and keeps what a part without an answer may have', async () => {
  const { clock, clients, readings, answer, says, interrupt } = opened();
  const [first, second] = [made('p1'), made('p2', { until: clock.now() + 5_000 })];
  says('paused', first);
  says('paused', second);
  expect(clients.of(TAB)?.pauseId).toBe('p1');
  await answer({ rows: [] });
  expect([clients.of(TAB)?.pauseId, readings.length]).toEqual(['p1', 1]);
  await answer({ rows: [], gaps: [gapOf('delivery', 0, null, 'node_silent')] });
  expect(clients.of(TAB)?.pauseId).toBe('p1');
  says('resumed', first);
  expect(clients.of(TAB)?.pauseId).toBe('p2');
  interrupt();
  // An older answer does not bring back what has ended.
  await answer({ rows: [first, second] });
  expect(clients.of(TAB)?.pauseId).toBe('p2');
});
