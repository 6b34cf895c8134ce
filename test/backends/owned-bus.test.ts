/** Tests the bus between processes that own partitions: who gets which events, whatever order their notes arrive in. */
import { describe, expect, it } from 'vitest';
import { OwnedBus } from '../../src/backends/owned/bus.ts';
import { silentLog } from '../../src/core/ports.ts';
import { FakeClock } from '../kit/clock.ts';

/** A process whose bus sends to `b.1`, and what it has sent. */
function openBus() {
  const sent: string[] = [];
  const bus = new OwnedBus({
    ...{ process: 'a.1', alive: () => new Map([['b.1', '']]), clock: new FakeClock(), log: silentLog },
    send: (_process, text) => sent.push(text),
  });
  const listens = (number: number, ...kinds: readonly string[]): void =>
    bus.receive('b.1', JSON.stringify({ kind: 'listens', kinds, number }));
  return { bus, sent, listens };
}

describe('the bus of owners', () => {
  it('follows the newest note of a process, although an older one arrives after it', () => {
    const { bus, sent, listens } = openBus();
    listens(2, 'command');
    listens(1);
    sent.length = 0;
    bus.bus.publish('command:x', { key: { userId: 'alice', clientId: 'tab', commandId: 'c' }, progress: null });
    expect(sent).toHaveLength(1);
    listens(3);
    expect(bus.bus.hasSubscribers('command')).toBe(false);
  });

  it('takes a note again that was sent twice', () => {
    const { bus, listens } = openBus();
    listens(0);
    listens(1, 'command');
    listens(1, 'command');
    expect(bus.bus.hasSubscribers('command')).toBe(true);
  });
});
