/** Tests ids that the client libraries make. */
import { describe, expect, test } from 'vitest';
import { ID } from '../../src/protocol/fields.ts';
import { randomId, timeOrderedId } from '../../src/clients/link/ids.ts';

describe('a time-ordered id', () => {
  test('sorts after every id that was made in an earlier millisecond', () => {
    const times = [0, 1, 15, 16, 4095, 4096, 1_790_000_000_000, 1_790_000_000_001];
    const made = times.map((now) => timeOrderedId('c-', now));
    expect([...made].sort()).toEqual(made);
    expect(new Set(made).size).toBe(times.length);
    for (const id of made) expect(id).toMatch(ID);
  });

  test('differs between two processes that count alike', () => {
    const tail = (id: string): string => id.slice(-16);
    expect(tail(timeOrderedId('c-', 5))).not.toBe(tail(timeOrderedId('c-', 5)));
    expect(timeOrderedId('c-', 5)).toHaveLength(randomId('c-').length);
  });
});
