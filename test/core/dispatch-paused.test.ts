/** Tests that what was dispatched before a pause, and is not written yet, is not written after the pause's answer. */
import { describe, expect, it } from 'vitest';
import type { MemoryBackend } from '../../src/backends/memory/backend.ts';
import { BACK_PRESSURE_BYTES } from '../../src/core/limits.ts';
import { meanwhile, settle } from '../kit/clock.ts';
import { admin, advertisement, connect, testCore, user, type TestClient } from '../kit/core.ts';
import { eventually } from '../kit/patience.ts';

const alice = user('alice');
const ids = ({ sent }: TestClient): readonly string[] => sent.map(({ command }) => command.commandId);
const PERMIT_MS = 2_500;

/** Opens a core whose store answers a dispatch only when `answer` is called. `permitMs`: as in PauseStore. */
async function lateCore(permitMs: number) {
  const waiting: (() => void)[] = [];
  /** The ids of the commands whose dispatch was asked for, once for each time. */
  const asked: string[] = [];
  const late = ({ commands, pauses, ...backend }: MemoryBackend): MemoryBackend => ({
    ...backend,
    pauses: { ...pauses, permitMs },
    commands: {
      ...commands,
      async dispatch(key, binding, attempt) {
        asked.push(key.commandId);
        const answer = commands.dispatch(key, binding, attempt);
        await new Promise<void>((release) => waiting.push(release));
        return answer;
      },
    },
  });
  const test = await testCore({ wrap: late, keepsAttempts: permitMs !== Infinity });
  const answer = async (): Promise<void> => {
    while (waiting.length > 0) {
      for (const release of waiting.splice(0)) release();
      await settle();
    }
  };
  const client = await connect(test.core, alice, { actions: [advertisement('open'), advertisement('other')] });
  const invoke = (commandId: string, action = 'open') =>
    test.core.rpc.invoke(alice, { userId: 'alice', clientId: 'tab', params: null, action, commandId });
  return { ...test, client, asked, answer, invoke };
}

describe('a dispatch that a store of other processes allowed', () => {
  it('is asked for again if a pause has begun since, which ends it, or if it was long ago', async () => {
    await using test = await lateCore(PERMIT_MS);
    const stopped = test.invoke('c1');
    await settle();
    await test.core.pauses.pause(admin, { action: 'open', reason: 'stop' });
    await test.answer();
    expect(ids(test.client)).toEqual([]);
    const ended = { outcome: 'expired', execution: 'not_written', error: { code: 'paused' } };
    expect(await stopped).toMatchObject({ kind: 'outcome', command: ended });
    void test.invoke('c2', 'other');
    await settle();
    await test.clock.advance(PERMIT_MS + 1);
    await test.answer();
    void test.invoke('c3', 'other');
    await settle();
    await test.answer();
    expect(ids(test.client)).toEqual(['c2', 'c3']);
    expect(test.asked).toEqual(['c1', 'c1', 'c2', 'c2', 'c3']);
  });
});

describe('a command that is held because the client reads slowly', () => {
  it('ends with the pause that covers it, with nothing run; others are written', async () => {
    await using test = await lateCore(Infinity);
    const stopped = test.invoke('c1');
    void test.invoke('c2', 'other');
    await settle();
    test.client.backlog = BACK_PRESSURE_BYTES;
    await test.answer();
    await test.core.pauses.pause(admin, { action: 'open', reason: 'stop' });
    const ended = { outcome: 'expired', execution: 'not_written', error: { code: 'paused' } };
    expect(await stopped).toMatchObject({ kind: 'outcome', command: ended });
    test.client.backlog = 0;
    await test.client.session.drained();
    await test.answer();
    expect(ids(test.client)).toEqual(['c2']);
  });
});

describe('a node that another one asks about a pause', () => {
  it('answers once the bytes that it has written before may leave', async () => {
    const answers: string[] = [];
    const heldBack: (() => void)[] = [];
    const wrap = ({ nodes, ...backend }: MemoryBackend): MemoryBackend => ({
      ...backend,
      onRecord: (run) => void heldBack.push(run),
      nodes: {
        ...nodes,
        post: (nodeId, row) => (row.kind === 'answer' ? answers.push(row.text) > 0 : nodes.post(nodeId, row)),
      },
    });
    await using test = await testCore({ wrap });
    const others = { clientId: null, callerKind: null, caller: null, action: null, label: null };
    const text = JSON.stringify({ userId: 'alice', ...others });
    await test.backend.nodes.post('n1', { kind: 'question', questionId: 'q', from: 'n2', topic: 'pause', text });
    await eventually(() => expect(heldBack).toHaveLength(1));
    expect(answers).toEqual([]);
    for (const leave of heldBack) leave();
    await eventually(() => expect(answers).toEqual(['renewed']));
  });
});

describe('a pause', () => {
  it('asks nodes that have started and not reported yet: they may have links', async () => {
    const asked: string[] = [];
    const wrap = ({ nodes, pauses, ...backend }: MemoryBackend): MemoryBackend => ({
      ...backend,
      pauses: { ...pauses, permitMs: PERMIT_MS, quietMs: 1 },
      nodes: {
        ...nodes,
        living: () => ['n1', 'n2'],
        post: (nodeId, row) => (row.kind === 'question' ? asked.push(`${nodeId} ${row.topic}`) > 0 : false),
      },
    });
    await using test = await testCore({ wrap });
    const receipt = await meanwhile(test.clock, test.core.pauses.pause(admin, { all: true, reason: 'stop' }), 100);
    expect([asked, receipt.silent]).toEqual([['n2 pause'], ['n2']]);
  });
});
