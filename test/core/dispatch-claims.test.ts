/**
 * Tests dispatches together with admissions. Before the relay admits a command, it reserves capacity on the client's
 * link (a claim). The store then records the admission and the dispatch in one act.
 */
import { describe, expect, it } from 'vitest';
import type { MemoryBackend } from '../../src/backends/memory/backend.ts';
import type { AdmitResult, DispatchResult } from '../../src/core/commands/command-store.ts';
import type { MailboxRow } from '../../src/core/commands/node-store.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { IN_FLIGHT } from '../../src/core/limits.ts';
import { settle } from '../kit/clock.ts';
import { connect, testCore, user, type TestClient, type TestCore } from '../kit/core.ts';

const alice = user('alice');
const CALL = { userId: 'alice', clientId: 'tab', action: 'open', params: null } as const;

type World = {
  /** Admissions that are not answered yet, in order. */
  readonly waiting: (() => void)[];
  /** Whether the store answers at once. Otherwise the test answers through `waiting`. */
  answers: boolean;
  /** What the store loses. `answer`: it does all that it is asked to do, but its answer does not arrive. */
  lose: 'nothing' | 'answer';
  marks: boolean;
  readonly claimed: string[];
  readonly dispatched: string[];
};

/** Opens a core over a shared store. The test decides when admissions are answered. */
async function claimingCore(): Promise<TestCore & AsyncDisposable & { readonly world: World }> {
  const none = { waiting: [], claimed: [], dispatched: [] };
  /** The dispatches that admissions recorded, by command and attempt. A repeated attempt gets the same answer again. */
  const marked = new Map<string, DispatchResult>();
  const world: World = { ...none, answers: true, lose: 'nothing', marks: true };
  const isMarked = (row: MailboxRow): boolean =>
    row.kind === 'command' && [...marked.keys()].some((name) => name.startsWith(`${row.key.commandId} `));
  const wrap = (memory: MemoryBackend): MemoryBackend => ({
    ...memory,
    capabilities: { ...memory.capabilities, shared: true },
    nodes: {
      ...memory.nodes,
      // Memory posts a row for each command. This store posts no row for a command that it marked as dispatched.
      attach: (nodeId, listener) =>
        memory.nodes.attach(nodeId, { ...listener, deliver: (row) => isMarked(row) || listener.deliver(row) }),
    },
    commands: {
      ...memory.commands,
      async admit({ claim = null, ...request }): Promise<AdmitResult> {
        if (claim) world.claimed.push(request.commandId);
        // Memory answers in the same tick, so no mailbox row is delivered between the two acts.
        const result = memory.commands.admit(request);
        if (result instanceof Promise) throw new Error('memory answers at once');
        const marks = world.marks && claim !== null && result.kind === 'admitted' && result.command.nodeId !== null;
        const mark = marks && memory.commands.dispatch(request, claim.binding, claim.attempt);
        if (mark instanceof Promise) throw new Error('memory answers at once');
        if (mark) marked.set(`${request.commandId} ${claim?.attempt}`, mark);
        if (!world.answers) await new Promise<void>((answer) => void world.waiting.push(answer));
        if (world.lose === 'answer') throw new CallboardError('store_unavailable', 'The store does not answer.');
        return result.kind === 'admitted' && mark && mark.kind === 'dispatch' ? { ...result, dispatch: mark } : result;
      },
      dispatch(key, binding, attempt) {
        world.dispatched.push(key.commandId);
        return marked.get(`${key.commandId} ${attempt}`) ?? memory.commands.dispatch(key, binding, attempt);
      },
    },
  });
  return { ...(await testCore({ wrap })), world };
}

const invoke = ({ core }: TestCore, commandId: string) => core.rpc.invoke(alice, { ...CALL, commandId });
const ids = ({ sent }: TestClient): readonly string[] => sent.map(({ command }) => command.commandId);

describe('a command whose admission marks it', () => {
  it('is written once its admission is answered, without another act', async () => {
    await using test = await claimingCore();
    const client = await connect(test.core, alice);
    const call = invoke(test, 'c1');
    await settle();
    expect([ids(client), test.world.claimed, test.world.dispatched]).toEqual([['c1'], ['c1'], []]);
    await client.result(client.last);
    expect(await call).toMatchObject({ kind: 'outcome', command: { outcome: 'completed', attempts: 1 } });
    expect(test.core.delivery.nodeLoad()).toEqual({ inFlight: 0, queued: 0 });
  });

  it('is queued by its row if the admission did not mark it', async () => {
    await using test = await claimingCore();
    test.world.marks = false;
    const client = await connect(test.core, alice);
    const call = invoke(test, 'c1');
    await settle();
    expect([ids(client), test.world.dispatched]).toEqual([['c1'], ['c1']]);
    await client.result(client.last);
    expect(await call).toMatchObject({ kind: 'outcome', command: { outcome: 'completed', attempts: 1 } });
  });

  it('is asked for again if the admission was not answered', async () => {
    await using test = await claimingCore();
    const client = await connect(test.core, alice);
    test.world.lose = 'answer';
    await expect(invoke(test, 'c1')).rejects.toMatchObject({ code: 'store_unavailable' });
    await test.clock.advance(3_000);
    expect([ids(client), test.world.dispatched]).toEqual([['c1'], ['c1']]);
    expect(test.core.delivery.nodeLoad()).toEqual({ inFlight: 1, queued: 0 });
  });

  it('frees its place if it is refused', async () => {
    await using test = await claimingCore();
    const client = await connect(test.core, alice);
    for (let i = 0; i < IN_FLIGHT + 1; i++)
      expect(await test.core.rpc.invoke(alice, { ...CALL, instanceId: 'another' })).toMatchObject({ kind: 'refused' });
    expect(test.core.delivery.nodeLoad()).toEqual({ inFlight: 0, queued: 0 });
    expect(ids(client)).toEqual([]);
  });

  it('takes no place beyond the window of its link', async () => {
    await using test = await claimingCore();
    test.world.answers = false;
    await connect(test.core, alice);
    for (let i = 0; i < IN_FLIGHT + 2; i++) void invoke(test, `c${i}`).catch(() => undefined);
    await settle();
    expect(test.world.claimed).toHaveLength(IN_FLIGHT);
    expect(test.core.delivery.nodeLoad().inFlight).toBe(IN_FLIGHT);
    for (const answer of test.world.waiting.splice(0)) answer();
    await settle();
  });
});
