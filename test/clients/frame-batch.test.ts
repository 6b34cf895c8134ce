/** Tests how clients join the frames of one turn of the event loop into messages. */
import { describe, expect, test } from 'vitest';
import { FRAME_SEPARATOR } from '../../src/protocol/frame-codec.ts';
import { FrameBatch } from '../../src/clients/link/session.ts';
import type { Welcome } from '../../src/clients/link/link-status.ts';
import { startRuntimeBench } from './kit/runtime-bench.ts';

function start(given: Partial<Welcome> = {}) {
  const sent: string[] = [];
  const batch = new FrameBatch((message) => sent.push(message) > 0);
  const welcome = { type: 'welcome', payload: null, node_id: 'n', ping_ms: 1, dead_ms: 1, in_flight: 1 } as const;
  batch.allow({ ...welcome, max_frame_bytes: 3_000, ...given });
  return { sent, batch };
}

describe('the frames of a turn', () => {
  test('leave at once for a relay that reads one frame from a message', () => {
    const { sent, batch } = start();
    for (const text of ['a', 'b']) expect(batch.send(text)).toBe(true);
    expect(sent).toEqual(['a', 'b']);
  });

  test('leave in one message, in order, also when promises of different depths send them', async () => {
    const { sent, batch } = start({ frames_per_message: 8 });
    const after = async (hops: number): Promise<void> => {
      for (let hop = 0; hop < hops; hop++) await null;
      batch.send(`after ${hops}`);
    };
    await Promise.all([0, 1, 2, 3].map(after));
    await new Promise((done) => setImmediate(done));
    expect(sent).toEqual([['after 0', 'after 1', 'after 2', 'after 3'].join(FRAME_SEPARATOR)]);
  });

  test('leave in one message once no microtask sends more, or at once when told to', async () => {
    const { sent, batch } = start({ frames_per_message: 8 });
    for (const text of ['a', 'b', 'c']) batch.send(text);
    expect(sent).toEqual([]);
    expect(batch.chars).toBe(6);
    await new Promise((done) => setImmediate(done));
    expect(sent).toEqual([['a', 'b', 'c'].join(FRAME_SEPARATOR)]);
    batch.send('d');
    batch.flush();
    expect(sent.at(-1)).toBe('d');
    expect(batch.chars).toBe(0);
    await new Promise((done) => setImmediate(done));
    expect(sent).toHaveLength(2);
  });

  test('never exceed the frames or the bytes of a message', async () => {
    const { sent, batch } = start({ frames_per_message: 2 });
    const long = 'é'.repeat(900);
    for (const text of ['a', 'b', 'c', long, 'd', 'é'.repeat(2_000)]) batch.send(text);
    await new Promise((done) => setImmediate(done));
    expect(sent.map((message) => message.split(FRAME_SEPARATOR).map(({ length }) => length))).toEqual([
      [1, 1],
      [1, 900],
      [1],
      [2_000],
    ]);
    expect(sent.slice(0, 3).every((message) => Buffer.byteLength(message) <= 3_000)).toBe(true);
  });
});

test('an ack has left before its handler starts, and every frame arrives', async () => {
  const sent: string[] = [];
  class RecordingSocket extends WebSocket {
    override send(text: string): void {
      sent.push(text);
      super.send(text);
    }
  }
  const ackedFirst: boolean[] = [];
  await using bench = await startRuntimeBench({
    admit: () => ({ frames_per_message: 64 }),
    WebSocket: RecordingSocket,
  });
  bench.runtime.handle('look', {}, (_, { commandId }) => {
    ackedFirst.push(sent.some((text) => text.includes(`{"type":"ack","command_id":"${commandId}"}`)));
    return 'done';
  });
  const link = await bench.up();
  const ids = Array.from({ length: 20 }, (_, n) => `c${n}`);
  for (const id of ids) link.command(id, 'look');
  for (const id of ids) {
    expect(await link.next('ack')).toMatchObject({ command_id: id });
    expect(await link.next('result')).toMatchObject({ command_id: id, payload: '"done"' });
  }
  expect(ackedFirst).toEqual(ids.map(() => true));
  expect(bench.relay.faults).toEqual([]);
});
