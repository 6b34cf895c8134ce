/** Tests to which process a partition moves: by the hash, or to where its links are, seldom and within bounds. */
import { describe, expect, it } from 'vitest';
import { Moves, nextOwner, shouldOwn, type PlacementView } from '../../src/backends/owned/placement.ts';
import { FakeClock } from '../kit/clock.ts';

const LEASE_MS = 1_000;
const PROCESSES = ['a.1', 'b.1', 'c.1'] as const;
type Process = (typeof PROCESSES)[number];
const COUNT = 12;
/** Three shares of four, and half a share more. */
const MOST = 6;

const links = (a: number, b: number, c = 0) => new Map(Object.entries({ 'a.1': a, 'b.1': b, 'c.1': c }));
const byHash = (): Process[] =>
  Array.from({ length: COUNT }, (_, partition) => shouldOwn(partition, PROCESSES) as Process);
const viewOf = (owners: readonly (string | null)[]): PlacementView => ({ processes: PROCESSES, owners });
/** A partition whose hash says `a`. */
const OF_A = byHash().indexOf('a.1');

describe('the next owner of a partition', () => {
  const even = viewOf(PROCESSES.flatMap((process) => [process, process, process, process]));
  const next = (owner: Process, counted: ReturnType<typeof links> | null, view = even): string | null =>
    nextOwner(OF_A, owner, view, counted);

  it('is that of the hash, if links do not count or there are none', () => {
    expect([next('b.1', null), next('b.1', links(0, 0)), next('a.1', null)]).toEqual(['a.1', 'a.1', 'a.1']);
    expect(next('b.1', null, viewOf([]))).toBe('a.1');
    expect(nextOwner(0, 'a.1', { processes: [], owners: [] }, null)).toBeNull();
  });

  it('is where nearly all links are, and not where only most are', () => {
    expect(next('a.1', links(2, 8))).toBe('b.1');
    expect(next('a.1', links(3, 7))).toBe('a.1');
    expect(next('a.1', links(0, 8))).toBe('b.1');
    expect(next('a.1', links(40, 60))).toBe('a.1');
    // Too few links to be worth a move.
    expect(next('a.1', links(0, 7))).toBe('a.1');
    expect(next('c.1', links(0, 30, 2))).toBe('b.1');
  });

  it('stays the one where most links are, until a good part of them has gone', () => {
    expect(next('b.1', links(4, 6))).toBe('b.1');
    expect(next('b.1', links(5, 5))).toBe('a.1');
    expect(next('b.1', links(0, 4))).toBe('b.1');
    expect(next('b.1', links(0, 3))).toBe('a.1');
  });

  it('never owns far more than its share because of links', () => {
    const full = viewOf([...Array<string>(MOST).fill('b.1'), ...Array<string>(COUNT - MOST).fill('c.1')]);
    const more = viewOf([...Array<string>(MOST + 1).fill('b.1'), ...Array<string>(COUNT - MOST - 1).fill('c.1')]);
    expect(next('c.1', links(0, 30), full)).toBe('a.1');
    expect(next('b.1', links(0, 30), full)).toBe('b.1');
    expect(next('b.1', links(0, 30), more)).toBe('a.1');
  });

  it('is no process that may own nothing, whatever links it has', () => {
    expect(nextOwner(OF_A, 'a.1', even, new Map([['web.1', 100]]))).toBe('a.1');
  });
});

describe('the moves of processes', () => {
  /** A deployment whose processes look at their partitions in turns, once in a quarter of a lease. */
  class Deployment {
    readonly clock = new FakeClock();
    readonly owners: string[] = byHash();
    readonly moved: { readonly at: number; readonly partition: number; readonly to: string }[] = [];
    /** The links of each partition. */
    linksOf: (partition: number) => ReadonlyMap<string, number> = () => new Map();
    counted = 0;
    readonly #moves = new Map(
      PROCESSES.map((process) => [process, new Moves({ process, clock: this.clock, leaseMs: LEASE_MS })]),
    );

    async run(leases: number, processes: readonly Process[] = PROCESSES): Promise<void> {
      for (let look = 0; look < 4 * leases; look++) {
        await this.clock.advance(LEASE_MS / 4);
        for (const process of processes) this.#look(process);
      }
    }

    #look(process: Process): void {
      const owned = this.owners.flatMap((owner, number) =>
        owner === process ? [{ number, countLinks: () => (this.counted++, this.linksOf(number)) }] : [],
      );
      const moves = this.#moves.get(process);
      moves?.count(owned);
      const view = viewOf(this.owners);
      const move = moves?.next(owned, view);
      if (!moves || !move) return;
      const to = this.#moves.get(move.to as Process);
      if (!to?.mayTake(move.partition, view) || moves.ownerOf(move.partition, view) !== move.to) return;
      this.owners[move.partition] = move.to;
      moves.gave(move.partition);
      this.moved.push({ ...move, at: this.clock.monotonic() });
    }

    countOf(process: Process): number {
      return this.owners.filter((owner) => owner === process).length;
    }
  }

  it('bring partitions to a process that has all links: not at once, at a pace, and within its share', async () => {
    const place = new Deployment();
    await place.run(100);
    expect(place.moved).toEqual([]);
    place.linksOf = () => links(0, 20);
    const began = place.clock.monotonic();
    // A pass over the partitions finds the links.
    await place.run(24);
    expect(place.moved).toEqual([]);
    await place.run(100);
    expect(place.countOf('b.1')).toBe(MOST);
    expect(place.moved.every(({ to }) => to === 'b.1')).toBe(true);
    expect(place.moved[0]?.at).toBeGreaterThanOrEqual(began + 24 * LEASE_MS);
    const before = place.moved.length;
    await place.run(200);
    expect(place.moved).toHaveLength(before);
  });

  it('of one process are four leases apart', async () => {
    const place = new Deployment();
    place.owners.fill('a.1');
    // Nothing moves by the hash.
    const ofA = byHash().flatMap((process, partition) => (process === 'a.1' ? [partition] : []));
    place.owners.forEach((_, partition) => (place.owners[partition] = ofA.includes(partition) ? 'a.1' : 'c.1'));
    place.linksOf = (partition) => (ofA.includes(partition) ? links(0, 20) : links(0, 0, 20));
    await place.run(60, ['a.1', 'b.1']);
    const times = place.moved.map(({ at }) => at);
    expect(times.length).toBeGreaterThan(1);
    for (const [i, at] of times.entries())
      if (i > 0) expect(at - (times[i - 1] ?? 0)).toBeGreaterThanOrEqual(4 * LEASE_MS);
  });

  it('do not follow links that stay for a short time only, or that swing', async () => {
    const place = new Deployment();
    for (let swing = 0; swing < 10; swing++) {
      place.linksOf = () => (swing % 2 === 0 ? links(0, 20) : links(20, 0));
      await place.run(20);
    }
    expect(place.moved).toEqual([]);
  });

  it('move nothing where links are spread evenly', async () => {
    const place = new Deployment();
    place.linksOf = (partition) => links(20 + (partition % 3), 21, 20);
    await place.run(200);
    expect(place.moved).toEqual([]);
  });

  it('go back when the links have gone', async () => {
    const place = new Deployment();
    place.linksOf = () => links(0, 20);
    await place.run(120);
    expect(place.countOf('b.1')).toBe(MOST);
    place.linksOf = () => new Map();
    await place.run(120);
    expect(place.owners).toEqual(byHash());
  });

  it('take no partition beyond the share, whatever another process has seen, but for those of the hash', () => {
    const moves = new Moves({ process: 'a.1', clock: new FakeClock(), leaseMs: LEASE_MS });
    const notOfA = byHash().findIndex((process) => process !== 'a.1');
    const view = viewOf([...Array<string>(MOST).fill('a.1'), ...Array<string>(COUNT - MOST).fill('b.1')]);
    const fewer = viewOf([...Array<string>(MOST - 1).fill('a.1'), ...Array<string>(COUNT - MOST + 1).fill('b.1')]);
    expect(moves.mayTake(notOfA, view)).toBe(true);
    moves.count([]);
    expect([moves.mayTake(notOfA, view), moves.mayTake(notOfA, fewer), moves.mayTake(OF_A, view)]).toEqual([
      ...[false, true, true],
    ]);
    moves.countNone();
    expect(moves.mayTake(notOfA, view)).toBe(true);
  });

  it('count the links of one partition in a look, once all are known', async () => {
    const place = new Deployment();
    await place.run(10);
    const before = place.counted;
    await place.run(10);
    expect(place.counted - before).toBe(4 * 10 * PROCESSES.length);
  });
});
