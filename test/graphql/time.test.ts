/** Tests how the relay writes times. */
import { describe, expect, it } from 'vitest';
import { printTime } from '../../src/graphql/schema/scalars.ts';

const HOUR = 3_600_000;
const TIMES = [0, -1, 1, -HOUR, HOUR - 1, HOUR, 1.5, 951_782_399_999, 951_782_400_000, 4_102_444_799_999, 8.64e15];

describe('printTime', () => {
  it('writes as Date does, whatever it wrote before', () => {
    const times = [...TIMES, ...TIMES.map((time) => -time)];
    for (const before of times) {
      for (const time of times) {
        printTime(before);
        expect(printTime(time)).toBe(new Date(time).toISOString());
      }
    }
  });

  it('writes each second of an hour, and each millisecond of a second', () => {
    for (let n = 0; n < HOUR; n += 1_000) expect(printTime(n)).toBe(new Date(n).toISOString());
    for (let n = HOUR; n < HOUR + 1_000; n++) expect(printTime(n)).toBe(new Date(n).toISOString());
  });

  it('refuses invalid times', () => {
    for (const time of [Number.NaN, Infinity, 8.64e15 + 1]) expect(() => printTime(time)).toThrow(RangeError);
  });
});
