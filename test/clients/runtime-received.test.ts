/** Tests what the runtime says of its earlier links in each hello. */
import { describe, expect, test } from 'vitest';
import { gate, json, startRuntimeBench } from './kit/runtime-bench.ts';
import { FakeSockets } from './kit/fake-sockets.ts';
import { FakeClock } from '../kit/clock.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';

type Hello = { readonly link_attempt?: number | undefined; readonly payload: string | null };

function told({ link_attempt, payload }: Hello): unknown {
  const { received } = json(payload) as { received?: unknown };
  return [link_attempt, received];
}

describe('a hello', () => {
  test('counts the attempts, and names what arrived until its end is acknowledged', async () => {
    await using bench = await startRuntimeBench();
    const held = gate();
    bench.runtime.handle('hold', {}, () => held.opened);
    bench.runtime.handle('echo', {}, (params) => params);
    const first = await bench.up();
    expect(told(first.hello)).toEqual([1, []]);
    for (const id of ['taken', 'kept', 'again']) first.command(id, 'echo');
    first.command('runs', 'hold');
    first.command('refused', 'absent');
    for (const id of ['taken', 'kept', 'again']) expect((await first.next('result')).command_id).toBe(id);
    await first.next('error');
    first.acknowledge('taken');
    // A refusal is no acknowledgement: the relay has not recorded the end.
    first.send({ type: 'refused', code: 'invalid_argument', message: 'no', frame: 'result', command_id: 'again' });
    await first.untaken('result');
    const second = await bench.again(first);
    expect(told(second.hello)).toEqual([2, ['kept', 'again', 'runs', 'refused']]);
    held.open();
    await second.next('result');
    for (const id of ['runs', 'kept', 'refused']) second.acknowledge(id);
    await second.untaken('result');
    expect(told((await bench.again(second)).hello)).toEqual([3, ['again']]);
  });

  test('of a command that is repeated after its end was acknowledged does not name it', async () => {
    await using bench = await startRuntimeBench();
    let runs = 0;
    bench.runtime.handle('count', {}, () => ++runs);
    const first = await bench.up();
    first.command('c1', 'count');
    await first.next('result');
    first.acknowledge('c1');
    first.command('c1', 'count');
    expect(json((await first.next('result')).payload)).toBe(1);
    expect([told((await bench.again(first)).hello), runs]).toEqual([[2, []], 1]);
  });

  test('leaves out its attempt and what arrived if a frame cannot hold the list', async () => {
    await using bench = await startRuntimeBench({ admit: () => ({ max_frame_bytes: 4_096 }) });
    const held = gate();
    bench.runtime.handle('hold', {}, () => held.opened);
    const first = await bench.up();
    const ids = Array.from({ length: 50 }, (_, i) => `${i}`.padStart(100, 'c'));
    for (const id of ids) {
      first.command(id, 'hold');
      expect((await first.next('ack')).command_id).toBe(id);
    }
    const second = await bench.again(first);
    expect(told(second.hello)).toEqual([undefined, undefined]);
    held.open();
    for (const _ of ids) second.acknowledge(String((await second.next('result')).command_id));
    await second.untaken('result');
    expect(told((await bench.again(second)).hello)).toEqual([3, []]);
  });

  test('is said only when earlier sockets are given up: what these receive later is not handled', async () => {
    const clock = new FakeClock();
    const sockets = new FakeSockets();
    const ran: string[] = [];
    const runtime = createRuntime({
      ...{ url: 'ws://relay/connect', token: 't', clientId: 'desk', clientType: 'console', clock, random: () => 0 },
      WebSocket: sockets.Socket,
      actions: [{ name: 'note', run: (_, { commandId }) => void ran.push(commandId) }],
      onStatus: () => {},
    });
    runtime.connect();
    const first = await sockets.next();
    // The socket opens too late: it was given up.
    await clock.advance(15_000);
    const second = await sockets.next();
    first.open();
    expect([first.sent, first.closed]).toEqual([[], true]);
    second.open();
    expect(told(second.hello)).toEqual([2, []]);
    second.welcome();
    // Nothing is heard for too long, so the socket is given up with what it may still receive.
    await clock.advance(60_000);
    const third = await sockets.next();
    second.command('c1', 'note');
    third.open();
    second.command('c2', 'note');
    third.welcome();
    third.command('c3', 'note');
    await clock.advance(0);
    expect([told(third.hello), ran]).toEqual([[3, []], ['c3']]);
    second.receive({ type: 'bye', code: 4409, reason: 'replaced', reconnect: true });
    expect(runtime.status.state).toBe('connected');
    const closed = runtime.close({ withinMs: 0 });
    await clock.advance(0);
    await closed;
  });

  test('follows a close with 4409 that lets the instance come back, and none that does not', async () => {
    await using bench = await startRuntimeBench();
    const first = await bench.up();
    const away = bench.until('disconnected');
    first.send({ type: 'replaced', instance_id: 'i-1' });
    first.send({ type: 'bye', code: 4409, reason: 'replaced', reconnect: true });
    await bench.clock.advance((await away).retryInMs ?? 0);
    const second = await bench.up();
    expect(told(second.hello)).toEqual([2, []]);
    const closed = bench.until('closed');
    second.bye('replaced');
    expect(await closed).toMatchObject({ reason: 'replaced' });
  });
});
