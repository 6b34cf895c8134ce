/** Tests the verdict of a soak run about the growth of the heap. */
import { describe, expect, test } from 'vitest';
import { judgeSlope, STORE_BYTES, STORE_KEYS, type Sample } from '../../faults/soak/slope.ts';

const MIB = 1024 * 1024;

function samples(heapOf: (minute: number) => number, minutes = 60): readonly Sample[] {
  return Array.from({ length: minutes }, (_, i) => ({
    minute: i + 1,
    heapBytes: heapOf(i + 1),
    rssBytes: 0,
    store: { keys: 0, bytes: 0 },
    calls: 0,
    worstTurnMs: 0,
    stalledMs: 0,
  }));
}

describe('the line through the heap samples', () => {
  test('is flat if the heap only fills during warm-up', () => {
    expect(
      judgeSlope(
        samples((minute) => 100 * MIB + Math.min(minute, 9) * 20 * MIB),
        10,
      ),
    ).toMatchObject({ flat: true, samples: 51 });
  });

  test('is flat if the heap only rises and falls around a level', () => {
    expect(
      judgeSlope(
        samples((minute) => 100 * MIB + (minute % 3) * 5 * MIB),
        10,
      ).flat,
    ).toBe(true);
  });

  test('is not flat if each minute leaves 0.2 MiB of 100', () => {
    const { flat, grown, most } = judgeSlope(
      samples((minute) => (100 + 0.2 * minute) * MIB),
      10,
    );
    expect(flat).toBe(false);
    expect(grown / MIB).toBeCloseTo(10, 5);
    expect(most / MIB).toBeCloseTo(5.11, 1);
  });

  test('is not computed from two samples', () => {
    expect(() =>
      judgeSlope(
        samples(() => MIB, 11),
        10,
      ),
    ).toThrow('2 samples');
  });

  test('is computed for the keys and the memory of Redis too', () => {
    const grows = samples(() => 100 * MIB).map((sample) => ({
      ...sample,
      store: { keys: 1_000 + sample.minute * 10, bytes: 50 * MIB },
    }));
    expect(judgeSlope(grows, 10, STORE_KEYS)).toMatchObject({ flat: false, grown: expect.closeTo(500), most: 100 });
    expect(judgeSlope(grows, 10, STORE_BYTES).flat).toBe(true);
    expect(judgeSlope(grows, 10).flat).toBe(true);
  });
});
