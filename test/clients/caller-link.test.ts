/** Tests the caller library over a link. */
import { describe, expect, test } from 'vitest';
import { CallerError, createLinkCaller, type Caller, type LinkStatus } from '../../src/clients/caller/index.ts';
import { FakeClock } from '../kit/clock.ts';
import { startFakeRelay, type Admission, type FakeLink, type FakeRelay } from '../kit/fake-relay.ts';
import { json } from './kit/runtime-bench.ts';

type Bench = AsyncDisposable & {
  readonly relay: FakeRelay;
  readonly caller: Caller;
  readonly clock: FakeClock;
  /** Breaks the link and lets the caller reconnect. */
  again(link: FakeLink): Promise<FakeLink>;
};

const lamp = { userId: 'alice', clientId: 'desk', action: 'lamp.set' };
const handle = { userId: 'alice', clientId: 'desk', commandId: 'c1' };
const ended = { stage: 'terminal', execution: 'reported_by_client' } as const;

async function startBench(admit?: () => Admission): Promise<Bench> {
  const relay = await startFakeRelay(admit);
  const clock = new FakeClock();
  const away: (() => void)[] = [];
  const onStatus = ({ state }: LinkStatus): void => {
    if (state === 'disconnected') away.shift()?.();
  };
  const caller = createLinkCaller({ url: relay.url, token: 't', clock, random: () => 0.9, onStatus });
  async function again(link: FakeLink): Promise<FakeLink> {
    const lost = new Promise<void>((resolve) => away.push(resolve));
    link.drop();
    await lost;
    await clock.advance(30_000 / 2 ** 5);
    return relay.link();
  }
  async function dispose(): Promise<void> {
    await caller.close();
    await relay[Symbol.asyncDispose]();
  }
  return { relay, caller, clock, again, [Symbol.asyncDispose]: dispose };
}

describe('a caller on a link', () => {
  test('says hello as a caller only, invokes, receives stages and gets the result', async () => {
    await using bench = await startBench();
    const stages: string[] = [];
    const options = { commandId: 'c1', respondWithinMs: 5_000, traceId: 't', onStage: (s: string) => stages.push(s) };
    const invoked = bench.caller.invoke<{ was: boolean }>(lamp, { on: true }, options);
    const link = await bench.relay.link();
    expect(link.hello).toEqual({ type: 'hello', token: 't', payload: null });
    const { ref, payload, ...frame } = await link.next('invoke');
    expect(frame).toEqual({
      ...{ type: 'invoke', user_id: 'alice', client_id: 'desk', action: 'lamp.set' },
      ...{ command_id: 'c1', stages: 'all', respond_within_ms: 5_000, trace_id: 't' },
    });
    expect(json(payload)).toEqual({ on: true });
    for (const stage of ['admitted', 'dispatched']) link.send({ type: 'stage', ref, command_id: 'c1', stage });
    const proven = { ...ended, last_proven_stage: 'acknowledged' };
    link.send(
      { type: 'outcome', ref, command_id: 'c1', rpc_id: 'w1', outcome: 'completed', ...proven },
      { was: false },
    );
    const invocation = await invoked;
    expect(invocation).toEqual({
      handle,
      rpcId: 'w1',
      lastProvenStage: 'acknowledged',
      ...ended,
      outcome: 'completed',
      result: { was: false },
    });
    if (invocation.outcome === 'completed') expect(invocation.result.was).toBe(false);
    expect(stages).toEqual(['admitted', 'dispatched']);
    expect(bench.relay.faults).toEqual([]);
  });

  test('distinguishes every outcome', async () => {
    await using bench = await startBench();
    const error = { error_code: 'lease_busy', error_message: 'busy' };
    const answers = [
      [
        { outcome: 'failed', ...error },
        { outcome: 'failed', error: { code: 'lease_busy', message: 'busy' } },
      ],
      [
        { outcome: 'expired', error_code: 'connect_timeout' },
        { outcome: 'expired', error: { code: 'connect_timeout' } },
      ],
      [{ outcome: 'outcome_unknown', ...error }, { outcome: 'outcome_unknown' }],
      [{ outcome: 'cancelled' }, { outcome: 'cancelled', partial: null }],
      [{ stage: 'acknowledged' }, { outcome: 'pending', stage: 'acknowledged' }],
    ] as const;
    const waits = answers.map(([answer]) => ('stage' in answer ? ({ waitFor: 'acknowledged' } as const) : {}));
    const all = waits.map((options) => bench.caller.invoke(lamp, {}, options));
    const link = await bench.relay.link();
    for (const [n, [answer, seen]] of answers.entries()) {
      const { ref, command_id = '' } = await link.next('invoke');
      link.send({ type: 'outcome', ref, command_id, ...ended, ...answer });
      expect(await all[n]).toMatchObject(seen);
    }
  });

  test('throws a refusal as CallerError with its code, the refusing check and the retry time', async () => {
    await using bench = await startBench();
    const invoked = bench.caller.invoke(lamp, {}, { commandId: 'c1' });
    const link = await bench.relay.link();
    const { ref } = await link.next('invoke');
    const refusal = { type: 'refused', code: 'queue_full', message: 'full', frame: 'invoke', ref } as const;
    link.send({ ...refusal, by: 'capacity', retry_after_ms: 1_000 });
    await expect(invoked).rejects.toThrow(CallerError);
    await expect(invoked).rejects.toMatchObject({ code: 'queue_full', by: 'capacity', retryAfterMs: 1_000, handle });
  });

  test('awaits and cancels by the handle', async () => {
    await using bench = await startBench();
    const awaited = bench.caller.await(handle, { waitFor: 'acknowledged', withinMs: 0 });
    const cancelled = bench.caller.cancel(handle, 'enough');
    const link = await bench.relay.link();
    const { ref } = await link.next('await');
    link.send({ type: 'outcome', ref, command_id: 'c1', stage: 'dispatched', execution: 'may_have_run' });
    expect(await awaited).toMatchObject({ outcome: 'pending', stage: 'dispatched' });
    const cancel = await link.next('cancel');
    expect(cancel).toMatchObject({ command_id: 'c1', reason: 'enough' });
    link.send({ type: 'receipt', ref: cancel.ref, command_id: 'c1', state: 'requested' });
    expect(await cancelled).toEqual({ handle, state: 'requested' });
  });
});

describe('a wait that the relay ended before its stage and its time', () => {
  const lives = { type: 'outcome', command_id: 'c1', stage: 'dispatched', execution: 'may_have_run' } as const;

  test('continues over the next link, by await', async () => {
    await using bench = await startBench();
    const invoked = bench.caller.invoke(lamp, {}, { commandId: 'c1' });
    const link = await bench.relay.link();
    const { ref } = await link.next('invoke');
    link.send({ ...lives, ref });
    const next = await bench.again(link);
    const awaited = await next.next('await');
    expect(awaited).toMatchObject({ ref, command_id: 'c1', within_ms: expect.any(Number) });
    next.send({ type: 'outcome', ref, command_id: 'c1', outcome: 'completed', ...ended }, { was: true });
    expect(await invoked).toMatchObject({ outcome: 'completed', result: { was: true } });
  });

  test('is pending if the link stays up', async () => {
    await using bench = await startBench();
    const invoked = bench.caller.invoke(lamp, {}, { commandId: 'c1' });
    const link = await bench.relay.link();
    const { ref } = await link.next('invoke');
    const received = Promise.withResolvers<string>();
    const other = bench.caller.invoke(lamp, {}, { onStage: received.resolve });
    const { ref: otherRef } = await link.next('invoke');
    link.send({ ...lives, ref });
    link.send({ type: 'stage', ref: otherRef, command_id: 'c2', stage: 'admitted' });
    await received.promise;
    await bench.clock.advance(1_000);
    expect(await invoked).toMatchObject({ outcome: 'pending', stage: 'dispatched', handle });
    link.send({ type: 'outcome', ref: otherRef, command_id: 'c2', outcome: 'completed', ...ended });
    await other;
  });
});

describe('a wait that was cut by a lost link', () => {
  test('continues by await with the same command id and the remaining time, once the command was admitted', async () => {
    await using bench = await startBench();
    const admitted = Promise.withResolvers<string>();
    const options = { commandId: 'c1', respondWithinMs: 20_000, onStage: admitted.resolve };
    const began = performance.now();
    const invoked = bench.caller.invoke(lamp, {}, options);
    const link = await bench.relay.link();
    const { ref } = await link.next('invoke');
    link.send({ type: 'stage', ref, command_id: 'c1', stage: 'admitted' });
    await admitted.promise;
    const next = await bench.again(link);
    const resumed = await next.next('await');
    expect(resumed).toMatchObject({ user_id: 'alice', client_id: 'desk', command_id: 'c1' });
    const elapsed = performance.now() - began;
    expect(resumed.within_ms).toBeLessThan(20_000);
    expect(resumed.within_ms).toBeGreaterThan(20_000 - elapsed - 1_000);
    next.send({ type: 'outcome', ref: resumed.ref, command_id: 'c1', outcome: 'completed', ...ended }, 7);
    expect(await invoked).toMatchObject({ outcome: 'completed', result: 7 });
    expect(await next.untaken('invoke')).toBe(0);
  });

  test('is invoked again under the same id if its admission was not confirmed', async () => {
    await using bench = await startBench();
    const invoked = bench.caller.invoke(lamp, { on: 1 });
    const link = await bench.relay.link();
    const first = await link.next('invoke');
    const next = await bench.again(link);
    const second = await next.next('invoke');
    expect(second).toEqual(first);
    expect(first.command_id).toMatch(/^c-[0-9a-f]{32}$/);
    next.send({ type: 'outcome', ref: second.ref, command_id: 'x', outcome: 'completed', ...ended });
    expect(await invoked).toMatchObject({ outcome: 'completed', result: null });
  });

  test('may have run if it is refused after its first link broke: what was written there may still be admitted', async () => {
    await using bench = await startBench();
    const invoked = bench.caller.invoke(lamp, {}, { commandId: 'c1' });
    const seen = expect(invoked).rejects.toMatchObject({ code: 'context_gone', mayHaveRun: true, handle });
    const link = await bench.relay.link();
    await link.next('invoke');
    const next = await bench.again(link);
    const { ref } = await next.next('invoke');
    next.send({ type: 'refused', code: 'context_gone', message: 'Gone.', frame: 'invoke', ref });
    await seen;
    await expect(invoked).rejects.toThrow(/^Gone\. The request was written: it may have run\./);
    const refused = bench.caller.invoke(lamp, {}, { commandId: 'c2' });
    const proven = expect(refused).rejects.toMatchObject({ code: 'context_gone', mayHaveRun: false, message: 'Gone.' });
    const { ref: other } = await next.next('invoke');
    next.send({ type: 'refused', code: 'context_gone', message: 'Gone.', frame: 'invoke', ref: other });
    await proven;
  });

  test('ends outcome_unknown when the relay forgot a command that it had admitted', async () => {
    await using bench = await startBench();
    const admitted = Promise.withResolvers<string>();
    const invoked = bench.caller.invoke(lamp, {}, { onStage: admitted.resolve });
    const link = await bench.relay.link();
    const { ref } = await link.next('invoke');
    link.send({ type: 'stage', ref, command_id: 'c1', stage: 'queued' });
    await admitted.promise;
    const next = await bench.again(link);
    const resumed = await next.next('await');
    next.send({ type: 'refused', code: 'not_found', message: 'no', frame: 'await', ref: resumed.ref });
    expect(await invoked).toMatchObject({ outcome: 'outcome_unknown', error: { code: 'store_lost' } });
  });

  test('is bounded: without a relay it ends as unreachable after its budget and a grace period', async () => {
    await using bench = await startBench(() => 'silence');
    const invoked = bench.caller.invoke(lamp, {}, { commandId: 'c1', respondWithinMs: 1_000 });
    const seen = expect(invoked).rejects.toMatchObject({ code: 'unreachable', handle });
    await bench.relay.link();
    await bench.clock.advance(16_000);
    await seen;
  });
});

describe('leaving a wait', () => {
  test('by the signal rejects with its reason and notifies the relay, without a cancel', async () => {
    await using bench = await startBench();
    const abort = new AbortController();
    const invoked = bench.caller.invoke(lamp, {}, { signal: abort.signal });
    const link = await bench.relay.link();
    const { ref } = await link.next('invoke');
    abort.abort(new Error('enough'));
    await expect(invoked).rejects.toThrow('enough');
    expect(await link.next('leave')).toMatchObject({ ref });
    expect(await link.untaken('cancel')).toBe(0);
    await expect(bench.caller.invoke(lamp, {}, { signal: abort.signal })).rejects.toThrow('enough');
    expect(await link.untaken('invoke')).toBe(0);
  });

  test('by close ends all waits, and later calls too', async () => {
    await using bench = await startBench();
    const invoked = bench.caller.invoke(lamp);
    await bench.relay.link();
    const seen = expect(invoked).rejects.toMatchObject({ code: 'closed' });
    await bench.caller.close();
    await seen;
    await expect(bench.caller.await(handle)).rejects.toMatchObject({ code: 'closed', handle });
  });

  test('ends all waits when the relay closes the link permanently', async () => {
    await using bench = await startBench(() => 'forbidden');
    await expect(bench.caller.invoke(lamp)).rejects.toMatchObject({ code: 'forbidden' });
  });
});

test('at most 256 requests are unanswered on the link; further ones wait for their turn', async () => {
  await using bench = await startBench();
  const all = Array.from({ length: 300 }, (_, n) => bench.caller.invoke<number>(lamp, { n }));
  const link = await bench.relay.link();
  const refs: string[] = [];
  for (let n = 0; n < 256; n++) refs.push((await link.next('invoke')).ref);
  expect(await link.untaken('invoke')).toBe(0);
  for (const ref of refs) link.send({ type: 'outcome', ref, command_id: 'x', outcome: 'completed', ...ended }, 1);
  for (let n = 256; n < 300; n++) {
    const { ref } = await link.next('invoke');
    link.send({ type: 'outcome', ref, command_id: 'x', outcome: 'completed', ...ended }, 2);
  }
  const results = (await Promise.all(all)).map((each) => (each.outcome === 'completed' ? each.result : null));
  expect(results).toEqual([...Array<number>(256).fill(1), ...Array<number>(44).fill(2)]);
  expect(bench.relay.faults).toEqual([]);
});
