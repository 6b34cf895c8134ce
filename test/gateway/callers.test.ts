import { describe, expect, test } from 'vitest';
import { admin } from '../kit/core.ts';
import { caller, client, house, type House } from './kit.ts';

const INVOKE = { type: 'invoke', client_id: 'tab', action: 'open' } as const;

async function waits({ core }: House): Promise<number> {
  return (await core.rpc.count(admin, {})).count;
}

describe('a call over a link', () => {
  test('carries the params and the result to the letter, and tells the outcome', async () => {
    await using at = await house();
    const peer = await client(at);
    const asker = await caller(at);
    asker.raw(`${JSON.stringify({ ...INVOKE, ref: 'r1', command_id: 'c1', trace_id: 't' })}\n{ "n":1.0 }`);
    expect(await peer.next('command')).toMatchObject({ command_id: 'c1', trace_id: 't', payload: '{ "n":1.0 }' });
    peer.raw('{"type":"result","command_id":"c1"}\n{ "v":2.0 }');
    expect(await asker.next('outcome')).toEqual({
      type: 'outcome',
      ref: 'r1',
      command_id: 'c1',
      rpc_id: expect.any(String),
      outcome: 'completed',
      stage: 'terminal',
      execution: 'reported_by_client',
      payload: '{ "v":2.0 }',
    });
  });

  test('a failure tells its code and message', async () => {
    await using at = await house();
    const peer = await client(at);
    const asker = await caller(at);
    asker.send({ ...INVOKE, ref: 'r1', command_id: 'c1' });
    await peer.next('command');
    peer.send({ type: 'error', command_id: 'c1', code: 'client_denied', message: 'not now' });
    expect(await asker.next('outcome')).toMatchObject({
      outcome: 'failed',
      execution: 'refused_by_client',
      error_code: 'client_denied',
      error_message: 'not now',
      payload: null,
    });
  });

  test('the same link may be a client and a caller, of itself too', async () => {
    await using at = await house();
    const peer = await client(at);
    peer.send({ ...INVOKE, ref: 'r1', command_id: 'c1' });
    await peer.next('command');
    peer.send({ type: 'result', command_id: 'c1' }, 'mine');
    expect(await peer.next('outcome')).toMatchObject({ ref: 'r1', payload: '"mine"' });
  });

  test('waiting only for admission, it is told the stage, and that the command lives', async () => {
    await using at = await house();
    const peer = await client(at);
    const asker = await caller(at);
    asker.send({ ...INVOKE, ref: 'r1', command_id: 'c1', wait_for: 'admitted', stages: 'all' });
    const stage = await asker.next('stage');
    expect(stage).toMatchObject({ ref: 'r1', command_id: 'c1' });
    const outcome = await asker.next('outcome');
    expect(outcome).toMatchObject({ ref: 'r1', command_id: 'c1', stage: stage.stage });
    expect(outcome).not.toHaveProperty('outcome');
    asker.send({ type: 'await', ref: 'r2', client_id: 'tab', command_id: 'c1' });
    await peer.next('command');
    peer.send({ type: 'result', command_id: 'c1' }, 7);
    expect(await asker.next('outcome')).toMatchObject({ ref: 'r2', outcome: 'completed', payload: '7' });
  });

  test('while it waits it is told each stage that the command reaches, once, and first that it is admitted', async () => {
    await using at = await house();
    const asker = await caller(at);
    asker.send({ ...INVOKE, ref: 'r1', connect_within_ms: 10_000, stages: 'all' });
    const { command_id } = await asker.next('stage');
    asker.send({ type: 'await', ref: 'r2', client_id: 'tab', command_id, within_ms: 20_000, stages: 'all' });
    await expect.poll(() => asker.seen('stage').filter(({ ref }) => ref === 'r2')).toHaveLength(1);
    const peer = await client(at);
    await peer.next('command');
    // A stage that lasts shorter than it takes to look again may be skipped.
    const told = (stage: string) => expect.poll(() => asker.seen('stage').filter((seen) => seen.stage === stage));
    await told('dispatched').toHaveLength(2);
    peer.send({ type: 'ack', command_id });
    peer.send({ type: 'progress', command_id }, 1);
    peer.send({ type: 'progress', command_id }, 2);
    await told('acknowledged').toHaveLength(2);
    await peer.sync();
    peer.send({ type: 'result', command_id });
    await asker.next('outcome');
    await asker.next('outcome');
    for (const asked of ['r1', 'r2']) {
      const heard = asker.all.filter((frame) => 'ref' in frame && frame.ref === asked);
      const stages = heard.flatMap((frame) => (frame.type === 'stage' ? [frame.stage] : []));
      expect(stages).toEqual(['admitted', 'dispatched', 'acknowledged']);
      expect(heard.at(-1)).toMatchObject({ type: 'outcome', command_id, stage: 'terminal' });
      expect(heard).toHaveLength(4);
    }
  });

  test('it is told no stage that it did not ask for, and the first alone where it asked for that', async () => {
    await using at = await house();
    const peer = await client(at);
    const asker = await caller(at);
    asker.send({ ...INVOKE, ref: 'r1', command_id: 'c1' });
    asker.send({ ...INVOKE, ref: 'r2', command_id: 'c2', stages: 'first' });
    for (const command_id of ['c1', 'c2']) {
      await peer.next('command');
      peer.send({ type: 'ack', command_id });
      peer.send({ type: 'result', command_id });
      await asker.next('outcome');
    }
    expect(asker.seen('stage')).toEqual([
      { type: 'stage', ref: 'r2', command_id: 'c2', stage: 'queued', payload: null },
    ]);
    asker.send({ ...INVOKE, ref: 'r3', stages: 'some' as 'all' });
    expect(await asker.next('refused')).toMatchObject({ ref: 'r3', message: 'stages: expected one of first, all' });
  });

  test('who waits for the acknowledgement is told of it once', async () => {
    await using at = await house();
    const peer = await client(at);
    const asker = await caller(at);
    asker.send({ ...INVOKE, ref: 'r1', command_id: 'c1', wait_for: 'acknowledged', stages: 'all' });
    await peer.next('command');
    await expect.poll(() => asker.seen('stage').at(-1)?.stage).toBe('dispatched');
    peer.send({ type: 'ack', command_id: 'c1' });
    expect(await asker.next('outcome')).toMatchObject({ stage: 'acknowledged' });
    expect(asker.seen('stage').map(({ stage }) => stage)).toEqual([
      ...new Set(asker.seen('stage').map(({ stage }) => stage)),
    ]);
    expect(asker.seen('stage').at(-1)).toMatchObject({ stage: 'acknowledged' });
    peer.send({ type: 'result', command_id: 'c1' });
    await peer.next('result_ack');
    await asker.sync();
    expect(asker.all.at(-2)).toMatchObject({ type: 'outcome' });
  });

  test('its deadline ends it as unknown, with the last proven stage', async () => {
    await using at = await house();
    const peer = await client(at);
    const asker = await caller(at);
    asker.send({ ...INVOKE, ref: 'r1', respond_within_ms: 1_000 });
    await peer.next('command');
    await at.clock.advance(2_000);
    expect(await asker.next('outcome')).toMatchObject({
      outcome: 'outcome_unknown',
      execution: 'may_have_run',
      error_code: 'response_timeout',
    });
  });

  test('cancel answers what became of it, and the caller hears the end', async () => {
    await using at = await house();
    const peer = await client(at);
    const asker = await caller(at);
    asker.send({ ...INVOKE, ref: 'r1', command_id: 'c1' });
    await peer.next('command');
    asker.send({ type: 'cancel', ref: 'r2', client_id: 'tab', command_id: 'c1', reason: 'enough' });
    expect(await asker.next('receipt')).toMatchObject({ ref: 'r2', command_id: 'c1', state: 'requested' });
    expect(await peer.next('cancel')).toMatchObject({ reason: 'enough' });
    peer.send({ type: 'cancelled', command_id: 'c1' });
    expect(await asker.next('outcome')).toMatchObject({ ref: 'r1', outcome: 'cancelled' });
    asker.send({ type: 'cancel', ref: 'r3', client_id: 'tab', command_id: 'c1' });
    expect(await asker.next('receipt')).toMatchObject({ ref: 'r3', state: 'too_late' });
  });
});

describe('a caller that leaves', () => {
  test('its link cut, its waits end and its commands run on; another link can take up the handle', async () => {
    await using at = await house();
    const peer = await client(at);
    const asker = await caller(at);
    for (const i of [1, 2, 3]) asker.send({ ...INVOKE, ref: `r${i}`, command_id: `c${i}` });
    for (let i = 0; i < 3; i++) await peer.next('command');
    await expect.poll(() => waits(at)).toBe(3);
    asker.ws.terminate();
    await expect.poll(() => waits(at)).toBe(0);
    peer.send({ type: 'result', command_id: 'c1' }, 'done');
    await peer.next('result_ack');
    const again = await caller(at);
    again.send({ type: 'await', ref: 'a', client_id: 'tab', command_id: 'c1' });
    expect(await again.next('outcome')).toMatchObject({ outcome: 'completed', payload: '"done"' });
  });

  test('whoever left is not answered, whatever came of the call', async () => {
    await using at = await house({
      wrap: (core) => ({
        ...core,
        rpc: {
          ...core.rpc,
          invoke: (_who, { signal }) =>
            new Promise((_done, fail) =>
              signal?.addEventListener('abort', () => fail(new Error('left')), { once: true }),
            ),
        },
      }),
    });
    const asker = await caller(at);
    asker.send({ ...INVOKE, ref: 'r1' });
    asker.send({ type: 'leave', ref: 'r1' });
    await asker.sync();
    expect(asker.all.filter((frame) => 'ref' in frame && frame.ref === 'r1')).toEqual([]);
    expect(at.logged.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('`leave` ends one wait, unanswered, frees its ref, and says nothing where there is none', async () => {
    await using at = await house();
    const peer = await client(at);
    const asker = await caller(at);
    asker.send({ ...INVOKE, ref: 'r1', command_id: 'c1' });
    asker.send({ ...INVOKE, ref: 'r2', command_id: 'c2' });
    await peer.next('command');
    asker.send({ type: 'leave', ref: 'r1' });
    asker.send({ type: 'leave', ref: 'never' });
    await expect.poll(() => waits(at)).toBe(1);
    asker.send({ type: 'await', ref: 'r1', client_id: 'tab', command_id: 'c1' });
    peer.send({ type: 'result', command_id: 'c1' }, 1);
    peer.send({ type: 'result', command_id: 'c2' }, 2);
    const refs = [await asker.next('outcome'), await asker.next('outcome')].map(
      ({ ref, payload }) => `${ref}=${payload}`,
    );
    expect(refs.sort()).toEqual(['r1=1', 'r2=2']);
    expect(asker.seen('outcome')).toHaveLength(2);
    expect(asker.seen('refused')).toEqual([]);
  });
});

test('a link of a caller leaves two lines in the log, without its token', async () => {
  await using at = await house();
  const peer = await caller(at);
  await at.clock.advance(700);
  peer.ws.close();
  await expect.poll(() => at.gateway.size).toBe(0);
  const lines = at.logged.filter(({ message }) => message.startsWith('caller link'));
  const who = 'user:alice';
  expect(lines).toEqual([
    { level: 'debug', fields: { who, nodeId: at.core.nodeId }, message: 'caller link opened' },
    {
      level: 'debug',
      fields: { who, nodeId: at.core.nodeId, cause: 'client_closed', durationMs: 700 },
      message: 'caller link closed',
    },
  ]);
});
