/** Tests how a runtime pauses its calls: what it tells the relay, and what it refuses itself until the relay has answered. */
import { describe, expect, test } from 'vitest';
import type { Paused } from '../../src/clients/runtime/index.ts';
import type { FakeLink } from '../kit/fake-relay.ts';
import { startRuntimeBench } from './kit/runtime-bench.ts';

const WORK = [{ name: 'work', run: () => 'done' }];

async function acknowledge(link: FakeLink): Promise<unknown> {
  const { ref, op, reason, queued, running } = await link.next('pause');
  link.send({ type: 'pause_ack', ref });
  return { op, reason, queued, running };
}

/** Sends a command, which the client must refuse. Returns the code. */
async function refused(link: FakeLink, command_id: string): Promise<string> {
  link.send({ type: 'command', command_id, action: 'work', remaining_ms: 10_000 });
  return (await link.next('error')).code;
}

/** Sends a command, which the client must run. */
async function run(link: FakeLink, command_id: string): Promise<void> {
  link.send({ type: 'command', command_id, action: 'work', remaining_ms: 10_000 });
  expect(await link.next('result')).toMatchObject({ command_id });
}

describe('a runtime that is paused', () => {
  test('tells the relay why, and resolves when the relay has answered', async () => {
    await using bench = await startRuntimeBench();
    const link = await bench.up();
    const paused = bench.runtime.pause('lunch', { queued: 'cancel', running: 'cancel' });
    expect(await acknowledge(link)).toEqual({ op: 'pause', reason: 'lunch', queued: 'cancel', running: 'cancel' });
    await paused;
    const resumed = bench.runtime.resume();
    expect(await acknowledge(link)).toEqual({ op: 'resume' });
    await resumed;
    expect(bench.relay.faults).toEqual([]);
  });

  test('refuses commands itself until the relay has answered, and leaves them to the relay then', async () => {
    await using bench = await startRuntimeBench({ actions: WORK });
    const link = await bench.up();
    const paused = bench.runtime.pause('lunch');
    const { ref } = await link.next('pause');
    expect(await refused(link, 'c1')).toBe('paused');
    link.send({ type: 'pause_ack', ref });
    await paused;
    // The user may have ended the pause elsewhere.
    await run(link, 'c2');
  });

  test('keeps the wish without a link, refuses what comes first on the next one, and sends it again', async () => {
    await using bench = await startRuntimeBench({ actions: WORK });
    const first = await bench.up();
    const paused = bench.runtime.pause('lunch');
    await first.next('pause');
    const link = await bench.again(first);
    const { ref } = await link.next('pause');
    expect(await refused(link, 'c1')).toBe('paused');
    link.send({ type: 'pause_ack', ref });
    await paused;
    const next = await bench.again(link);
    expect(await next.untaken('pause')).toBe(0);
  });

  test('sends one wish at a time, and of several the last one', async () => {
    await using bench = await startRuntimeBench();
    const link = await bench.up();
    const all = [bench.runtime.pause('one'), bench.runtime.pause('two'), bench.runtime.resume()];
    const { ref, reason } = await link.next('pause');
    expect(reason).toBe('one');
    expect(await link.untaken('pause')).toBe(0);
    link.send({ type: 'pause_ack', ref });
    expect(await acknowledge(link)).toEqual({ op: 'resume' });
    await Promise.all(all);
  });

  test('rejects what the relay refuses for good, and is not paused then; asks again after another refusal', async () => {
    await using bench = await startRuntimeBench({ actions: WORK });
    const link = await bench.up();
    const paused = bench.runtime.pause('lunch');
    const { ref } = await link.next('pause');
    link.send({ type: 'refused', frame: 'pause', ref, code: 'not_supported', message: 'In words.' });
    await expect(paused).rejects.toMatchObject({ name: 'PauseRefusedError', code: 'not_supported' });
    await run(link, 'c1');
    const again = bench.runtime.pause('lunch');
    const { ref: later } = await link.next('pause');
    link.send({ type: 'refused', frame: 'pause', ref: later, code: 'store_unavailable', message: 'In words.' });
    expect(await link.untaken('pause')).toBe(0);
    await bench.clock.advance(1_000);
    await acknowledge(link);
    await again;
  });

  test('ends every wait when it closes permanently, and checks what it is given', async () => {
    await using bench = await startRuntimeBench();
    await bench.up();
    expect(() => bench.runtime.pause('x', { queued: 'drop' as never })).toThrow(TypeError);
    expect(() => bench.runtime.pause(7 as never)).toThrow(TypeError);
    const paused = bench.runtime.pause('lunch');
    await bench.runtime.close({ withinMs: 0 });
    await expect(paused).rejects.toMatchObject({ name: 'LinkClosedError', reason: 'client_closed' });
    await expect(bench.runtime.resume()).rejects.toMatchObject({ name: 'LinkClosedError' });
  });
});

describe('a runtime that the relay tells of a pause', () => {
  test('shows it from welcome on, each change once, and its end', async () => {
    const seen: (Paused | null)[] = [];
    const welcomes = [{ paused_by: 'admin ops', paused_reason: 'runs wild', paused_until: 7_000 }, {}, {}];
    const onPaused = (paused: Paused | null): void => void seen.push(paused);
    await using bench = await startRuntimeBench({ onPaused, admit: () => welcomes.shift() ?? {} });
    expect(bench.runtime.paused).toBeNull();
    const first = await bench.up();
    const wild = { by: 'admin ops', reason: 'runs wild', until: 7_000 };
    expect([bench.runtime.paused, seen]).toEqual([wild, [wild]]);
    // It has ended while there was no link.
    const second = await bench.again(first);
    expect([bench.runtime.paused, seen.length]).toEqual([null, 2]);
    second.send({ type: 'paused', paused_by: 'user alice', paused_reason: 'lunch' });
    await expect.poll(() => bench.runtime.paused).toEqual({ by: 'user alice', reason: 'lunch', until: null });
    second.send({ type: 'paused' });
    await expect.poll(() => bench.runtime.paused).toBeNull();
    // An older relay says nothing.
    await bench.again(second);
    expect(seen).toEqual([wild, null, { by: 'user alice', reason: 'lunch', until: null }, null]);
  });
});
