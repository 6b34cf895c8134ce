/** Tests that users take turns with expensive reads. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ReadTurns } from '../../src/core/shares/turns.ts';
import { systemLoop } from '../../src/platform/system.ts';
import { settle } from '../kit/clock.ts';

/** Starts reads that end on request, and records the order in which they began. */
function reads(turns: ReadTurns) {
  const begun: string[] = [];
  const open = new Map<string, (value: string) => void>();
  return {
    begun,
    read(holder: string, name: string): Promise<string> {
      const value = turns.run(holder, () => {
        begun.push(name);
        return new Promise<string>((resolve) => open.set(name, resolve));
      });
      return Promise.resolve(value);
    },
    async end(name: string): Promise<void> {
      open.get(name)?.(`${name} done`);
      await settle();
    },
  };
}

describe('the turns of large reads', () => {
  it('let a holder with many reads wait for its own reads, while another holder begins at once', async () => {
    const turns = new ReadTurns({ atOnce: 3, perHolder: 2 });
    const at = reads(turns);
    const all = ['a1', 'a2', 'a3', 'a4'].map((name) => at.read('alice', name));
    all.push(at.read('bob', 'b1'));
    expect(at.begun).toEqual(['a1', 'a2', 'b1']);
    expect(turns.waiting).toBe(2);
    await at.end('a1');
    expect(at.begun).toEqual(['a1', 'a2', 'b1', 'a3']);
    for (const name of ['a2', 'b1', 'a3', 'a4']) await at.end(name);
    expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'a4', 'b1'].map((name) => `${name} done`));
    expect(turns.waiting).toBe(0);
  });

  it('take the holders that wait in turn, and each holder’s reads in order', async () => {
    const at = reads(new ReadTurns({ atOnce: 1, perHolder: 1 }));
    void at.read('alice', 'a1');
    for (const name of ['a2', 'a3', 'a4']) void at.read('alice', name);
    for (const name of ['b1', 'b2']) void at.read('bob', name);
    for (const name of ['c1']) void at.read('carol', name);
    for (const name of ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']) await at.end(name);
    expect(at.begun).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
  });

  it('pass on values of the same tick and errors, and are free again after an error', async () => {
    const turns = new ReadTurns({ atOnce: 1, perHolder: 1 });
    const at = reads(turns);
    expect(turns.run('alice', () => 7)).toBe(7);
    const boom = new Error('boom');
    const thrown = (): never => {
      throw boom;
    };
    expect(() => turns.run('alice', thrown)).toThrow(boom);
    await expect(turns.run('alice', () => Promise.reject(boom))).rejects.toBe(boom);
    const first = at.read('alice', 'a1');
    const broken = expect(turns.run('alice', thrown)).rejects.toBe(boom);
    const quick = turns.run('alice', () => 8);
    const last = at.read('alice', 'a2');
    await at.end('a1');
    await broken;
    expect(await quick).toBe(8);
    await at.end('a2');
    expect(await Promise.all([first, last])).toEqual(['a1 done', 'a2 done']);
  });

  it('serve every read, whatever the reads cost and whenever they are asked for', async () => {
    const asked = fc.record({
      holder: fc.constantFrom('alice', 'bob', 'carol'),
      cost: fc.integer({ min: 0, max: 30 }),
      way: fc.constantFrom('value', 'promise', 'error'),
      /** Whether the event loop goes on before the next read is asked for. */
      turn: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { maxLength: 30 }), async (all) => {
        const later: (() => void)[] = [];
        const goOn = (): void => later.splice(0).forEach((run) => run());
        const loop = { ...systemLoop, afterOthers: (run: () => void) => void later.push(run) };
        const turns = new ReadTurns({ atOnce: 2, perHolder: 1, paced: { loop, costPerTurn: 10, small: 3 } });
        const done: Promise<boolean>[] = [];
        for (const { holder, cost, way, turn } of all) {
          const read = (): number | Promise<number> => {
            if (way === 'error') throw new Error('boom');
            return way === 'value' ? cost : Promise.resolve(cost);
          };
          const answer = Promise.resolve().then(() => turns.run(holder, read, cost));
          done.push(
            answer.then(
              () => true,
              () => false,
            ),
          );
          if (turn) {
            await settle();
            goOn();
          }
        }
        // As many turns as there are reads are enough: in each, at least one read begins.
        for (let turn = 0; turn <= all.length; turn++) {
          await settle();
          goOn();
        }
        await settle();
        expect(turns.waiting).toBe(0);
        expect(await Promise.all(done)).toEqual(all.map(({ way }) => way !== 'error'));
      }),
    );
  });
});
