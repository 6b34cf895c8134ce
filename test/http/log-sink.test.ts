/** Tests that log lines are written without blocking, in order, and within a bound. */
import { describe, expect, it } from 'vitest';
import { createStderrSink } from '../../src/platform/log.ts';

/** Creates a file that accepts at most `room` bytes before it is full. */
function pipe(room: number) {
  const taken: Buffer[] = [];
  let left = room;
  return {
    text: () => Buffer.concat(taken).toString(),
    drain: (bytes: number) => void (left += bytes),
    write(bytes: Uint8Array): number {
      if (left === 0) throw Object.assign(new Error('full'), { code: 'EAGAIN' });
      const part = Buffer.from(bytes.subarray(0, left));
      taken.push(part);
      left -= part.length;
      return part.length;
    },
  };
}

describe('the sink of the log', () => {
  it('writes the lines of a tick together, at its end', async () => {
    const writes: string[] = [];
    const sink = createStderrSink((bytes) => writes.push(Buffer.from(bytes).toString()) && bytes.length);
    sink.write('one\n');
    sink.write('two\n');
    expect(writes).toEqual([]);
    await new Promise(setImmediate);
    expect(writes).toEqual(['one\ntwo\n']);
  });

  it('waits for a full pipe without blocking, and keeps every byte in order', async () => {
    const to = pipe(3);
    const sink = createStderrSink(to.write);
    sink.write('äöü one\n');
    await new Promise(setImmediate);
    sink.write('two\n');
    to.drain(1_000);
    await expect.poll(to.text).toBe('äöü one\ntwo\n');
  });

  it('drops lines beyond its bound, and continues with the next ones once the reader catches up', async () => {
    const to = pipe(0);
    const sink = createStderrSink(to.write);
    const line = `${'x'.repeat(99)}\n`;
    for (let i = 0; i < 20_000; i++) sink.write(line);
    await new Promise(setImmediate);
    to.drain(100_000_000);
    await expect.poll(() => to.text().length).toBeGreaterThan(1_000_000);
    expect(to.text().length).toBeLessThan(1_100_000);
    expect(to.text().length % line.length).toBe(0);
    sink.write('later\n');
    await expect.poll(to.text).toMatch(/later\n$/);
  });

  it('ignores a reader that has closed', async () => {
    let gone = true;
    const writes: string[] = [];
    const sink = createStderrSink((bytes) => {
      if (gone) throw Object.assign(new Error('closed'), { code: 'EPIPE' });
      return writes.push(Buffer.from(bytes).toString()) && bytes.length;
    });
    sink.write('lost\n');
    await new Promise(setImmediate);
    gone = false;
    sink.write('kept\n');
    await new Promise(setImmediate);
    expect(writes).toEqual(['kept\n']);
  });
});
