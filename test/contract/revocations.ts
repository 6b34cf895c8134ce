/** Defines the contract tests of the port RevocationStore. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CommandCaller } from '../../src/core/commands/command.ts';
import { ANY_COMMAND } from '../../src/core/commands/delivery-inspector.ts';
import { REVOCATIONS_PER_USER, REVOCATIONS_PER_USER_WIDE } from '../../src/core/limits.ts';
import type { NewRevocation } from '../../src/core/revocations/revocation.ts';
import { admission, CALLER, read, type Bench, type MakeBench } from './kit/bench.ts';

const MINUTE = 60_000;

/** Defines the tests that every RevocationStore must pass. */
export function revocationContract(name: string, make: MakeBench): void {
  describe(`revocations (${name})`, () => {
    let bench: Bench;
    beforeEach(async () => void (bench = await make()));
    afterEach(() => bench.close());

    let count = 0;
    const row = (given: Partial<NewRevocation> = {}): NewRevocation => ({
      ...{ revocationId: `r${++count}`, userId: null, clientId: null, tokenId: `t${count}`, issuedBefore: null },
      ...{ reason: 'lost', who: 'admin:ops', at: bench.now(), expiresAt: bench.now() + MINUTE },
      ...given,
    });

    it('are kept as they were added, in the order of numbers that grow', async () => {
      const { revocations } = bench.backend;
      const given = [row(), row({ userId: 'alice', clientId: 'desk', tokenId: null }), row({ issuedBefore: 7 })];
      const added = [];
      for (const one of given) added.push(await revocations.add(one));
      const seqs = added.map((one) => one?.seq ?? 0);
      expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
      expect(added).toEqual(given.map((one, at) => ({ ...one, seq: seqs[at] })));
      expect(await revocations.after(0, 10)).toEqual(added);
    });

    it('are read in parts, after a number', async () => {
      const { revocations } = bench.backend;
      const added = [await revocations.add(row()), await revocations.add(row()), await revocations.add(row())];
      const [first, second, third] = added;
      expect(await revocations.after(0, 2)).toEqual([first, second]);
      expect(await revocations.after(second?.seq ?? 0, 2)).toEqual([third]);
      expect(await revocations.after(third?.seq ?? 0, 2)).toEqual([]);
    });

    it('find the commands that were invoked with a token, in the record and in listings', async () => {
      const { backend } = bench;
      const tokens = [
        { id: 't1', issuedAt: 1_764_500_000_123 },
        { id: null, issuedAt: 0 },
        { id: 't\n2', issuedAt: null },
      ];
      const label = { kind: 'mcp', name: 'agent', version: null } as const;
      const callers: readonly CommandCaller[] = [
        ...tokens.map((token) => ({ ...CALLER, token })),
        ...tokens.map((token) => ({ kind: 'admin', name: 'ops', label, token }) as const),
        { ...CALLER, label },
        CALLER,
      ];
      for (const [at, caller] of callers.entries())
        await backend.commands.admit(admission(`c${at}`, { caller, connectWithinMs: 5_000 }));
      for (const [at, caller] of callers.entries()) expect((await read(bench, `c${at}`)).caller).toEqual(caller);
      const { rows } = await backend.inspector.list({ ...ANY_COMMAND, userId: 'alice' }, { first: 100, after: null });
      const listed = new Map(rows.map(({ row: command }) => [command.commandId, command.caller]));
      expect(listed).toEqual(new Map(callers.map((caller, at) => [`c${at}`, caller])));
    });

    it('of one user have a bound, and others, and administrators, have room beside them', async () => {
      const { revocations } = bench.backend;
      const add = (who: string, given: Partial<NewRevocation> = {}) => revocations.add(row({ who, ...given }));
      const wide = { userId: 'alice', tokenId: null };
      const singles = Array.from({ length: REVOCATIONS_PER_USER }, () => add('user:alice'));
      expect((await Promise.all(singles)).filter((one) => one === null)).toEqual([]);
      expect(await add('user:alice')).toBeNull();
      const more = REVOCATIONS_PER_USER_WIDE - REVOCATIONS_PER_USER;
      const others = Array.from({ length: more }, () => add('user:alice', wide));
      expect((await Promise.all(others)).filter((one) => one === null)).toEqual([]);
      expect(await add('user:alice', wide)).toBeNull();
      expect([await add('user:bob'), await add('admin:alice')]).not.toContain(null);
      await bench.advance(MINUTE + 1);
      expect(await add('user:alice')).not.toBeNull();
    });

    it('are kept until they expire, and their numbers are not used again', async () => {
      const { revocations } = bench.backend;
      const first = await revocations.add(row());
      const long = await revocations.add(row({ expiresAt: bench.now() + 3 * MINUTE }));
      await bench.advance(MINUTE + 1);
      expect(await revocations.after(0, 10)).toEqual([long]);
      await bench.advance(2 * MINUTE);
      expect(await revocations.after(0, 10)).toEqual([]);
      const next = await revocations.add(row());
      expect(next?.seq).toBeGreaterThan(Math.max(first?.seq ?? 0, long?.seq ?? 0));
    });
  });
}
