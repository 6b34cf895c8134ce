/** Tests that an event stream ends when its token expires. */
import { expect, test } from 'vitest';
import { createExpiries, type Ending } from '../../src/web/sse.ts';
import { FakeClock } from '../kit/clock.ts';

function setUp() {
  const clock = new FakeClock();
  const waiting = new Set<object>();
  const timers = { armed: 0, waiting };
  const after: FakeClock['after'] = (ms, run) => {
    const timer = { number: ++timers.armed };
    waiting.add(timer);
    const cancel = clock.after(ms, () => (waiting.delete(timer), run()));
    return () => (waiting.delete(timer), cancel());
  };
  const expiries = createExpiries({
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after,
    every: clock.every.bind(clock),
  });
  const ended: string[] = [];
  const start = clock.now();
  const add = (name: string, ms: number | null): Ending => {
    const stream: Ending = {
      options: { onClose: () => {}, expiresAt: ms === null ? null : start + ms, lastChunk: null },
      end() {
        ended.push(`${name} at ${clock.now() - start}`);
        expiries.cancel(stream);
      },
    };
    expiries.add(stream);
    return stream;
  };
  return { clock, timers, expiries, ended, add };
}

test('each stream ends with its own token, to the millisecond, however many end in the same second', async () => {
  const { clock, ended, add, timers } = setUp();
  add('c', 2700);
  add('a', 2100);
  add('b', 2100);
  add('d', 2701);
  add('e', 5000);
  add('never', null);
  await clock.advance(2099);
  expect(ended).toEqual([]);
  await clock.advance(3000);
  expect(ended).toEqual(['a at 2100', 'b at 2100', 'c at 2700', 'd at 2701', 'e at 5000']);
  expect(timers.waiting.size).toBe(0);
});

test('a thousand streams of one second need one timer, and none after all have closed', () => {
  const { expiries, add, timers } = setUp();
  const streams = Array.from({ length: 1000 }, (_, i) => add(`${i}`, 60_000 + i));
  expect([timers.armed, timers.waiting.size]).toEqual([1, 1]);
  for (const stream of streams) expiries.cancel(stream);
  expect([timers.armed, timers.waiting.size]).toEqual([1, 0]);
});

test('a stream that closed before its time is not ended again', async () => {
  const { clock, expiries, ended, add } = setUp();
  const gone = add('gone', 1000);
  add('here', 1500);
  expiries.cancel(gone);
  expiries.cancel(gone);
  await clock.advance(1600);
  expect(ended).toEqual(['here at 1500']);
});

test('a stream that is slow to close does not prevent later ones of its second from ending', async () => {
  const { clock, ended, expiries, add } = setUp();
  const start = clock.now();
  const slow: Ending = {
    options: { onClose: () => {}, expiresAt: start + 1200, lastChunk: null },
    end: () => void ended.push('slow'),
  };
  expiries.add(slow);
  await clock.advance(1300);
  add('late', 1800);
  await clock.advance(600);
  expiries.cancel(slow);
  expect(ended).toEqual(['slow', 'late at 1800']);
});
