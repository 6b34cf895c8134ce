/** Tests events of commands over both backends: who gets them, and what they cost without a subscriber. */
import { afterEach, describe, expect, it } from 'vitest';
import { createMemoryBus } from '../../src/backends/memory/bus.ts';
import type { Bus } from '../../src/core/backend.ts';
import { type Cancel, silentLog } from '../../src/core/ports.ts';
import type { Command } from '../../src/core/commands/command.ts';
import type { CommandEvent, CommandEventFilter } from '../../src/core/commands/command-event.ts';
import { CommandEvents } from '../../src/core/commands/events.ts';
import { COMMAND_EVENTS_PER_SECOND, LISTENING_ANNOUNCE_MS, LISTENING_MS } from '../../src/core/limits.ts';
import { createShares, type Holdings } from '../../src/core/shares/shares.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { redisBench } from '../contract/kit/redis-bench.ts';
import { command } from '../graphql/kit/rows.ts';
import { FakeClock } from '../kit/clock.ts';

const ANY: CommandEventFilter = { userId: null, clientId: null, action: null, clientType: null, outcomes: null };
const crypto = createCrypto('test');
type Node = {
  readonly events: CommandEvents;
  readonly published: string[];
  /** Returns how many announcements of other nodes have arrived. */
  readonly announcements: () => number;
};

/** Opens a node over this bus, and records the topic of each event that the node publishes. */
function nodeOn(bus: Bus, { nodeId, clock, shared }: { nodeId: string; clock: FakeClock; shared: boolean }): Node {
  const published: string[] = [];
  let announcements = 0;
  bus.subscribe('listening', (listening) => {
    if (listening.nodeId !== nodeId) announcements++;
  });
  const watched: Bus = {
    hasSubscribers: (kind) => bus.hasSubscribers(kind),
    subscribe: (topic, listener) => bus.subscribe(topic, listener),
    confirmed: (command) => bus.confirmed(command),
    publish(topic, event) {
      published.push(topic.split(':')[0] ?? '');
      bus.publish(topic, event);
    },
  };
  const capabilities = { shared, allWaits: !shared, exactDedupCounters: true, cheapStreamSummaries: true };
  const events = new CommandEvents({ nodeId, backend: { bus: watched, capabilities }, clock, crypto });
  return { events, published, announcements: () => announcements };
}

const heard = (
  events: CommandEvents,
  filter: Partial<CommandEventFilter> = {},
  holdings: Holdings = createShares().of('alice'),
): { got: CommandEvent[]; stop: Cancel } => {
  const got: CommandEvent[] = [];
  return { got, stop: events.listen({ ...ANY, ...filter }, (event) => got.push(event), holdings) };
};
const told = (got: readonly CommandEvent[]) => got.map(({ stage, command: { commandId } }) => `${stage} ${commandId}`);
const ended = (over: Partial<Command>): Command => command({ stage: 'terminal', outcome: 'completed', ...over });

describe('events of commands on one node', () => {
  const open = () => {
    const clock = new FakeClock();
    return { clock, ...nodeOn(createMemoryBus(silentLog), { nodeId: 'n1', clock, shared: false }) };
  };

  it('are published only if somebody listens, and only those that a filter selects', () => {
    const { events, published } = open();
    events.emit('admitted', command());
    const { got, stop } = heard(events, { userId: 'bob' });
    events.emit('admitted', command({ userId: 'ann' }));
    expect(published).toEqual([]);
    events.emit('admitted', command({ userId: 'bob' }));
    stop();
    stop();
    events.emit('dispatched', command({ userId: 'bob' }));
    expect([published, told(got)]).toEqual([['events'], ['admitted k1']]);
  });

  it('match every member of the filter', () => {
    const { events } = open();
    const failed = heard(events, { outcomes: ['failed', 'expired'] });
    const mobile = heard(events, { clientType: 'mobile', clientId: 'c2', action: 'tab.close' });
    events.emit('admitted', command({ commandId: 'a' }));
    events.emit('ended', ended({ commandId: 'b' }));
    events.emit('ended', ended({ commandId: 'c', outcome: 'failed' }));
    events.emit('late', ended({ commandId: 'd', outcome: 'expired' }));
    events.emit('admitted', command({ commandId: 'e', clientType: 'mobile', clientId: 'c2', action: 'tab.close' }));
    for (const other of [{ clientType: 'web' }, { clientId: 'c1' }, { action: 'tab.open' }] as const)
      events.emit('admitted', command({ clientType: 'mobile', clientId: 'c2', action: 'tab.close', ...other }));
    expect([told(failed.got), told(mobile.got)]).toEqual([['ended c', 'late d'], ['admitted e']]);
  });

  it('are published once for all listeners of one filter; beyond the rate they are only counted', async () => {
    const { events, published, clock } = open();
    const [first, second] = [heard(events), heard(events)];
    for (let i = 0; i < COMMAND_EVENTS_PER_SECOND + 7; i++) events.emit('admitted', command({ commandId: `c${i}` }));
    expect(published).toHaveLength(COMMAND_EVENTS_PER_SECOND);
    await clock.advance(1_000);
    events.emit('ended', ended({ commandId: 'next' }));
    for (const { got } of [first, second]) {
      expect(got).toHaveLength(COMMAND_EVENTS_PER_SECOND + 1);
      expect(got.map(({ missed }) => missed).filter((missed) => missed > 0)).toEqual([7]);
      expect(got.at(-1)).toMatchObject({ stage: 'ended', missed: 7 });
    }
  });

  it('have a bounded number of different filters for each holder; others and administrators have theirs', () => {
    const { events } = open();
    const shares = createShares();
    const { guarantee, total } = shares.bounds.feeds;
    const mallory = shares.of('mallory');
    const listen = (holder: string, client: number): Cancel =>
      heard(events, { userId: holder, clientId: `c${client}` }, shares.of(holder)).stop;
    const stops: Cancel[] = [];
    for (let i = 0; i < 1_000 && mallory.refusal('feeds', 1) === null; i++) stops.push(listen('mallory', i));
    expect(stops).toHaveLength(((total ?? 0) * 3) / 4);
    const exceeded = expect.objectContaining({ code: 'share_exceeded', details: { share: 'feeds' } });
    expect(() => listen('mallory', -1)).toThrow(exceeded);
    // A further listener with a filter that the holder listens to already takes nothing.
    const again = listen('mallory', 0);
    const used = shares.used('feeds');
    again();
    expect(shares.used('feeds')).toBe(used);
    for (let i = 0; i < guarantee; i++) listen('alice', i);
    for (const user of ['bob', 'carol', 'dave']) for (let i = 0; i < guarantee; i++) listen(user, i);
    listen('erin', 0);
    for (let i = 0; i < guarantee; i++) listen('/admin/ops', i);
    for (const stop of stops) stop();
    expect(mallory.held('feeds')).toBe(0);
    listen('mallory', 0);
  });
});

describe('events of commands between two nodes', () => {
  const closing: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  const topologies = {
    async 'one bus'() {
      const clock = new FakeClock();
      const bus = createMemoryBus(silentLog);
      const nodes = ['n1', 'n2'].map((nodeId) => nodeOn(bus, { nodeId, clock, shared: true }));
      return { nodes, clock, settle: () => clock.advance(0) };
    },
    async Redis() {
      const one = await redisBench();
      const two = await redisBench({ beside: one });
      closing.push(
        () => one.close(),
        () => two.close(),
      );
      const clock = new FakeClock();
      const nodes = [one, two].map(({ backend: { bus } }, i) => nodeOn(bus, { nodeId: `n${i}`, clock, shared: true }));
      await Promise.all([one.backend.ready(), two.backend.ready()]);
      return { nodes, clock, settle: () => clock.advance(0) };
    },
  };

  describe.each(Object.entries(topologies))('over %s', (_name, open) => {
    const opened = async () => {
      const { nodes, clock, settle } = await open();
      const [here, there] = nodes;
      if (!here || !there) throw new Error('two nodes');
      closing.push(
        () => here.events.close(),
        () => there.events.close(),
      );
      const until = async (holds: () => boolean): Promise<void> => {
        const emit = (): void => there.events.emit('admitted', command({ commandId: 'again' }));
        while (!holds()) {
          await settle();
          await new Promise((resolve) => setImmediate(resolve));
          emit();
        }
      };
      return { here, there, clock, until };
    };

    it('cost nothing until somebody on the other node listens, and nothing again after the last one has gone', async () => {
      const { here, there, until } = await opened();
      there.events.emit('admitted', command());
      expect([here.published, there.published]).toEqual([[], []]);
      const { got, stop } = heard(here.events, { userId: 'ann' });
      await until(() => got.length > 0);
      expect(got[0]).toMatchObject({ stage: 'admitted', command: command({ commandId: 'again' }) });
      expect(here.published).toEqual(['listening']);
      const before = there.published.length;
      there.events.emit('admitted', command({ userId: 'bob' }));
      expect(there.published).toHaveLength(before);
      stop();
      expect(here.published).toEqual(['listening', 'listening']);
      let last = -1;
      await until(() => {
        const quiet = there.published.length === last;
        last = there.published.length;
        return quiet;
      });
    });

    it('are announced again while somebody listens, and stop when the listening node no longer announces', async () => {
      const { here, there, clock, until } = await opened();
      const { got } = heard(here.events);
      await until(() => got.length > 0);
      await clock.advance(2 * LISTENING_ANNOUNCE_MS);
      expect(here.published).toEqual(['listening', 'listening', 'listening']);
      // The node ends without notice.
      here.events.close();
      await until(() => there.announcements() === here.published.length);
      await clock.advance(LISTENING_MS + 1);
      const before = there.published.length;
      there.events.emit('admitted', command());
      expect(there.published).toHaveLength(before);
    });
  });
});
