/** Requests to the owners of partitions: run once and in order, whatever happens to their messages. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ANY_COMMAND } from '../../src/core/commands/delivery-inspector.ts';
import { CallboardError } from '../../src/core/errors.ts';
import type { NewMessage } from '../../src/core/history/message.ts';
import { commandKeyText } from '../../src/core/ids.ts';
import { toJson } from '../../src/core/json.ts';
import { encode } from '../../src/backends/owned/encoding.ts';
import { writeMessage } from '../../src/backends/owned/transport.ts';
import { admission, ALICE, BOUND, dispatched, keyFor } from '../contract/kit/bench.ts';
import { Network, type Faults } from '../contract/kit/owned-network.ts';
import { Relays } from '../contract/kit/owned-relays.ts';
import { newMessage } from '../contract/kit/history-model.ts';
import { FakeClock } from '../kit/clock.ts';

type Opened = { readonly faults?: Partial<Faults>; readonly seed?: number };

/** Opens a relay `here` and two others, which own what `giveAll` says. One partition, so that all calls share an order. */
function open({ faults, seed = 1 }: Opened = {}) {
  const clock = new FakeClock();
  const network = new Network(seed, faults);
  const relays = new Relays({
    ...{ clock, requestClock: clock, partitions: 1 },
    join: (process) => network.join(process),
    mail: (nodeId, deliver) => network.inOrder(nodeId, deliver),
  });
  clock.alsoAwaits(() => network.quiet());
  const here = relays.open('here');
  const [one, other] = [relays.open('one'), relays.open('other')];
  relays.giveAll(['one']);
  return { clock, network, relays, here, one, other };
}

function message(id: string): NewMessage {
  return newMessage({ id, userId: 'alice', suffix: 'a', payload: toJson(id) });
}

/** The ids of the rows of a stream, in order. */
async function rows({ history }: ReturnType<typeof open>['one']): Promise<readonly string[]> {
  const filter = { afterTime: null, beforeTime: null, kinds: null };
  const scan = await history.messages('alice', 'a', filter, { first: 1000, after: null });
  return scan?.rows.map(({ row }) => row.id) ?? [];
}

const ids = (count: number): readonly string[] => Array.from({ length: count }, (_, i) => `m${i}`);

describe('requests to an owner', () => {
  it('run once and in their order, and are answered in it, while messages are late, lost, doubled and overtaken', async () => {
    const faults = fc.record({
      lost: fc.double({ min: 0, max: 0.4, noNaN: true }),
      doubled: fc.double({ min: 0, max: 0.5, noNaN: true }),
      lateTurns: fc.integer({ min: 0, max: 8 }),
    });
    await fc.assert(
      fc.asyncProperty(faults, fc.integer(), fc.integer({ min: 1, max: 20 }), async (given, seed, count) => {
        const { clock, here, one } = open({ faults: given, seed });
        const answered: string[] = [];
        const all = ids(count).map(async (id) => {
          const kept = await here.history.retain(message(id));
          answered.push(kept.id);
        });
        const settling = Promise.allSettled(all);
        // Rows that are not in order of `seq`, or that are there twice, show in the list.
        for (let at = 0; at < 14 && answered.length < count; at++) await clock.advance(1_000);
        // What has no answer by now ends without one.
        if (answered.length < count) await clock.advance(2_000);
        const settled = await settling;
        const failed = settled.filter(({ status }) => status === 'rejected').length;
        expect(answered.length + failed).toBe(count);
        const kept = await rows(one);
        expect(kept).toEqual(ids(count).filter((id) => kept.includes(id)));
        expect(answered).toEqual(ids(count).filter((id) => answered.includes(id)));
        expect(answered.every((id) => kept.includes(id))).toBe(true);
        if (given.lost === 0) expect(answered).toEqual(ids(count));
      }),
      { numRuns: 60 },
    );
  });

  it('are repeated after a second, and not before', async () => {
    const { clock, network, here } = open({ faults: { lateTurns: 0, doubled: 0 } });
    network.cut('one');
    const asked = Promise.resolve(here.history.retain(message('m0')));
    await clock.advance(999);
    expect(network.sent).toHaveLength(1);
    await clock.advance(251);
    expect(network.sent).toHaveLength(2);
    // And then after twice as long.
    await clock.advance(1_749);
    expect(network.sent).toHaveLength(2);
    network.cut('one', false);
    await clock.advance(251);
    expect((await asked).id).toBe('m0');
    await clock.advance(10_000);
    expect(network.sent.filter(({ from }) => from === 'here')).toHaveLength(3);
  });

  it('go to the new owner at once, and run here if that is this process', async () => {
    for (const next of ['other', 'here'] as const) {
      const opened = open();
      const { clock, network, relays, here } = opened;
      network.cut('one');
      const asked = ids(5).map((id) => here.history.retain(message(id)));
      await clock.advance(0);
      relays.give(0, next);
      await clock.advance(0);
      const found = await Promise.all(asked);
      expect(found.map(({ id }) => id)).toEqual(ids(5));
      expect(await rows(opened[next])).toEqual(ids(5));
    }
  });

  it('run before the calls that this process makes once it is the owner', async () => {
    const { clock, network, relays, here } = open();
    network.cut('one');
    const asked = here.history.retain(message('m0'));
    relays.give(0, 'here');
    const own = here.history.retain(message('m1'));
    await clock.advance(0);
    await Promise.all([asked, own]);
    expect(await rows(here)).toEqual(['m0', 'm1']);
  });

  it('read here only with a lease, once this process seems to be the owner', async () => {
    for (const isLost of [false, true]) {
      const { clock, network, relays, here } = open();
      network.cut('one');
      let isSettled = false;
      const asked = Promise.allSettled([rows(here)]).finally(() => (isSettled = true));
      relays.mayAnswer = false;
      relays.give(0, 'here');
      await clock.advance(0);
      expect(isSettled).toBe(false);
      // What was read may be of before another process took the partition.
      if (isLost) relays.losses++;
      relays.answer();
      await clock.advance(0);
      const [read] = await asked;
      if (isLost) expect(read).toMatchObject({ status: 'rejected', reason: { code: 'store_unavailable' } });
      else expect(read).toEqual({ status: 'fulfilled', value: [] });
    }
  });

  it('admit once when they are sent to another owner, also if the relay has made the id', async () => {
    for (const next of ['other', 'here'] as const) {
      const { clock, network, relays, here, one } = open({ faults: { lateTurns: 0, doubled: 0 } });
      const request = admission('made', { userId: 'alice', chosenId: false, connectWithinMs: 60_000 });
      const asked = Promise.resolve(here.commands.admit(request));
      // The answer is lost.
      network.cut('here');
      await clock.advance(0);
      expect((await one.commands.get([request]))[0]?.stage).toBe('admitted');
      network.cut('here', false);
      relays.give(0, next);
      await clock.advance(1_000);
      expect((await asked).kind).toBe('attached');
      const { rows: commands } = await here.inspector.list(ANY_COMMAND, { first: 10, after: null });
      expect(commands.map(({ row }) => row.commandId)).toEqual(['made']);
    }
  });

  it('publish a report where its command ends, before its answer, and once', async () => {
    const { clock, here, one } = open({ faults: { lateTurns: 0, doubled: 0 } });
    await one.commands.rebind(ALICE, BOUND, 'up');
    await dispatched({ backend: one }, 'c1');
    const told: unknown[] = [];
    here.bus.subscribe(`command:${commandKeyText(keyFor('c1'))}`, ({ progress, number }) =>
      told.push([progress, number]),
    );
    const report = { instanceId: 'i1', kind: 'progress', payload: toJson('half'), kept: null, number: 7 } as const;
    const answered = Promise.resolve(here.commands.report(keyFor('c1'), report)).then((result) => {
      told.push('answered');
      return result;
    });
    await clock.advance(0);
    expect(await answered).toMatchObject({ kind: 'recorded', isPublished: true });
    expect(told).toEqual([['"half"', 7], 'answered']);
    // The owner's own caller publishes what the store did not.
    expect(await one.commands.report(keyFor('c1'), report)).not.toHaveProperty('isPublished');
    const ignored = Promise.resolve(here.commands.report(keyFor('c1'), { ...report, instanceId: 'i9' }));
    await clock.advance(0);
    expect((await ignored).kind).toBe('ignored');
    expect(told).toHaveLength(2);
  });

  it('end at once when this process closes, and later ones are not sent', async () => {
    const { clock, network, here, one } = open({ faults: { lateTurns: 0, doubled: 0 } });
    const first = here.history.retain(message('m0'));
    await clock.advance(0);
    await first;
    network.cut('one');
    const unanswered = here.history.retain(message('m1'));
    await here.close();
    await expect(unanswered).rejects.toMatchObject({ code: 'store_unavailable' });
    network.cut('one', false);
    for (const id of ['m2', 'm3'])
      await expect(here.history.retain(message(id))).rejects.toMatchObject({ code: 'store_unavailable' });
    await clock.advance(0);
    expect(await rows(one)).toEqual(['m0']);
  });

  it('wait for an owner, and end as unavailable after 15 seconds', async () => {
    const { clock, relays, here } = open();
    relays.give(0, null);
    const [early, late] = [here.history.retain(message('m0')), here.history.retain(message('m1'))];
    const ended = Promise.allSettled([early, late]);
    await clock.advance(14_000);
    relays.give(0, 'one');
    await clock.advance(0);
    expect((await ended).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
    relays.give(0, null);
    const given = Promise.allSettled([here.history.retain(message('m2'))]);
    await clock.advance(15_250);
    const [failed] = await given;
    expect(failed).toMatchObject({ status: 'rejected', reason: { code: 'store_unavailable' } });
    // A request that was given up does not run later, and does not hold up the next one.
    relays.give(0, 'one');
    const next = Promise.resolve(here.history.retain(message('m3')));
    await clock.advance(0);
    expect((await next).id).toBe('m3');
    expect(await rows(here)).toEqual(['m0', 'm1', 'm3']);
  });

  it('are sent again at once when messages may be lost, with the ones before them first', async () => {
    const { clock, network, here, one } = open({ faults: { doubled: 0 } });
    network.cut('one');
    const asked = [here.history.retain(message('m0')), here.history.retain(message('m1'))];
    // The pause before the next repeat grows to several seconds.
    await clock.advance(5_000);
    network.cut('one', false);
    network.tellLoss('here');
    await clock.advance(0);
    expect((await Promise.all(asked)).map(({ id }) => id)).toEqual(['m0', 'm1']);
    expect(await rows(one)).toEqual(['m0', 'm1']);
  });

  it('bring back what the owner threw', async () => {
    const { clock, here } = open();
    const key = { userId: 'alice', clientId: 'tab' };
    const request = { instanceId: 'i1', nodeId: 'n1', clientType: 'browser', host: false } as const;
    const hello = { ...key, ...request, linkAttempt: 2, metadata: null, actions: [] };
    const first = here.connections.connect(hello);
    await clock.advance(0);
    expect(await first).toMatchObject({ kind: 'connected' });
    const [older] = await Promise.allSettled([here.connections.connect({ ...hello, linkAttempt: 1 })]);
    expect(older).toMatchObject({ status: 'rejected', reason: { code: 'stale_instance' } });
    expect(older.status === 'rejected' && older.reason instanceof CallboardError).toBe(true);
  });

  it('bind no instance whose hello is older than that of the client’s link, however late they arrive', async () => {
    const { clock, network, here, other } = open({ faults: { lateTurns: 0, doubled: 0 } });
    const key = { userId: 'alice', clientId: 'tab' };
    const about = { ...key, clientType: 'browser', host: false, linkAttempt: 1, metadata: null, actions: [] } as const;
    network.cut('one');
    const ended = here.connections.connect({ ...about, instanceId: 'i1', nodeId: 'n1', helloAt: clock.now() });
    const settled = Promise.allSettled([ended]);
    await clock.advance(500);
    network.cut('one', false);
    const next = other.connections.connect({ ...about, instanceId: 'i2', nodeId: 'n2', helloAt: clock.now() });
    await clock.advance(0);
    const { connection } = await next;
    await clock.advance(10_000);
    expect(await settled).toMatchObject([{ status: 'rejected', reason: { code: 'stale_instance' } }]);
    const rows = here.connections.get([key]);
    await clock.advance(0);
    expect(await rows).toEqual([connection]);
  });

  it('tell who is asked in vain, so that the owner is looked up again', async () => {
    const { clock, network, relays, here } = open();
    relays.open('gone');
    relays.give(0, 'gone');
    network.join('gone').onText((from, text) => {
      const { partition, number } = JSON.parse(text.slice(0, text.indexOf('\n'))) as {
        partition: number;
        number: number;
      };
      network.join('gone').send(from, writeMessage({ kind: 'not_owner', partition, number }, ''), null);
    });
    const asked = Promise.resolve(here.history.retain(message('m0')));
    await clock.advance(0);
    expect(relays.doubted).toContain(0);
    relays.give(0, 'one');
    await clock.advance(0);
    expect((await asked).id).toBe('m0');
  });

  it('leave once what was decided here is recorded, if they change something; answers wait for their partition', async () => {
    const { clock, network, here } = open({ faults: { doubled: 0 } });
    const asked = [here.history.retain(message('m0')), here.commands.live({ userId: 'alice', clientId: 'tab' })];
    await clock.advance(0);
    await Promise.all(asked);
    expect(network.sent.map(({ from, after }) => [from, after])).toEqual([
      ['here', 'all'],
      ['here', null],
      ['one', 0],
      ['one', 0],
    ]);
  });

  it('are refused for methods that belong to each process, and for unknown ones', async () => {
    const { clock, network } = open({ faults: { doubled: 0 } });
    const answers: string[] = [];
    const stranger = network.join('stranger');
    stranger.onText((_from, text) => void answers.push(text));
    for (const [i, [port, method]] of [
      ['nodes', 'post'],
      ['sessions', 'prefixOf'],
      ['commands', 'unknown'],
      ['constructor', 'name'],
    ].entries()) {
      const head = {
        kind: 'request',
        partition: 0,
        number: i + 1,
        oldest: 1,
        port: port ?? '',
        method: method ?? '',
      } as const;
      stranger.send('one', writeMessage(head, encode([])), null);
    }
    stranger.send('one', 'no message', null);
    await clock.advance(0);
    expect(answers).toHaveLength(4);
    for (const answer of answers) expect(answer).toMatch(/"kind":"error".*\n.*"internal"/);
  });
});

describe('a repeated request', () => {
  const ask = (number: number, oldest: number, id: string): string =>
    writeMessage(
      { kind: 'request', partition: 0, number, oldest, port: 'history', method: 'retain' },
      encode([message(id)]),
    );

  it('gets the answer that it got, as long as its process waits, and then runs no more', async () => {
    const { clock, network, one } = open({ faults: { lateTurns: 0, doubled: 0 } });
    const answers: string[] = [];
    const peer = network.join('peer');
    peer.onText((_from, text) => void answers.push(text));
    const send = async (text: string): Promise<void> => {
      peer.send('one', text, null);
      await clock.advance(0);
    };
    await send(ask(1, 1, 'm0'));
    await send(ask(1, 1, 'm0'));
    expect(answers).toHaveLength(2);
    expect(answers[0]).toBe(answers[1]);
    await send(ask(2, 2, 'm1'));
    // Its process no longer waits for this one: a copy that is late has no effect.
    await send(ask(1, 1, 'm0'));
    expect(answers).toHaveLength(4);
    expect(answers[3]).toContain('store_unavailable');
    // Nor does a copy after the answer was forgotten.
    await clock.advance(61_000);
    await send(ask(3, 2, 'm2'));
    await send(ask(2, 2, 'm1'));
    expect(answers.at(-1)).toContain('store_unavailable');
    expect(await rows(one)).toEqual(['m0', 'm1', 'm2']);
  });

  it('waits for those before it, and its process may give those up', async () => {
    const { clock, network, one } = open({ faults: { lateTurns: 0, doubled: 0 } });
    const peer = network.join('peer');
    for (const text of [ask(3, 1, 'm2'), ask(2, 1, 'm1')]) peer.send('one', text, null);
    await clock.advance(0);
    expect(await rows(one)).toEqual([]);
    peer.send('one', ask(1, 1, 'm0'), null);
    await clock.advance(0);
    expect(await rows(one)).toEqual(['m0', 'm1', 'm2']);
    peer.send('one', ask(5, 4, 'm4'), null);
    await clock.advance(0);
    expect(await rows(one)).toEqual(['m0', 'm1', 'm2']);
    peer.send('one', ask(5, 5, 'm4'), null);
    await clock.advance(0);
    expect(await rows(one)).toEqual(['m0', 'm1', 'm2', 'm4']);
  });
});
