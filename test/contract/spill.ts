/** Defines the contract tests of the store for large payloads, which every implementation must pass. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as fc from 'fast-check';
import type { SpillRef, SpillStore } from '../../src/core/history/message.ts';
import { createShares, type Shares } from '../../src/core/shares/shares.ts';
import { toJson, trustJson, type JsonText } from '../../src/core/json.ts';

/**
 * A spill store under test, and control over its clock. `total` limits what it may hold. `guarantee` (by default all of
 * the total) is the guarantee of one user.
 */
export type SpillBench = {
  readonly store: SpillStore;
  now(): number;
  advance(ms: number): Promise<void>;
  close(): Promise<void>;
};
export type MakeSpillBench = (total?: number, guarantee?: number) => Promise<SpillBench>;

const HOUR = 3600_000;

/** Returns shares with this total for spilled payloads. Without a total, the defaults apply. */
export function spillShares(total?: number, guarantee = total): Shares {
  return createShares(total === undefined ? {} : { spilled_bytes: { guarantee: guarantee ?? total, total } });
}

export function textOf(size: number, fill = 'x'): JsonText {
  return trustJson(JSON.stringify(fill.repeat(size - 2)));
}

/** Defines the tests that every managed spill store must pass. */
export function spillContract(name: string, make: MakeSpillBench): void {
  describe(`spill on ${name}`, () => {
    let bench: SpillBench;
    let store: SpillStore;
    beforeEach(async () => {
      bench = await make();
      ({ store } = bench);
    });
    afterEach(() => bench.close());

    it('returns a payload unchanged, under a reference with its size, digest and expiry', async () => {
      const text = toJson({ text: 'é\u{1f600}'.repeat(10_000) });
      if (text === null) throw new Error('no text');
      const expiresAt = bench.now() + HOUR;
      const ref = await store.put(text, expiresAt, 'alice');
      expect(ref).toMatchObject({ bytes: Buffer.byteLength(text), expiresAt });
      expect(ref.sha256).toMatch(/^[A-Za-z0-9_-]{43}$/);
      expect(await store.read(ref)).toEqual({ state: 'present', text });
    });

    it('gives every object a name of its own, also equal ones', async () => {
      const refs = await Promise.all(
        Array.from({ length: 50 }, () => store.put(textOf(20_000), bench.now() + HOUR, 'alice')),
      );
      expect(new Set(refs.map((ref) => ref.name)).size).toBe(50);
      for (const ref of refs) expect(await store.read(ref)).toMatchObject({ state: 'present' });
    });

    it('hides an object from its expiry on, although nothing was cleaned', async () => {
      const ref = await store.put(textOf(100), bench.now() + 5000, 'alice');
      await bench.advance(4999);
      expect(await store.read(ref)).toMatchObject({ state: 'present' });
      await bench.advance(1);
      expect(await store.read(ref)).toEqual({ state: 'expired' });
    });

    it('does not accept another expiry than the one that was written', async () => {
      const ref = await store.put(textOf(100), bench.now() + 5000, 'alice');
      await bench.advance(5000);
      await store.clean();
      await bench.advance(HOUR);
      await store.clean();
      expect((await store.read({ ...ref, expiresAt: bench.now() + 100 * HOUR })).state).not.toBe('present');
    });

    it.each<[string, (ref: SpillRef) => SpillRef]>([
      ['an unknown name', (ref) => ({ ...ref, name: 'f'.repeat(32) })],
      ['another size', (ref) => ({ ...ref, bytes: ref.bytes + 1 })],
      ['another digest', (ref) => ({ ...ref, sha256: 'A'.repeat(43) })],
      ['a way out', (ref) => ({ ...ref, name: `../${ref.name}` })],
      ['an empty name', (ref) => ({ ...ref, name: '' })],
      ['a name with a NUL', (ref) => ({ ...ref, name: `${ref.name}\0` })],
      ['no time', (ref) => ({ ...ref, expiresAt: Number.POSITIVE_INFINITY })],
      ['no number', (ref) => ({ ...ref, expiresAt: Number.NaN })],
    ])('reports a reference with %s as unavailable and never throws', async (_what, change) => {
      const ref = await store.put(textOf(100), bench.now() + HOUR, 'alice');
      const { state } = await store.read(change(ref));
      // The memory store finds an object by its name alone, so a reference with an invented expiry may find the object.
      if (Number.isFinite(change(ref).expiresAt)) expect(state).toBe('unavailable');
    });

    it('discards an object whose reference was not given out', async () => {
      const ref = await store.put(textOf(100), bench.now() + HOUR, 'alice');
      await store.discard(ref);
      expect(await store.read(ref)).toEqual({ state: 'unavailable' });
      await store.discard(ref);
      await store.discard({ ...ref, name: '../../x' });
    });

    it('removes expired objects on request, and reports how many', async () => {
      const short = await Promise.all([1, 2, 3].map(() => store.put(textOf(100), bench.now() + HOUR, 'alice')));
      const long = await store.put(textOf(100), bench.now() + 10 * HOUR, 'alice');
      expect(await store.clean()).toBe(0);
      await bench.advance(2 * HOUR);
      expect(await store.clean()).toBe(3);
      expect(await store.clean()).toBe(0);
      for (const ref of short) expect(await store.read(ref)).toEqual({ state: 'expired' });
      expect(await store.read(long)).toMatchObject({ state: 'present' });
    });

    it('refuses an object without room with share and code, and keeps the others', async () => {
      const small = await make(10_000);
      const kept = await small.store.put(textOf(4000), small.now() + HOUR, 'alice');
      await expect(small.store.put(textOf(10_001), small.now() + HOUR, 'alice')).rejects.toMatchObject({
        code: expect.stringMatching(/^(store_full|share_exceeded)$/),
        details: { share: 'spilled_bytes' },
      });
      expect(await small.store.read(kept)).toMatchObject({ state: 'present' });
      await small.close();
    });

    it('has room again once an object expired or was discarded', async () => {
      const small = await make(10_000);
      for (let i = 0; i < 20; i++) {
        const ref = await small.store.put(textOf(9000), small.now() + HOUR, 'alice');
        if (i % 2 === 0) await small.store.discard(ref);
        else await small.advance(2 * HOUR);
      }
      await small.close();
    });

    it('guarantees every user their share, whatever another user stores', async () => {
      const small = await make(100_000, 20_000);
      const put = (userId: string) => small.store.put(textOf(4000), small.now() + HOUR, userId);
      const kept = [await put('alice'), await put('bob')];
      const refusals: unknown[] = [];
      for (let i = 0; i < 40; i++) await put('mallory').catch((error: unknown) => void refusals.push(error));
      for (const refusal of refusals)
        expect(refusal).toMatchObject({ code: 'share_exceeded', details: { share: 'spilled_bytes' } });
      for (let i = 0; i < 4; i++) kept.push(await put('alice'));
      for (const ref of kept) expect(await small.store.read(ref)).toMatchObject({ state: 'present' });
      await small.close();
    });

    it('returns any JSON text, byte for byte', async () => {
      await fc.assert(
        fc.asyncProperty(fc.json(), async (given) => {
          const text = trustJson(Buffer.from(given).toString('utf8'));
          const ref = await store.put(text, bench.now() + HOUR, 'alice');
          expect(await store.read(ref)).toEqual({ state: 'present', text });
        }),
        { numRuns: 60 },
      );
    });
  });
}
