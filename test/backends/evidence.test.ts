/** The evidence of several tables in one process: what is dropped, in which order, and by how much. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EvidenceKind, type EvidenceTable } from '../../src/backends/memory/evidence.ts';
import { createShares, type Shares } from '../../src/core/shares/shares.ts';

type Row = { readonly userId: string; readonly at: number };

/** A table of rows that each hold one of the share, oldest first. */
class Rows implements EvidenceTable {
  isFilling = false;
  readonly rows: Row[] = [];
  readonly #shares: Shares;

  constructor(shares: Shares) {
    this.#shares = shares;
  }

  get held(): number {
    return this.rows.length;
  }

  add(row: Row): void {
    this.#shares.of(row.userId).take('ended_records', 1);
    this.rows.push(row);
  }

  oldestAt(): number {
    return this.isFilling ? Infinity : (this.rows[0]?.at ?? Infinity);
  }

  dropOldest(userId: string | null): boolean {
    const place = userId === null ? 0 : this.rows.findIndex((row) => row.userId === userId);
    const [row] = this.isFilling || place < 0 ? [] : this.rows.splice(place, 1);
    if (row) this.#shares.of(row.userId).release('ended_records', 1);
    return row !== undefined;
  }
}

const GUARANTEE = 3;
const TABLES = 4;

type Act = { readonly user: number; readonly later: number; readonly total: number; readonly isFilled: boolean };

/** A row is added to the table of its user; then the total is kept. `isFilled`: the table filled from a log is complete. */
const ACT: fc.Arbitrary<Act> = fc.record({
  user: fc.nat(2 * TABLES),
  later: fc.integer({ min: 1, max: 3 }),
  total: fc.integer({ min: 0, max: 12 }),
  isFilled: fc.boolean(),
});

describe('evidence of several tables', () => {
  it('is dropped as that of one table would be, and not from a table that is being filled', () => {
    fc.assert(
      fc.property(fc.array(ACT, { maxLength: 60 }), (acts) => {
        const shares = createShares({ ended_records: { guarantee: GUARANTEE, total: null } });
        const kind = new EvidenceKind(shares, 'ended_records', 1);
        const tables = Array.from({ length: TABLES }, () => new Rows(shares));
        for (const table of tables) kind.add(table);
        const [filling] = tables;
        if (filling) filling.isFilling = true;
        let now = 0;
        for (const { user, later, total, isFilled } of acts) {
          now += later;
          const table = tables[user % TABLES];
          table?.add({ userId: `u${user}`, at: now });
          if (filling && isFilled) filling.isFilling = false;
          for (let isKept = false; !isKept;) {
            const free = tables.filter(({ isFilling }) => !isFilling).flatMap(({ rows }) => rows);
            const over = shares.mostOver('ended_records')?.userId;
            const oldestFirst = free.toSorted((a, b) => a.at - b.at);
            const next = oldestFirst.find(({ userId }) => userId === over) ?? oldestFirst[0];
            expect(kind.held).toBe(free.length);
            isKept = kind.keepWithin(total, now, table ?? null);
            const left = tables.filter(({ isFilling }) => !isFilling).flatMap(({ rows }) => rows);
            const gone = free.length > total ? [next] : [];
            expect(free.filter((row) => !left.includes(row))).toEqual(gone);
            expect(isKept).toBe(free.length <= total);
          }
        }
      }),
    );
  });
});
