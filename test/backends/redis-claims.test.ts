/**
 * Tests admissions over Redis that dispatch their command in the same act. That is possible if the client's link is on
 * the caller's node and has room for the command.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AdmitRequest, DispatchClaim } from '../../src/core/commands/command-store.ts';
import { toJson } from '../../src/core/json.ts';
import { admission, ALICE, BOUND, ending, keyFor, kinds, openNode, read } from '../contract/kit/bench.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';

const CLAIM: DispatchClaim = { binding: BOUND, attempt: '7' };
const PARAMS = toJson({ n: 1 });

describe('an admission with a claim', () => {
  let bench: RedisBench;
  let node: Awaited<ReturnType<typeof openNode>>;
  const opened: RedisBench[] = [];
  const open = async (): Promise<RedisBench> => {
    const one = await redisBench({ partitions: 1 });
    opened.push(one);
    return one;
  };
  beforeEach(async () => {
    bench = await open();
    node = await openNode(bench);
    await bench.backend.commands.rebind(ALICE, BOUND, 'up');
  });
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
  });

  const left = async (of: RedisBench): Promise<unknown> => {
    const { commands, inspector } = of.backend;
    const scopes = (await inspector.scopes({ first: 10, after: null })).rows;
    const results = await Promise.all(['c1', 'c2'].map((id) => commands.result(keyFor(id))));
    return [await commands.get([keyFor('c1'), keyFor('c2')]), await commands.loads([ALICE]), results, scopes];
  };
  const admit = async (commandId: string, over: Partial<AdmitRequest> = {}) => {
    const result = await bench.backend.commands.admit(admission(commandId, { claim: CLAIM, ...over }));
    if (result.kind !== 'admitted') throw new Error(`not admitted: ${result.kind}`);
    return result;
  };
  const rows = async (): Promise<string[]> => (await node.take()).map(({ kind }) => kind);

  it('marks the command, and posts no row for it', async () => {
    const { command, dispatch } = await admit('c1');
    expect(command).toMatchObject({ stage: 'queued', version: 1, attempts: 0, dispatchedAt: null });
    expect(dispatch).toEqual({
      kind: 'dispatch',
      command: await read(bench, 'c1'),
      params: PARAMS,
      remainingMs: 30_000,
    });
    expect(dispatch).toMatchObject({
      command: { stage: 'dispatched', version: 2, attempts: 1, boundInstanceId: 'i1' },
    });
    expect(await rows()).toEqual([]);
    expect(await kinds(bench, 'c1')).toEqual(['command']);
  });

  it('leaves what an admission and a dispatch leave, also after the end', async () => {
    const apart = await open();
    await openNode(apart);
    await apart.backend.commands.rebind(ALICE, BOUND, 'up');
    for (const commandId of ['c1', 'c2']) {
      const { command, dispatch } = await admit(commandId);
      const admitted = await apart.backend.commands.admit(admission(commandId));
      expect({ kind: 'admitted', command }).toEqual(admitted);
      expect(dispatch).toEqual(await apart.backend.commands.dispatch(keyFor(commandId), BOUND, CLAIM.attempt));
      expect(await left(bench)).toEqual(await left(apart));
    }
    for (const { backend } of [bench, apart]) {
      await backend.commands.finish(keyFor('c2'), ending());
      await backend.commands.finish(keyFor('c1'), ending());
    }
    expect(await left(bench)).toEqual(await left(apart));
  });

  it.each([
    ['other commands wait for the client', () => admit('first', { claim: null })],
    ['a newer link of the client is up', () => bench.backend.commands.rebind(ALICE, { ...BOUND, epoch: 2 }, 'up')],
  ])('queues the command and posts its row if %s', async (_what, happen) => {
    await happen();
    await node.take();
    const { dispatch } = await admit('c1');
    expect(dispatch).toBeUndefined();
    expect(await read(bench, 'c1')).toMatchObject({ stage: 'queued', attempts: 0 });
    expect(await rows()).toEqual(['command']);
  });

  it('parks the command if the link is down by now', async () => {
    await bench.backend.commands.rebind(ALICE, BOUND, 'down');
    const { dispatch } = await admit('c1', { connectWithinMs: 1_000 });
    expect(dispatch).toBeUndefined();
    expect(await read(bench, 'c1')).toMatchObject({ stage: 'admitted' });
  });

  it('queues the command if the link belongs to another node', async () => {
    const other = await openNode(bench, 'n2');
    const binding = { ...BOUND, nodeId: 'n2' };
    await bench.backend.commands.rebind(ALICE, binding, 'up');
    const { dispatch } = await admit('c1');
    expect(dispatch).toBeUndefined();
    expect((await other.take()).map(({ kind }) => kind)).toEqual(['command']);
  });

  it('marks several commands of one call, in their order', async () => {
    const ids = ['c1', 'c2', 'c3'];
    const results = await Promise.all(ids.map((id) => admit(id)));
    expect(results.map(({ dispatch }) => dispatch?.kind === 'dispatch' && dispatch.command.commandId)).toEqual(ids);
    const link = { ...BOUND, epoch: 2 };
    const { unfinished } = await bench.backend.commands.rebind(ALICE, link, 'up');
    expect(unfinished.map(({ commandId }) => commandId).sort()).toEqual(ids);
  });

  it('marks once: without its answer the same attempt is answered again, and no other', async () => {
    const { dispatch } = await admit('c1');
    expect(await bench.backend.commands.dispatch(keyFor('c1'), BOUND, CLAIM.attempt)).toEqual(dispatch);
    expect(await bench.backend.commands.dispatch(keyFor('c1'), BOUND, '8')).toEqual({ kind: 'skip' });
  });

  it('does not mark again the command that has its id', async () => {
    await admit('c1');
    const again = await bench.backend.commands.admit(admission('c1', { claim: { ...CLAIM, attempt: '8' } }));
    expect(again).toEqual({ kind: 'attached', command: await read(bench, 'c1'), result: null });
    expect(await read(bench, 'c1')).toMatchObject({ attempts: 1 });
  });
});
