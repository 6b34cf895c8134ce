/** Tests dispatches whose answer from the store is lost or late. */
import { describe, expect, it } from 'vitest';
import type { CommandStore, DispatchResult } from '../../src/core/commands/command-store.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { BACK_PRESSURE_BYTES, IN_FLIGHT } from '../../src/core/limits.ts';
import { settle } from '../kit/clock.ts';
import { connect, testCore, user, type TestClient, type TestCore } from '../kit/core.ts';
import { unawaited } from '../kit/patience.ts';

const alice = user('alice');
const CALL = { userId: 'alice', clientId: 'tab', action: 'open', params: null } as const;

type Losing = TestCore &
  AsyncDisposable & { readonly world: { lose: 'nothing' | 'requests' | 'answers'; requested: string[] } };

/**
 * Opens a core whose store loses dispatches on request: either they do not arrive, or they run and their answers are
 * lost.
 */
async function losingCore(): Promise<Losing> {
  const world: Losing['world'] = { lose: 'nothing', requested: [] };
  const marked = new Map<string, DispatchResult>();
  const wrapped = (commands: CommandStore): CommandStore => {
    const asNow = async (known: DispatchResult): Promise<DispatchResult> => {
      const [command] = known.kind === 'dispatch' ? await commands.get([known.command]) : [];
      return known.kind === 'dispatch' && command ? { ...known, command } : known;
    };
    return withLosses(commands, asNow);
  };
  const withLosses = (
    commands: CommandStore,
    asNow: (known: DispatchResult) => Promise<DispatchResult>,
  ): CommandStore => ({
    ...commands,
    async dispatch(key, binding, attempt) {
      const name = `${binding.epoch} ${attempt}`;
      world.requested.push(key.commandId);
      if (world.lose === 'requests') throw new CallboardError('store_unavailable', 'The store does not answer.');
      const known = marked.get(`${key.commandId} ${name}`);
      const result = known ? await asNow(known) : await commands.dispatch(key, binding, attempt);
      if (result.kind === 'dispatch') marked.set(`${key.commandId} ${name}`, result);
      if (world.lose === 'answers') throw new CallboardError('store_unavailable', 'The store does not answer.');
      return result;
    },
  });
  const test = await testCore({ wrap: (backend) => ({ ...backend, commands: wrapped(backend.commands) }) });
  return { ...test, world };
}

const invoke = ({ core }: TestCore, commandId: string) => core.rpc.invoke(alice, { ...CALL, commandId });

const ids = ({ sent }: TestClient): readonly string[] => sent.map(({ command }) => command.commandId);

describe('a dispatch that the store does not answer', () => {
  it.each(['requests', 'answers'] as const)('is repeated, and written once (lost: %s)', async (lose) => {
    await using test = await losingCore();
    const client = await connect(test.core, alice);
    test.world.lose = lose;
    const call = invoke(test, 'c1');
    await settle();
    expect(ids(client)).toEqual([]);
    await test.clock.advance(3_000);
    expect(ids(client)).toEqual([]);
    test.world.lose = 'nothing';
    await test.clock.advance(1_000);
    expect(ids(client)).toEqual(['c1']);
    await client.result(client.last);
    expect(await call).toMatchObject({ kind: 'outcome', command: { outcome: 'completed', attempts: 1 } });
  });

  it('delays later dispatches, so that commands reach the client in the order of admission', async () => {
    await using test = await losingCore();
    const client = await connect(test.core, alice);
    test.world.lose = 'answers';
    for (const id of ['c1', 'c2', 'c3']) void invoke(test, id);
    await settle();
    test.world.lose = 'nothing';
    void invoke(test, 'c4');
    await settle();
    expect([test.world.requested, ids(client)]).toEqual([['c1', 'c2', 'c3', 'c1', 'c2', 'c3'], []]);
    await test.clock.advance(1_000);
    expect(ids(client)).toEqual(['c1', 'c2', 'c3', 'c4']);
  });

  it('is one of at most a window', async () => {
    await using test = await losingCore();
    const client = await connect(test.core, alice);
    const all = Array.from({ length: IN_FLIGHT + 2 }, (_, i) => `c${i}`);
    test.world.lose = 'answers';
    for (const id of all) void invoke(test, id);
    await settle();
    expect(new Set(test.world.requested)).toEqual(new Set(all.slice(0, IN_FLIGHT)));
    test.world.lose = 'nothing';
    await test.clock.advance(1_000);
    expect(ids(client)).toEqual(all.slice(0, IN_FLIGHT));
  });

  it('is not written to a link that was replaced in between', async () => {
    await using test = await losingCore();
    const before = await connect(test.core, alice);
    test.world.lose = 'answers';
    void invoke(test, 'c1');
    await settle();
    const after = await connect(test.core, alice);
    test.world.lose = 'nothing';
    await test.clock.advance(1_000);
    expect([ids(before), test.world.requested]).toEqual([[], ['c1', 'c1']]);
    void invoke(test, 'c2');
    await settle();
    expect(ids(after)).toEqual(['c2']);
  });

  it('is not written once its command ended', async () => {
    await using test = await losingCore();
    const client = await connect(test.core, alice);
    test.world.lose = 'answers';
    const call = test.core.rpc.invoke(alice, { ...CALL, commandId: 'c1', respondWithinMs: 1_000 });
    void invoke(test, 'c2');
    await settle();
    await test.clock.advance(3_000);
    expect(await call).toMatchObject({ command: { outcome: 'outcome_unknown' } });
    test.world.lose = 'nothing';
    await test.clock.advance(1_000);
    expect(ids(client)).toEqual(['c2']);
  });

  it('sends a cancel that was requested in between after the command', async () => {
    await using test = await losingCore();
    const client = await connect(test.core, alice);
    test.world.lose = 'answers';
    void invoke(test, 'c1');
    await settle();
    await test.core.rpc.cancel(alice, { userId: 'alice', clientId: 'tab', commandId: 'c1' }, 'enough');
    client.cancels.length = 0;
    test.world.lose = 'nothing';
    await test.clock.advance(1_000);
    expect([ids(client), client.cancels]).toEqual([['c1'], ['c1']]);
  });
});

describe('a dispatch that is answered while the socket is behind', () => {
  it('is held until the socket has drained, and its cancel is sent after it', async () => {
    await using test = await losingCore();
    const client = await connect(test.core, alice);
    for (const id of ['c1', 'c2', 'c3']) void invoke(test, id);
    while (test.world.requested.length < 3) await Promise.resolve();
    client.backlog = BACK_PRESSURE_BYTES;
    await settle();
    void invoke(test, 'c4');
    await settle();
    await test.core.rpc.cancel(alice, { userId: 'alice', clientId: 'tab', commandId: 'c2' }, 'enough');
    await settle();
    expect([test.world.requested, ids(client), client.cancels]).toEqual([['c1', 'c2', 'c3'], [], []]);
    await test.clock.advance(1_500);
    client.backlog = 0;
    await client.session.drained();
    await settle();
    expect([ids(client), client.cancels]).toEqual([['c1', 'c2', 'c3', 'c4'], ['c2']]);
    const [first, , , last] = client.sent.map(({ remainingMs }) => remainingMs);
    expect((last ?? 0) - (first ?? 0)).toBe(0);
  });

  it('is not written once its command ended', async () => {
    await using test = await losingCore();
    const client = await connect(test.core, alice);
    unawaited(test.core.rpc.invoke(alice, { ...CALL, commandId: 'c1', respondWithinMs: 2_000 }));
    while (test.world.requested.length < 1) await Promise.resolve();
    client.backlog = BACK_PRESSURE_BYTES;
    await settle();
    await test.clock.advance(4_000);
    client.backlog = 0;
    await client.session.drained();
    await settle();
    expect(ids(client)).toEqual([]);
  });
});
