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

  it('introduces itself to a process that does not know it', () => {
    const { bus, sent, listens } = openBus();
    bus.bus.subscribe('site:alice/board', () => {});
    listens(0);
    bus.receive('b.1', JSON.stringify({ kind: 'heard', kinds: ['site'], number: 1 }));
    sent.length = 0;
    bus.receive('b.1', JSON.stringify({ kind: 'listens', kinds: [], number: 0, isNew: true }));
    expect(sent).toEqual([
      JSON.stringify({ kind: 'heard', kinds: [], number: 0 }),
      JSON.stringify({ kind: 'listens', kinds: ['site'], number: 1 }),
    ]);
  });

  it('confirms what a process listens to, and says whether it has published before it knew that', () => {
    const { bus, sent, listens } = openBus();
    const heard = (): unknown => JSON.parse(sent.splice(0).at(-1) ?? '');
    listens(1, 'site');
    expect(heard()).toEqual({ kind: 'heard', kinds: ['site'], number: 1 });
    bus.bus.publish('session:s1', null);
    listens(2, 'site');
    expect(heard()).toEqual({ kind: 'heard', kinds: ['site'], number: 2 });
    bus.gone('b.1');
    listens(2, 'site');
    expect(heard()).toEqual({ kind: 'heard', kinds: ['site'], number: 2, hasPublished: true });
    listens(2, 'site');
    expect(heard()).toEqual({ kind: 'heard', kinds: ['site'], number: 2 });
  });

  it('says that events may be lost when a process confirms that has published before', () => {
    const { bus } = openBus();
    let interrupted = 0;
    bus.bus.subscribe(
      'site:alice/board',
      () => {},
      () => interrupted++,
    );
    const heard = { kind: 'heard', kinds: ['site'], number: 1 };
    bus.receive('b.1', JSON.stringify(heard));
    expect(interrupted).toBe(0);
    bus.receive('b.1', JSON.stringify({ ...heard, hasPublished: true }));
    expect(interrupted).toBe(1);
  });

  it('says that it is new to a process that it knows nothing of, also after it has taken that for dead', () => {
    const { bus, sent, listens } = openBus();
    const told = (): unknown[] => sent.splice(0).map((text) => JSON.parse(text).isNew);
    bus.joined('b.1');
    expect(told()).toEqual([true]);
    listens(1, 'command');
    sent.length = 0;
    bus.joined('b.1');
    expect(told()).toEqual([undefined]);
    bus.gone('b.1');
    bus.joined('b.1');
    expect(told()).toEqual([true]);
  });

  it('tells a process again that has not heard what it listens to, and that events may be lost until it has', () => {
    const { bus, sent } = openBus();
    let interrupted = 0;
    bus.bus.subscribe(
      'site:alice/board',
      () => {},
      () => interrupted++,
    );
    const note = JSON.stringify({ kind: 'listens', kinds: ['site'], number: 1, isNew: true });
    expect(sent).toEqual([note]);
    // The answer may be under way.
    bus.beat();
    expect(sent).toEqual([note]);
    bus.beat();
    expect(sent).toEqual([note, note]);
    expect(interrupted).toBe(0);
    bus.receive('b.1', JSON.stringify({ kind: 'heard', kinds: ['site'], number: 1 }));
    expect(interrupted).toBe(1);
    bus.beat();
    bus.beat();
    expect(sent).toEqual([note, note]);
    bus.receive('b.1', JSON.stringify({ kind: 'heard', kinds: ['site'], number: 1 }));
    expect(interrupted).toBe(1);
  });
});
