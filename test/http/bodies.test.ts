import { describe, expect, it } from 'vitest';
import { createParsedBodyCache } from '../../src/http/parsed-body-cache.ts';

describe('the cache of parsed bodies', () => {
  it('recalls the same bytes and no others', () => {
    const bodies = createParsedBodyCache();
    const body = { query: '{ viewer { kind } }' };
    const bytes = Buffer.from(JSON.stringify(body));
    expect(bodies.recall(bytes)).toBeUndefined();
    bodies.keep(bytes, body);
    expect(bodies.recall(Buffer.from(bytes))).toBe(body);
    expect(bodies.recall(Buffer.from(`${bytes.toString()} `))).toBeUndefined();
    // Decoded as text, these would be equal.
    bodies.keep(Buffer.from('"é"'), 'two bytes');
    expect(bodies.recall(Buffer.from('"é"', 'latin1'))).toBeUndefined();
  });

  it('holds at most 500, of 16 KiB each', () => {
    const bodies = createParsedBodyCache();
    const of = (i: number): Buffer => Buffer.from(`{"i":${i}}`);
    for (let i = 0; i < 600; i++) bodies.keep(of(i), { i });
    expect(Array.from({ length: 600 }, (_, i) => bodies.recall(of(i))).filter(Boolean)).toHaveLength(500);
    expect(bodies.recall(of(599))).toEqual({ i: 599 });
    const large = Buffer.from(JSON.stringify('x'.repeat(16 * 1024)));
    bodies.keep(large, 'large');
    expect(bodies.recall(large)).toBeUndefined();
  });
});
