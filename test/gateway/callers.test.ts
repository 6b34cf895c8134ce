/** Tests calls over a link, and callers that leave. */
import { describe, expect, test } from 'vitest';
import { admin } from '../kit/core.ts';
import { caller, client, startGateway, type TestGateway } from './kit/test-gateway.ts';

const INVOKE = { type: 'invoke', client_id: 'tab', action: 'open' } as const;

async function waits({ core }: TestGateway): Promise<number> {
  return (await core.rpc.count(admin, {})).count;
}

describe('a call over a link', () => {
  test('carries the params and the result unchanged, and reports the outcome', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const requester = await caller(at);
    requester.raw(`${JSON.stringify({ ...INVOKE, ref: 'r1', command_id: 'c1', trace_id: 't' })}\n{ "n":1.0 }`);
    expect(await peer.next('command')).toMatchObject({ command_id: 'c1', trace_id: 't', payload: '{ "n":1.0 }' });
    peer.raw('{"type":"result","command_id":"c1"}\n{ "v":2.0 }');
    expect(await requester.next('outcome')).toEqual({
      type: 'outcome',
      ref: 'r1',
      command_id: 'c1',
      rpc_id: expect.any(String),
      outcome: 'completed',
      stage: 'terminal',
      last_proven_stage: 'dispatched',
      execution: 'reported_by_client',
      payload: '{ "v":2.0 }',
    });
  });

  test('a failure has its code and message', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const requester = await caller(at);
    requester.send({ ...INVOKE, ref: 'r1', command_id: 'c1' });
    await peer.next('command');
    peer.send({ type: 'error', command_id: 'c1', code: 'client_denied', message: 'not now' });
    expect(await requester.next('outcome')).toMatchObject({
      outcome: 'failed',
      execution: 'refused_by_client',
      error_code: 'client_denied',
      error_message: 'not now',
      payload: null,
    });
  });

  test('the same link may be a client and a caller, also of itself', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    peer.send({ ...INVOKE, ref: 'r1', command_id: 'c1' });
    await peer.next('command');
    peer.send({ type: 'result', command_id: 'c1' }, 'mine');
    expect(await peer.next('outcome')).toMatchObject({ ref: 'r1', payload: '"mine"' });
  });

  test('a wait for admission ends with the stage, while the command lives', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const requester = await caller(at);
    requester.send({ ...INVOKE, ref: 'r1', command_id: 'c1', wait_for: 'admitted', stages: 'all' });
    const stage = await requester.next('stage');
    expect(stage).toMatchObject({ ref: 'r1', command_id: 'c1' });
    const outcome = await requester.next('outcome');
    expect(outcome).toMatchObject({ ref: 'r1', command_id: 'c1', stage: stage.stage });
    expect(outcome).not.toHaveProperty('outcome');
    requester.send({ type: 'await', ref: 'r2', client_id: 'tab', command_id: 'c1' });
    await peer.next('command');
    peer.send({ type: 'result', command_id: 'c1' }, 7);
    expect(await requester.next('outcome')).toMatchObject({ ref: 'r2', outcome: 'completed', payload: '7' });
  });

  test('a wait receives each stage of the command once, admission first', async () => {
    await using at = await startGateway();
    const requester = await caller(at);
    requester.send({ ...INVOKE, ref: 'r1', connect_within_ms: 10_000, stages: 'all' });
    const { command_id } = await requester.next('stage');
    requester.send({ type: 'await', ref: 'r2', client_id: 'tab', command_id, within_ms: 20_000, stages: 'all' });
    await expect.poll(() => requester.seen('stage').filter(({ ref }) => ref === 'r2')).toHaveLength(1);
    const peer = await client(at);
    await peer.next('command');
    // A caller may miss a stage that ends before the relay reads the state again.
    const reported = (stage: string) =>
      expect.poll(() => requester.seen('stage').filter((seen) => seen.stage === stage));
    await reported('dispatched').toHaveLength(2);
    peer.send({ type: 'ack', command_id });
    peer.send({ type: 'progress', command_id }, 1);
    peer.send({ type: 'progress', command_id }, 2);
    await reported('acknowledged').toHaveLength(2);
    await peer.sync();
    peer.send({ type: 'result', command_id });
    await requester.next('outcome');
    await requester.next('outcome');
    for (const requested of ['r1', 'r2']) {
      const frames = requester.all.filter((frame) => 'ref' in frame && frame.ref === requested);
      const stages = frames.flatMap((frame) => (frame.type === 'stage' ? [frame.stage] : []));
      expect(stages).toEqual(['admitted', 'dispatched', 'acknowledged']);
      expect(frames.at(-1)).toMatchObject({ type: 'outcome', command_id, stage: 'terminal' });
      expect(frames).toHaveLength(4);
    }
  });

  test('progress goes to the wait that requested it, with the numbers of the client; a report out of order is left out', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const requester = await caller(at);
    const silent = await caller(at);
    requester.send({ ...INVOKE, ref: 'r1', command_id: 'c1', progress: true, stages: 'all' });
    await peer.next('command');
    silent.send({ type: 'await', ref: 'r2', client_id: 'tab', command_id: 'c1', stages: 'first' });
    await silent.next('stage');
    const report = (number: number | undefined, payload: unknown) =>
      peer.send({ type: 'progress', command_id: 'c1', number }, payload);
    report(1, { done: 1 });
    report(4, 'four');
    report(2, 'too late');
    report(undefined, 'without a number');
    report(5, [5]);
    const news = () => requester.seen('progress').map(({ number, payload }) => [number, payload]);
    const expected = [
      [1, '{"done":1}'],
      [4, '"four"'],
      [undefined, '"without a number"'],
      [5, '[5]'],
    ];
    await expect.poll(news).toEqual(expected);
    peer.send({ type: 'result', command_id: 'c1' }, 'done');
    await requester.next('outcome');
    expect(requester.seen('progress').every(({ ref, command_id }) => ref === 'r1' && command_id === 'c1')).toBe(true);
    await silent.next('outcome');
    expect(silent.all.filter(({ type }) => type === 'progress')).toEqual([]);
  });

  test('it receives no stage that it did not request, and only the first if it requested only that', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const requester = await caller(at);
    requester.send({ ...INVOKE, ref: 'r1', command_id: 'c1' });
    requester.send({ ...INVOKE, ref: 'r2', command_id: 'c2', stages: 'first' });
    for (const command_id of ['c1', 'c2']) {
      await peer.next('command');
      peer.send({ type: 'ack', command_id });
      peer.send({ type: 'result', command_id });
      await requester.next('outcome');
    }
    expect(requester.seen('stage')).toEqual([
      { type: 'stage', ref: 'r2', command_id: 'c2', stage: 'queued', payload: null },
    ]);
    requester.send({ ...INVOKE, ref: 'r3', stages: 'some' as 'all' });
    expect(await requester.next('refused')).toMatchObject({ ref: 'r3', message: 'stages: expected one of first, all' });
  });

  test('a wait for the acknowledgement ends with it, once', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const requester = await caller(at);
    requester.send({ ...INVOKE, ref: 'r1', command_id: 'c1', wait_for: 'acknowledged', stages: 'all' });
    await peer.next('command');
    await expect.poll(() => requester.seen('stage').at(-1)?.stage).toBe('dispatched');
    peer.send({ type: 'ack', command_id: 'c1' });
    expect(await requester.next('outcome')).toMatchObject({ stage: 'acknowledged' });
    expect(requester.seen('stage').map(({ stage }) => stage)).toEqual([
      ...new Set(requester.seen('stage').map(({ stage }) => stage)),
    ]);
    expect(requester.seen('stage').at(-1)).toMatchObject({ stage: 'acknowledged' });
    peer.send({ type: 'result', command_id: 'c1' });
    await peer.next('result_ack');
    await requester.sync();
    expect(requester.all.at(-2)).toMatchObject({ type: 'outcome' });
  });

  test('the deadline ends it as unknown, with the last proven stage', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const requester = await caller(at);
    requester.send({ ...INVOKE, ref: 'r1', respond_within_ms: 1_000 });
    await peer.next('command');
    await at.clock.advance(2_000);
    expect(await requester.next('outcome')).toMatchObject({
      outcome: 'outcome_unknown',
      execution: 'may_have_run',
      error_code: 'response_timeout',
    });
  });

  test('cancel answers its receipt, and the caller receives the end', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const requester = await caller(at);
    requester.send({ ...INVOKE, ref: 'r1', command_id: 'c1' });
    await peer.next('command');
    requester.send({ type: 'cancel', ref: 'r2', client_id: 'tab', command_id: 'c1', reason: 'enough' });
    expect(await requester.next('receipt')).toMatchObject({ ref: 'r2', command_id: 'c1', state: 'requested' });
    expect(await peer.next('cancel')).toMatchObject({ reason: 'enough' });
    peer.send({ type: 'cancelled', command_id: 'c1' });
    expect(await requester.next('outcome')).toMatchObject({ ref: 'r1', outcome: 'cancelled' });
    requester.send({ type: 'cancel', ref: 'r3', client_id: 'tab', command_id: 'c1' });
    expect(await requester.next('receipt')).toMatchObject({ ref: 'r3', state: 'too_late' });
  });
});

describe('a caller that leaves', () => {
  test('by losing its link ends its waits, not its commands; another link can continue with the handle', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const requester = await caller(at);
    for (const i of [1, 2, 3]) requester.send({ ...INVOKE, ref: `r${i}`, command_id: `c${i}` });
    for (let i = 0; i < 3; i++) await peer.next('command');
    await expect.poll(() => waits(at)).toBe(3);
    requester.ws.terminate();
    await expect.poll(() => waits(at)).toBe(0);
    peer.send({ type: 'result', command_id: 'c1' }, 'done');
    await peer.next('result_ack');
    const again = await caller(at);
    again.send({ type: 'await', ref: 'a', client_id: 'tab', command_id: 'c1' });
    expect(await again.next('outcome')).toMatchObject({ outcome: 'completed', payload: '"done"' });
  });

  test('gets no answer, whatever the outcome of the call', async () => {
    await using at = await startGateway({
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
    const requester = await caller(at);
    requester.send({ ...INVOKE, ref: 'r1' });
    requester.send({ type: 'leave', ref: 'r1' });
    await requester.sync();
    expect(requester.all.filter((frame) => 'ref' in frame && frame.ref === 'r1')).toEqual([]);
    expect(at.logged.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('with `leave` ends one wait without an answer and frees its ref; an unknown ref is ignored', async () => {
    await using at = await startGateway();
    const peer = await client(at);
    const requester = await caller(at);
    requester.send({ ...INVOKE, ref: 'r1', command_id: 'c1' });
    requester.send({ ...INVOKE, ref: 'r2', command_id: 'c2' });
    await peer.next('command');
    requester.send({ type: 'leave', ref: 'r1' });
    requester.send({ type: 'leave', ref: 'never' });
    await expect.poll(() => waits(at)).toBe(1);
    requester.send({ type: 'await', ref: 'r1', client_id: 'tab', command_id: 'c1' });
    peer.send({ type: 'result', command_id: 'c1' }, 1);
    peer.send({ type: 'result', command_id: 'c2' }, 2);
    const refs = [await requester.next('outcome'), await requester.next('outcome')].map(
      ({ ref, payload }) => `${ref}=${payload}`,
    );
    expect(refs.sort()).toEqual(['r1=1', 'r2=2']);
    expect(requester.seen('outcome')).toHaveLength(2);
    expect(requester.seen('refused')).toEqual([]);
  });
});

test("a caller's link writes two log lines, without its token", async () => {
  await using at = await startGateway();
  const peer = await caller(at);
  await at.clock.advance(700);
  peer.ws.close();
  await expect.poll(() => at.gateway.size).toBe(0);
  const lines = at.logged.filter(({ message }) => message.startsWith('caller link'));
  const requester = 'user:alice';
  expect(lines).toEqual([
    { level: 'debug', fields: { requester, nodeId: at.core.nodeId }, message: 'caller link opened' },
    {
      level: 'debug',
      fields: { requester, nodeId: at.core.nodeId, cause: 'client_closed', closeCode: null, durationMs: 700 },
      message: 'caller link closed',
    },
  ]);
});
