/** Defines the contract tests of the port ReconnectStore, which counts reconnects. Every backend must pass them. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ClientKey } from '../../src/core/ids.ts';
import { RECONNECT_SLOT_MS, RECONNECT_SLOTS } from '../../src/core/limits.ts';
import type { Bench, MakeBench } from './kit/bench.ts';

const HOUR = RECONNECT_SLOTS * RECONNECT_SLOT_MS;

/** Defines the tests that every ReconnectStore must pass. */
export function reconnectContract(name: string, make: MakeBench): void {
  describe(`reconnects on ${name}`, () => {
    let bench: Bench;
    beforeEach(async () => {
      bench = await make();
      // Reconnects are counted by slots of time. The clock moves to the beginning of a slot.
      await bench.advance(RECONNECT_SLOT_MS - (bench.now() % RECONNECT_SLOT_MS));
    });
    afterEach(() => bench.close());

    const of = (userId: string, clientId = 'tab'): ClientKey => ({ userId, clientId });
    const note = async (client: ClientKey, again: boolean, times = 1): Promise<void> => {
      for (let i = 0; i < times; i++) await bench.backend.reconnects.note(client, again);
    };
    const counts = async (...clients: ClientKey[]) => bench.backend.reconnects.counts(clients);
    const top = async (first: number) => bench.backend.reconnects.top(first);

    it('are counted from the second opening of a link on, or from the first one if the client was known', async () => {
      await note(of('new'), false);
      await note(of('known'), true);
      expect(await counts(of('new'), of('known'), of('never'))).toEqual([0, 1, 0]);
      await note(of('new'), false);
      await note(of('known'), true, 2);
      expect(await counts(of('known'), of('new'), of('new', 'other'))).toEqual([3, 1, 0]);
    });

    it('are counted over the last hour, even if the connection was forgotten in between', async () => {
      await note(of('a'), false);
      await bench.advance(HOUR - RECONNECT_SLOT_MS);
      await note(of('a'), false, 2);
      expect(await counts(of('a'))).toEqual([2]);
      await bench.advance(RECONNECT_SLOT_MS);
      expect(await counts(of('a'))).toEqual([2]);
      await bench.advance(HOUR - 2 * RECONNECT_SLOT_MS);
      expect(await counts(of('a'))).toEqual([2]);
      await bench.advance(RECONNECT_SLOT_MS);
      expect(await counts(of('a'))).toEqual([0]);
      await note(of('a'), false);
      expect(await counts(of('a'))).toEqual([0]);
    });

    it('list the clients that reconnect most, over all slots and users, in a fixed order', async () => {
      await note(of('bob'), true, 2);
      await note(of('ann', 'b'), true, 2);
      await bench.advance(RECONNECT_SLOT_MS);
      await note(of('ann', 'a'), true, 3);
      await note(of('eve'), false);
      await note(of('bob'), true, 2);
      const bob = { ...of('bob'), reconnects: 4 };
      const ann = { ...of('ann', 'a'), reconnects: 3 };
      expect(await top(2)).toEqual({ rows: [bob, ann], complete: true });
      expect(await top(10)).toEqual({ rows: [bob, ann, { ...of('ann', 'b'), reconnects: 2 }], complete: true });
      await bench.advance(HOUR);
      expect(await top(10)).toEqual({ rows: [], complete: true });
    });

    it('are returned for many clients at once, in the order of the clients', async () => {
      const clients = Array.from({ length: 250 }, (_, i) => of(`u${i % 50}`, `c${i}`));
      await Promise.all(clients.map((client, i) => note(client, true, i % 3)));
      expect(await counts(...clients)).toEqual(clients.map((_, i) => i % 3));
      const { rows, complete } = await top(100);
      expect([rows.length, rows.filter(({ reconnects }) => reconnects === 2).length]).toEqual([100, 83]);
      expect(complete).toBe(true);
    });
  });
}
