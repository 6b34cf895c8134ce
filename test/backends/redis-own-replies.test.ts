/** Tests replies to callers that wait on the node that recorded the end. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRedisCommands } from '../../src/backends/redis/commands/store.ts';
import type { Store } from '../../src/backends/redis/store.ts';
import type { CommandStore } from '../../src/core/commands/command-store.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { toJson } from '../../src/core/json.ts';
import { CALLER, admission, ALICE, BOUND, ending, keyFor, openNode, read } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';

const PAYLOAD = toJson({ secret: 'only-in-the-result' });
const waiter = (rpcId: string, callerNodeId: string) =>
  ({ rpcId, caller: CALLER, callerNodeId, waitFor: 'completed', withinMs: null }) as const;

describe('the reply to a caller on the node that recorded the end', () => {
  let bench: RedisBench;
  let node: Awaited<ReturnType<typeof openNode>>;
  beforeEach(async () => {
    bench = await redisBench({ partitions: 1 });
    node = await openNode(bench);
    await bench.backend.commands.rebind(ALICE, BOUND, 'up');
  });
  afterEach(() => bench.close());

  const running = async (commandId: string): Promise<void> => {
    const { commands } = bench.backend;
    await commands.admit(admission(commandId, { waiter: waiter(`${commandId}-own`, 'n1') }));
    await node.take();
    await commands.dispatch(keyFor(commandId), BOUND);
  };
  const replies = async () => (await node.take()).flatMap((row) => (row.kind === 'reply' ? [row.reply] : []));
  /** Returns every row that is still in the mailbox. Rows are removed only when the next ones are read. */
  const mailbox = async (nodeId: string): Promise<string> => {
    const [names] = await bench.store.read([['KEYS', bench.store.key(0, 'mailbox', `${nodeId}:*`)]]);
    const streams = await bench.store.read([names].flat().map((name) => ['XRANGE', String(name), '-', '+']));
    return JSON.stringify(streams);
  };
  /** Returns a CommandStore of the same process whose transactions run but get no answer. */
  const unanswered = (): CommandStore => {
    const transact: Store['transact'] = async (...call) => {
      await bench.store.transact(...call);
      throw new CallboardError('store_unavailable', 'No answer.');
    };
    return createRedisCommands({ ...bench.parts, store: { ...bench.store, transact } });
  };
  /** Returns a CommandStore of the same process that cannot read results. */
  const withoutResults = (): CommandStore => {
    const read: Store['read'] = (commands) =>
      commands.some(([, key]) => String(key).includes(':results:'))
        ? Promise.reject(new CallboardError('store_unavailable', 'No answer.'))
        : bench.store.read(commands);
    return createRedisCommands({ ...bench.parts, store: { ...bench.store, read } });
  };

  it.each(['predicted', 'not predicted'])(
    'has the record and the result, and needs no row of its mailbox (%s)',
    async (how) => {
      await running('c1');
      const other = await openNode(bench, 'n2');
      await bench.backend.waiters.attach(keyFor('c1'), waiter('c1-other', 'n2'));
      if (how === 'predicted') await bench.backend.waiters.remove(keyFor('c1'), 'c1-other');
      other.detach();
      await bench.backend.commands.finish(keyFor('c1'), ending({ payload: PAYLOAD }));
      expect(await mailbox('n1')).not.toContain('reply');
      expect(await replies()).toEqual([{ rpcId: 'c1-own', command: await read(bench, 'c1'), result: PAYLOAD }]);
    },
  );

  it('is given to each of its callers once, and to callers of another node with the record and the result', async () => {
    const other = await openNode(bench, 'n2');
    await running('c1');
    for (const [rpcId, at] of [
      ['second', 'n1'],
      ['other', 'n2'],
    ] as const)
      await bench.backend.waiters.attach(keyFor('c1'), waiter(rpcId, at));
    await bench.backend.commands.finish(keyFor('c1'), ending({ payload: PAYLOAD }));
    await bench.backend.commands.finish(keyFor('c1'), ending({ payload: PAYLOAD }));
    const found = await replies();
    expect(found.map(({ rpcId }) => rpcId)).toEqual(['c1-own', 'second']);
    const elsewhere = (await other.take()).flatMap((row) => (row.kind === 'reply' ? [row.reply] : []));
    expect(elsewhere.map(({ rpcId }) => rpcId)).toEqual(['other']);
    for (const { command, result } of [...found, ...elsewhere])
      expect([command.stage, command.outcome, result]).toEqual(['terminal', 'completed', PAYLOAD]);
  });

  it('is read from Redis where the end was not answered, once, when the end is repeated', async () => {
    await running('c1');
    const repeated = ending({ payload: PAYLOAD });
    await expect(unanswered().finish(keyFor('c1'), repeated)).rejects.toThrow('No answer');
    expect(await replies()).toEqual([]);
    const { kind } = await bench.backend.commands.finish(keyFor('c1'), repeated);
    expect(kind).toBe('duplicate');
    expect(await replies()).toEqual([{ rpcId: 'c1-own', command: await read(bench, 'c1'), result: PAYLOAD }]);
    await bench.backend.commands.finish(keyFor('c1'), repeated);
    expect(await replies()).toEqual([]);
  });

  it('is repeated where the result could not be read after a lost answer', async () => {
    await running('c1');
    const repeated = ending({ payload: PAYLOAD });
    await expect(unanswered().finish(keyFor('c1'), repeated)).rejects.toThrow('No answer');
    await expect(withoutResults().finish(keyFor('c1'), repeated)).rejects.toThrow('No answer');
    expect(await replies()).toEqual([]);
    await bench.backend.commands.finish(keyFor('c1'), repeated);
    expect((await replies()).map(({ rpcId, result }) => [rpcId, result])).toEqual([['c1-own', PAYLOAD]]);
  });

  it('tells the error of a command that failed, and has no result where there was none', async () => {
    const error = { code: 'nope', message: 'no' };
    await running('c1');
    await bench.backend.commands.finish(keyFor('c1'), ending({ kind: 'error', payload: null, error }));
    expect(await replies()).toMatchObject([{ rpcId: 'c1-own', command: { outcome: 'failed', error }, result: null }]);
  });
});
