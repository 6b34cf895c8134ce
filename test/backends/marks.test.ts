/** Tests what the memory backend keeps of an ended command whose record was dropped: how long, and for which user. */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { CommandMarks } from '../../src/backends/memory/commands-marks.ts';
import { NO_DIGEST, type CommandMark } from '../../src/core/commands/command.ts';
import { createUuids } from '../../src/platform/system.ts';

const WINDOW = 3_600_000;
const T0 = 1_800_000_000_000;

function opened(windowMs = WINDOW) {
  const dropped: [string, number][] = [];
  const onDropped = (owner: string, count: number): void => void dropped.push([owner, count]);
  return { marks: new CommandMarks<string>({ secret: 'x', windowMs, onDropped }), dropped };
}

const key = (commandId: string, userId = 'alice') => ({ userId, clientId: 'tab', commandId });

it('returns every mark unchanged until the exact millisecond at which its window ends', () => {
  const mark: fc.Arbitrary<CommandMark> = fc.record({
    outcome: fc.constantFrom('completed', 'failed', 'cancelled', 'expired', 'outcome_unknown'),
    execution: fc.constantFrom('not_written', 'refused_by_client', 'may_have_run', 'reported_by_client'),
    errorCode: fc.constantFrom(null, 'handler_failed', 'node_lost', 'invalid_argument', 'cancelled'),
    endedAt: fc.integer({ min: T0, max: T0 + WINDOW }),
    resultExpired: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.constantFrom(60_000, 60_007, WINDOW, 86_400_000), fc.array(mark), (windowMs, given) => {
      const { marks } = opened(windowMs);
      given.forEach((one, i) => marks.add(key(`c${i}`), 'd', { mark: one, owner: 'alice' }));
      given.forEach((one, i) => {
        expect(marks.find(key(`c${i}`), 'd', one.endedAt + windowMs - 1)).toEqual(one);
        expect(marks.find(key(`c${i}`), 'e', one.endedAt)).toBe('conflict');
        expect(marks.find(key(`c${i}`), null, one.endedAt + windowMs)).toBeNull();
        expect(marks.find(key(`c${i}`, 'bob'), 'd', one.endedAt)).toBeNull();
      });
    }),
  );
});

it('drops whole generations, and reports how many marks each owner had', () => {
  const { marks, dropped } = opened();
  const ended = (endedAt: number): CommandMark => ({
    ...{ outcome: 'completed', execution: 'reported_by_client', errorCode: null },
    ...{ endedAt, resultExpired: true },
  });
  const from = Math.ceil(T0 / (WINDOW / 12)) * (WINDOW / 12);
  for (let i = 0; i < 24; i++)
    marks.add(key(`c${i}`), 'd', { mark: ended(from + i * 150_000), owner: i < 3 ? 'a' : 'b' });
  marks.watch('unmarked', from);
  marks.expire(from + WINDOW + 299_999);
  expect(dropped).toEqual([]);
  marks.expire(from + WINDOW + 300_000);
  expect([dropped, marks.size]).toEqual([
    [
      ['a', 2],
      ['unmarked', 0],
    ],
    22,
  ]);
  marks.expire(from + WINDOW + 600_000);
  expect(dropped.slice(2)).toEqual([
    ['a', 1],
    ['b', 1],
  ]);
  marks.expire(from + 2 * WINDOW + 300_000);
  expect([marks.size, marks.bytes]).toEqual([0, 0]);
});

it('reads the marks that are there at one time, and counts no others for their owners', () => {
  const { marks } = opened();
  const ended = (endedAt: number): CommandMark => ({
    ...{ outcome: 'completed', execution: 'reported_by_client', errorCode: null },
    ...{ endedAt, resultExpired: true },
  });
  let added = 0;
  const add = (owner: string, endedAt: number) => marks.add(key(`c${added++}`), 'd', { mark: ended(endedAt), owner });
  const read = () => {
    let size = 0;
    const counts = new Map<string, number>();
    const { shards, owners } = marks.read();
    // Something is added before each part.
    const next = (): void => ['a', 'b', `new${added}`].forEach((owner) => add(owner, T0 + added * 1_000));
    next();
    for (const part of shards) {
      size += part.marks.codes.length;
      next();
    }
    for (const { owner, count } of owners) {
      if (count > 0) counts.set(owner, (counts.get(owner) ?? 0) + count);
      add('a', T0);
    }
    return { size, counts };
  };
  for (let i = 0; i < 40; i++) add(i < 30 ? 'a' : 'b', T0 + i * 30_000);
  expect(read()).toEqual({ size: 40, counts: new Map(Object.entries({ a: 30, b: 10 })) });
  // Readers that were not read to their end leave nothing behind.
  marks.read().shards.next();
  add('a', T0);
  const { size } = marks;
  const { size: found, counts } = read();
  expect([found, [...counts.values()].reduce((sum, count) => sum + count, 0)]).toEqual([size, size]);
});

it('tells an id that the relay made from the same id that a caller of another client chose', () => {
  const { marks } = opened();
  const uuid = createUuids(() => T0);
  const ids = Array.from({ length: 2_000 }, () => uuid());
  const ended = (endedAt: number): CommandMark => ({
    ...{ outcome: 'completed', execution: 'reported_by_client', errorCode: null },
    ...{ endedAt, resultExpired: false },
  });
  ids.forEach((id, i) => marks.add(key(id), NO_DIGEST, { mark: ended(T0 + i), owner: 'alice' }));
  for (const [i, id] of ids.entries()) {
    expect(marks.find(key(id), null, T0 + i)).toEqual(ended(T0 + i));
    // Any invocation with such an id is answered as a conflict, even if it repeats the original one.
    expect(marks.find(key(id), 'd', T0 + i)).toBe('conflict');
    expect(marks.find(key(id, 'bob'), null, T0)).toBeNull();
    expect(marks.find({ ...key(id), clientId: 'other' }, null, T0)).toBeNull();
  }
  const [first = ''] = ids;
  marks.add(key(first, 'bob'), 'd', { mark: ended(T0), owner: 'bob' });
  expect(marks.find(key(first, 'bob'), 'd', T0)).toEqual(ended(T0));
  expect(marks.find(key(first, 'bob'), 'e', T0)).toBe('conflict');
  expect(marks.find(key(uuid()), null, T0)).toBeNull();
});
