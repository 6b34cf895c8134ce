/** Tests the ids that the relay makes: UUIDs of version 7. */
import { expect, it } from 'vitest';
import { createUuids } from '../../src/platform/system.ts';

const FORM = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

it('an id is a UUID of version 7: time first, then randomness that does not repeat', () => {
  let now = 0;
  const make = createUuids(() => now);
  const seen = new Set<string>();
  for (now of [0, 1, 255, 2 ** 32 - 1, 2 ** 32, Date.UTC(2026, 0, 1), 2 ** 48 - 1]) {
    for (let i = 0; i < 1000; i++) {
      const id = make();
      const [, high = '', low = ''] = FORM.exec(id) ?? [];
      expect(parseInt(high + low, 16)).toBe(now);
      seen.add(id);
    }
  }
  expect(seen.size).toBe(7000);
});

it('every random bit is sometimes set and sometimes not', () => {
  const make = createUuids(() => 0);
  const bits = Array.from({ length: 1000 }, () => BigInt(`0x${make().replaceAll('-', '')}`));
  const all = bits.reduce((set, id) => set | id, 0n);
  const common = bits.reduce((set, id) => set & id, -1n);
  expect(all).toBe(0x00000000_0000_7fff_bfff_ffffffffffffn);
  expect(common).toBe(0x00000000_0000_7000_8000_000000000000n);
});
