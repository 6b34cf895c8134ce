/** Tests a node that was fenced, or whose store lost confirmed data. */
import { describe, expect, it } from 'vitest';
import type { Backend } from '../../src/core/backend.ts';
import { ANY_WAIT } from '../../src/core/commands/waiter-store.ts';
import type { FinishResult } from '../../src/core/commands/command-store.ts';
import type { NodeListener } from '../../src/core/commands/node-store.ts';
import { connect, testCore, user, type TestClient, type TestCore } from '../kit/core.ts';
import { settle } from '../kit/clock.ts';
import { unawaited } from '../kit/patience.ts';

const alice = user('alice');
const CALL = { userId: 'alice', clientId: 'tab', action: 'open', params: null } as const;

type Losing = TestCore &
  AsyncDisposable & {
    readonly lose: NodeListener['lost'];
    /** The lease of the node is valid again after it had run out. */
    revive(): void;
    /** Another process decides about all users from now on. */
    move(): void;
  };

type Attach = Backend['waiters']['attach'];

/**
 * Opens a core whose store can report a loss of data. `attach`, which gets the store's own, `commands` and `onRecord`
 * replace methods of the store.
 */
async function losingCore(
  attach?: (own: Attach) => Attach,
  commands: Partial<Backend['commands']> = {},
  onRecord?: Backend['onRecord'],
): Promise<Losing> {
  let listener: NodeListener | undefined;
  const test = await testCore({
    wrap: (backend) => ({
      ...backend,
      ...(onRecord && { onRecord }),
      commands: { ...backend.commands, ...commands },
      waiters: { ...backend.waiters, ...(attach ? { attach: attach(backend.waiters.attach) } : {}) },
      nodes: {
        ...backend.nodes,
        attach(nodeId, given) {
          listener = given;
          return backend.nodes.attach(nodeId, given);
        },
      },
    }),
  });
  if (!listener) throw new Error('never attached');
  const { lost, revived, moved } = listener;
  return { ...test, lose: (cause) => lost(cause), revive: () => revived(), move: () => moved?.(() => true) };
}

/** Removes the node's waits, as a reaper does. */
async function reapWaits({ backend }: Losing): Promise<void> {
  const { rows } = await backend.waiters.list(ANY_WAIT, { first: 100, after: null });
  for (const { row } of rows) await backend.waiters.remove(row.waiter, row.waiter.rpcId);
}

describe('a node that was fenced', () => {
  it('closes its links, and its callers continue to wait for running commands', async () => {
    await using test = await losingCore();
    const client = await connect(test.core, alice);
    const call = test.core.rpc.invoke(alice, CALL);
    await settle();
    const command = client.last;
    await reapWaits(test);
    await test.lose('fenced');
    expect(client.closes).toEqual([{ cause: 'node_lost', instanceId: null }]);
    const again = await connect(test.core, alice);
    expect(again.unfinished.map(({ commandId }) => commandId)).toEqual([command.commandId]);
    await again.result(command);
    expect(await call).toMatchObject({ kind: 'outcome', command: { outcome: 'completed' }, result: '{"ok":true}' });
    expect(test.counts.get('node_losses:fenced')).toBe(1);
  });

  it('resolves a caller at once whose command ended while the node was unavailable', async () => {
    await using test = await losingCore();
    const client = await connect(test.core, alice);
    const call = test.core.rpc.invoke(alice, CALL);
    await settle();
    await reapWaits(test);
    await client.result(client.last);
    await test.lose('fenced');
    expect(await call).toMatchObject({ kind: 'outcome', command: { outcome: 'completed' }, result: '{"ok":true}' });
  });

  it('limits a caller to the rest of its own budget', async () => {
    await using test = await losingCore();
    await connect(test.core, alice);
    const ids = { userId: 'alice', clientId: 'tab', commandId: 'c1' };
    unawaited(test.core.rpc.invoke(alice, { ...CALL, commandId: 'c1' }));
    await settle();
    const wait = test.core.rpc.await(alice, { ...ids, withinMs: 5_000 });
    await test.clock.advance(2_000);
    await reapWaits(test);
    await test.lose('fenced');
    const { rows } = await test.backend.waiters.list(ANY_WAIT, { first: 10, after: null });
    const left = rows.map(({ row }) => row.waiter.timesOutAt - test.clock.now()).sort((a, b) => a - b);
    expect(left).toEqual([3_000, 28_000]);
    await test.clock.advance(3_000);
    expect(await wait).toMatchObject({ kind: 'pending' });
  });
});

describe('a node whose store lost data', () => {
  it('ends the commands of its links as unknown, queued or dispatched, and answers the callers', async () => {
    await using test = await losingCore();
    const client = await connect(test.core, alice);
    const running = test.core.rpc.invoke(alice, CALL);
    await settle();
    client.backlog = Number.MAX_SAFE_INTEGER;
    const queued = test.core.rpc.invoke(alice, CALL);
    await settle();
    expect(client.sent.length).toBe(1);
    await test.lose('store_lost');
    for (const call of [running, queued])
      expect(await call).toMatchObject({
        kind: 'outcome',
        command: { outcome: 'outcome_unknown', error: { code: 'store_lost' } },
      });
    expect(client.closes).toEqual([{ cause: 'node_lost', instanceId: null }]);
  });

  it('also ends as unknown what the store shows as running though its end had been confirmed', async () => {
    let client: TestClient | undefined;
    // The store accepts the end, and then loses it.
    const finish = (): FinishResult => (client ? { kind: 'finished', command: client.last } : { kind: 'unknown' });
    await using test = await losingCore(undefined, { finish });
    client = await connect(test.core, alice);
    const call = test.core.rpc.invoke(alice, CALL);
    await settle();
    await client.result(client.last);
    await test.lose('store_lost');
    expect(await call).toMatchObject({ command: { outcome: 'outcome_unknown', error: { code: 'store_lost' } } });
  });

  it('answers that the outcome is unknown for a command that the store no longer knows', async () => {
    await using test = await losingCore(() => () => ({ kind: 'unknown' }));
    const call = test.core.rpc.invoke(alice, { ...CALL, connectWithinMs: 60_000 });
    await settle();
    await test.lose('store_lost');
    expect(await call).toMatchObject({
      kind: 'outcome',
      command: {
        outcome: 'outcome_unknown',
        execution: 'may_have_run',
        error: { code: 'store_lost' },
        reason: 'store_lost',
      },
      result: null,
    });
  });

  it('answers a caller at its deadline if the store does not answer', async () => {
    await using test = await losingCore(() => () => Promise.reject(new Error('away')));
    const client = await connect(test.core, alice);
    const call = test.core.rpc.invoke(alice, CALL);
    await settle();
    await test.lose('fenced');
    expect(client.closes.length).toBe(1);
    await test.clock.advance(30_000);
    expect(await call).toMatchObject({ kind: 'outcome', command: { error: { code: 'response_timeout' } } });
  });
});

describe('a node whose lease is valid again', () => {
  it('closes the links that were marked as lost meanwhile, at once, and keeps the others', async () => {
    await using test = await losingCore();
    const [lost, kept] = [await connect(test.core, alice), await connect(test.core, alice, { clientId: 'other' })];
    const key = { userId: 'alice', clientId: 'tab' };
    const [connection] = await test.backend.connections.get([key]);
    await test.backend.connections.disconnect(key, connection?.epoch ?? 0, 'node_lost');
    test.revive();
    await settle();
    expect(lost.closes).toEqual([{ cause: 'node_lost', instanceId: null }]);
    expect(kept.closes).toEqual([]);
    const again = await connect(test.core, alice);
    const call = test.core.rpc.invoke(alice, CALL);
    await settle();
    await again.result(again.last);
    expect(await call).toMatchObject({ kind: 'outcome', command: { outcome: 'completed' } });
  });
});

describe('a command that the next process to decide about its user does not know', () => {
  const unknown = () => (): { readonly kind: 'unknown' } => ({ kind: 'unknown' });
  const call = (test: Losing) => test.core.rpc.invoke(alice, { ...CALL, connectWithinMs: 60_000 });

  it('was never admitted, if the store had not recorded it', async () => {
    await using test = await losingCore(unknown, {}, () => {});
    const invoked = call(test);
    await settle();
    test.move();
    await expect(invoked).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  it('is lost, if the store had recorded it', async () => {
    await using test = await losingCore(unknown, {}, (run) => run());
    const invoked = call(test);
    await settle();
    test.move();
    expect(await invoked).toMatchObject({ command: { outcome: 'outcome_unknown', reason: 'store_lost' } });
  });

  it('is lost, if another process had it when the wait was registered there', async () => {
    const waiting: (() => void)[] = [];
    let known = true;
    await using test = await losingCore(
      (own) => (key, waiter) => (known ? own(key, waiter) : { kind: 'unknown' }),
      {},
      (run) => void waiting.push(run),
    );
    const invoked = call(test);
    await settle();
    // What waits here is dropped with the partition that this process loses.
    waiting.length = 0;
    test.move();
    await settle();
    for (const run of waiting) run();
    known = false;
    test.move();
    expect(await invoked).toMatchObject({ command: { outcome: 'outcome_unknown', reason: 'store_lost' } });
  });

  it('is not shown as pending to a caller who leaves, if the store had not recorded it', async () => {
    const commands = { get: () => [null], mark: () => null };
    await using test = await losingCore(undefined, commands, () => {});
    const leaving = new AbortController();
    const invoked = test.core.rpc.invoke(alice, { ...CALL, connectWithinMs: 60_000, signal: leaving.signal });
    await settle();
    leaving.abort();
    await expect(invoked).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});
