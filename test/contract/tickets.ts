/**
 * Defines the contract tests of the port TicketStore, which makes each sign-in ticket valid for one use. Every backend
 * must pass them.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Bench, MakeBench } from './kit/bench.ts';

const MINUTE = 60_000;

/** Defines the tests that every TicketStore must pass. */
export function ticketContract(name: string, make: MakeBench): void {
  describe(`tickets (${name})`, () => {
    let bench: Bench;
    beforeEach(async () => void (bench = await make()));
    afterEach(() => bench.close());

    it('are taken once', async () => {
      const { tickets } = bench.backend;
      expect(await tickets.take('a'.repeat(32), MINUTE)).toBe(true);
      expect(await tickets.take('a'.repeat(32), MINUTE)).toBe(false);
      expect(await tickets.take('b'.repeat(32), MINUTE)).toBe(true);
    });

    it('are taken by one of many at the same time', async () => {
      const { tickets } = bench.backend;
      const taken = await Promise.all(Array.from({ length: 20 }, async () => tickets.take('c'.repeat(32), MINUTE)));
      expect(taken.filter(Boolean)).toHaveLength(1);
    });

    it('stay taken until they would have expired', async () => {
      const { tickets } = bench.backend;
      await tickets.take('d'.repeat(32), MINUTE);
      await bench.advance(MINUTE - 1);
      expect(await tickets.take('d'.repeat(32), MINUTE)).toBe(false);
    });
  });
}
