/** Tests that the large messages of one user take turns, and what their bytes count for. */
import { describe, expect, test } from 'vitest';
import type { Core } from '../../src/core/core.ts';
import type { EventLoop } from '../../src/core/ports.ts';
import { ByteRates, createMessageTurns } from '../../src/core/shares/turns.ts';
import { FakeClock, settle } from '../kit/clock.ts';
import { admin } from '../kit/core.ts';
import { until } from '../relay/kit/test-relay.ts';
import { client, invoke, startGateway, type HelloOver, type TestGateway } from './kit/test-gateway.ts';

const KIB = 1024;

/** A loop whose turns the test decides. */
class ManualLoop implements EventLoop {
  #waiting: (() => void)[] = [];

  afterOthers(run: () => void): void {
    this.#waiting.push(run);
  }

  atTurnEnd(run: () => void): void {
    this.#waiting.push(run);
  }

  turn(): void {
    for (const run of this.#waiting.splice(0)) run();
  }
}

/** Options of a gateway whose large messages take the turns of a loop, and the number of messages that have arrived. */
function turnsOf(loop: EventLoop) {
  const arrived: string[] = [];
  const turns = createMessageTurns(loop);
  const messages: Core['messages'] = {
    run(holder, read, cost) {
      arrived.push(holder);
      return turns.run(holder, read, cost);
    },
  };
  return { arrived, wrap: (core: Core): Core => ({ ...core, messages }) };
}

/** A list of actions of about this many bytes. */
function list(bytes: number, fill: string): object {
  const action = { name: 'open', description: fill.repeat(7 * KIB) };
  return {
    actions: Array.from({ length: Math.ceil(bytes / (7 * KIB)) }, (_, n) => ({ ...action, name: `open.${n}` })),
  };
}

async function actionsOf(at: TestGateway, userId: string, clientId: string): Promise<string> {
  const connection = await at.core.connections.get(admin, { userId, clientId });
  const [action] = connection?.actions ?? [];
  return action?.description?.[0] ?? '-';
}

describe('large messages', () => {
  test('of one user are handled one a turn, and those of others come first', async () => {
    const loop = new ManualLoop();
    const { arrived, wrap } = turnsOf(loop);
    await using at = await startGateway({ wrap });
    const clients = ['c0', 'c1', 'c2', 'c3', 'c4', 'c5'];
    const hello = (client_id: string, over: HelloOver = {}) => client(at, { client_id, ...over });
    const links = await Promise.all(clients.map((name) => hello(name)));
    const bob = await hello('tab', { token: 'user:bob:connect' });
    loop.turn();
    const done = async (): Promise<string> =>
      (await Promise.all(clients.map((name) => actionsOf(at, 'alice', name)))).filter((fill) => fill === 'x').join('');
    for (const link of links) link.send({ type: 'actions' }, list(900 * KIB, 'x'));
    await until(async () => (await done()) === 'x');
    bob.send({ type: 'actions' }, list(30 * KIB, 'y'));
    await until(() => arrived.length === 7);
    expect([await done(), await actionsOf(at, 'bob', 'tab')]).toEqual(['x', '-']);
    for (let turn = 2; turn <= 7; turn++) {
      loop.turn();
      await settle();
      // Bob's message fits into the first turn, before the second of alice.
      expect(await actionsOf(at, 'bob', 'tab')).toBe('y');
      expect((await done()).length).toBeLessThanOrEqual(turn);
    }
    await until(async () => {
      loop.turn();
      return (await done()) === 'xxxxxx';
    });
  });

  test('stay in order with the small ones of their link', async () => {
    const loop = new ManualLoop();
    await using at = await startGateway({ wrap: turnsOf(loop).wrap });
    const link = await client(at);
    link.send({ type: 'actions' }, list(300 * KIB, 'a'));
    link.send({ type: 'actions' }, list(300 * KIB, 'b'));
    link.send({ type: 'actions' }, { actions: [{ name: 'open', description: 'c' }] });
    await until(async () => {
      loop.turn();
      return (await actionsOf(at, 'alice', 'tab')) === 'c';
    });
    loop.turn();
    loop.turn();
    await settle();
    expect(await actionsOf(at, 'alice', 'tab')).toBe('c');
  });

  test('that arrived before the end of their link are handled before it', async () => {
    const loop = new ManualLoop();
    await using at = await startGateway({ wrap: turnsOf(loop).wrap });
    const link = await client(at);
    const invoked = [invoke(at, 'c1'), invoke(at, 'c2')];
    const commands = [await link.next('command'), await link.next('command')];
    for (const { command_id } of commands) link.send({ type: 'result', command_id }, { text: 'r'.repeat(200 * KIB) });
    link.ws.close();
    await link.closed;
    const results = await Promise.all(invoked);
    expect(results.map((result) => result.kind === 'outcome' && result.command.outcome)).toEqual([
      'completed',
      'completed',
    ]);
  });
});

describe('the bytes of a list of actions', () => {
  test('count eight times if it is parsed, and once if it is known', async () => {
    const clock = new FakeClock();
    const perSecond = 1_000_000;
    await using at = await startGateway({ inbound: new ByteRates(clock, perSecond) });
    const limited = (): number => at.counts.get('inbound_limited:link') ?? 0;
    const link = await client(at);
    for (let round = 0; round < 10; round++) link.send({ type: 'actions' }, list(50 * KIB, 'x'));
    await link.sync();
    expect(limited()).toBe(0);
    for (const fill of 'abcdefgh') link.send({ type: 'actions' }, list(50 * KIB, fill));
    await until(() => limited() === 1);
  });

  test('count eight times in a hello, too', async () => {
    const clock = new FakeClock();
    await using at = await startGateway({ inbound: new ByteRates(clock, 500_000) });
    const link = await client(at, { payload: list(400 * KIB, 'x') });
    link.raw('{"type":"pong"}');
    await until(() => at.counts.get('inbound_limited:link') === 1);
  });
});
