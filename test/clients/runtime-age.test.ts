/** Tests that the runtime knows how old a command is, and starts none whose time is over. */
import { describe, expect, test } from 'vitest';
import { createRuntime, type RuntimeOptions } from '../../src/clients/runtime/index.ts';
import { FakeClock } from '../kit/clock.ts';
import { FakeSockets, type FakeSocket } from './kit/fake-sockets.ts';
import { gate } from './kit/runtime-bench.ts';

type Ran = { readonly id: string; readonly leftMs: number };

async function open(options: Partial<RuntimeOptions> = {}) {
  const clock = new FakeClock();
  const sockets = new FakeSockets();
  const ran: Ran[] = [];
  const runtime = createRuntime({
    ...{ url: 'ws://relay/connect', token: 't', clientId: 'desk', clientType: 'console', clock, random: () => 0 },
    WebSocket: sockets.Socket,
    actions: [
      { name: 'note', run: (_, call) => void ran.push({ id: call.commandId, leftMs: call.remainingMs() }) },
      { name: 'asked', approval: true, run: (_, call) => void ran.push({ id: call.commandId, leftMs: 0 }) },
    ],
    onStatus: () => {},
    ...options,
  });
  runtime.connect();
  const next = async (at_ms: number | undefined = 0): Promise<FakeSocket> => {
    const socket = await sockets.next();
    socket.open();
    socket.welcome(at_ms === undefined ? {} : { at_ms });
    return socket;
  };
  const close = async (): Promise<void> => {
    const closed = runtime.close({ withinMs: 0 });
    await clock.advance(0);
    await closed;
  };
  return { clock, runtime, ran, next, sockets, [Symbol.asyncDispose]: close };
}

const codes = (socket: FakeSocket): unknown[] => socket.of('error').map(({ command_id, code }) => [command_id, code]);

describe('a command', () => {
  test('is as old as its frame was late, beyond the least delay of the link', async () => {
    await using bench = await open();
    const { clock, ran } = bench;
    const socket = await bench.next();
    await clock.advance(1_000);
    // The welcome had come 40 ms late, as this frame shows, so the frame after it has an age of 240 ms.
    socket.receive({ type: 'ping', at_ms: 1_040 });
    await clock.advance(200);
    socket.command('c1', 'note', { at_ms: 1_000, remaining_ms: 5_000 });
    await clock.advance(0);
    expect(ran).toEqual([{ id: 'c1', leftMs: 4_760 }]);
  });

  test('whose time was over when it arrived is refused as too late: nothing ran', async () => {
    await using bench = await open();
    const { clock, ran } = bench;
    const socket = await bench.next();
    // The process stops for 40 s. Then it reads at once what the relay sent meanwhile.
    await clock.leap(40_000);
    socket.command('over', 'note', { at_ms: 1_000, remaining_ms: 5_000 });
    socket.command('just', 'note', { at_ms: 35_000, remaining_ms: 5_000 });
    socket.command('left', 'note', { at_ms: 35_100, remaining_ms: 5_000 });
    await clock.advance(0);
    expect([ran, codes(socket), socket.of('ack').length]).toEqual([
      [{ id: 'left', leftMs: 100 }],
      ['over', 'just'].map((id) => [id, 'too_late']),
      1,
    ]);
  });

  test('whose relay does not say when it was sent runs as before', async () => {
    await using bench = await open();
    const socket = await bench.next(undefined);
    await bench.clock.leap(40_000);
    socket.command('c1', 'note', { remaining_ms: 5_000 });
    await bench.clock.advance(0);
    expect([bench.ran, codes(socket)]).toEqual([[{ id: 'c1', leftMs: 5_000 }], []]);
  });

  test('whose time is over right before its handler would start does not start', async () => {
    const decision = gate<boolean>();
    await using bench = await open({ approve: () => decision.opened });
    const socket = await bench.next();
    socket.command('c1', 'asked', { at_ms: 0, remaining_ms: 5_000 });
    // The script is busy until after the deadline. The timer of the deadline runs later than the decision.
    bench.clock.stall(6_000);
    decision.open(true);
    await bench.clock.advance(0);
    expect([bench.ran, codes(socket)]).toEqual([[], [['c1', 'too_late']]]);
  });

  test.each([3_600_000, -3_600_000])('has its time by elapsed time, through a step of %i ms', async (step) => {
    await using bench = await open();
    const { clock } = bench;
    const socket = await bench.next();
    let left = (): number => 0;
    const held = gate();
    bench.runtime.handle('hold', {}, (_, call) => {
      left = () => call.remainingMs();
      return held.opened;
    });
    socket.command('c1', 'hold', { at_ms: 0, remaining_ms: 5_000 });
    await clock.advance(1_000);
    clock.stepWall(step);
    await clock.advance(1_000);
    expect(left()).toBe(3_000);
    held.open();
  });
});

describe('a socket that was open while its machine slept', () => {
  test('longer than dead_ms is given up before what it received is handled', async () => {
    await using bench = await open();
    const { clock, ran, runtime } = bench;
    const socket = await bench.next();
    clock.stall(60_000);
    socket.command('c1', 'note', { at_ms: 100, remaining_ms: 300_000 });
    expect([runtime.status.state, socket.closed]).toEqual(['disconnected', true]);
    await clock.advance(500);
    const again = await bench.next();
    expect(again.hello.payload).toMatch(/"received":\[\]/);
    again.command('c1', 'note', { at_ms: 100, remaining_ms: 240_000 });
    await clock.advance(0);
    expect(ran.map(({ id }) => id)).toEqual(['c1']);
  });

  test('is given up if elapsed time stood still, and kept if the clock was set back', async () => {
    await using bench = await open();
    const { clock, runtime, ran } = bench;
    const socket = await bench.next();
    clock.stepWall(-3_600_000);
    socket.command('c1', 'note', { at_ms: 0 });
    await clock.advance(0);
    expect([runtime.status.state, ran.length]).toEqual(['connected', 1]);
    // The machine sleeps for 30 s, in which its elapsed time does not count.
    clock.stepWall(30_000);
    socket.command('c2', 'note', { at_ms: 30_000, remaining_ms: 5_000 });
    await clock.advance(0);
    expect([socket.closed, ran.length]).toEqual([true, 1]);
  });
});
