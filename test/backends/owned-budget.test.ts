/**
 * Tests that a process which takes over what others owned stays within its bounds: evidence is dropped and named, and
 * what rules need is kept, or waits for a process with room.
 */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { shouldOwn } from '../../src/backends/owned/placement.ts';
import type { PartitionStores } from '../../src/backends/owned/routes.ts';
import { ANY_COMMAND } from '../../src/core/commands/delivery-inspector.ts';
import { clientStream } from '../../src/core/history/message.ts';
import { toJson } from '../../src/core/json.ts';
import { silentLog } from '../../src/core/ports.ts';
import type { GivenBounds } from '../../src/core/shares/share-bounds.ts';
import { admission, ending } from '../contract/kit/bench.ts';
import { FakeClock } from '../kit/clock.ts';
import { LEASE_MS, OwnerDeployment, type OwnerProcess } from '../kit/owners.ts';
import { eventually } from '../kit/patience.ts';

const PARTITIONS = 6;
const ALL = Array.from({ length: PARTITIONS }, (_, partition) => partition);
const REDIS = inject('redisUrl');
const ENDED = 8;
const BOUNDS = {
  ended_records: { guarantee: 4, total: 10 },
  result_bytes: { guarantee: 100, total: 600 },
  history_bytes: { guarantee: 2_000, total: 12_000 },
} as const;
const EVIDENCE = ['ended_records', 'result_bytes', 'history_bytes'] as const;

describe('the budget of a process', () => {
  let clock: FakeClock;
  let place: OwnerDeployment;
  let errors: string[];
  const deploy = (bounds: GivenBounds) => {
    const log = { ...silentLog, error: (_fields: object, text: string) => void errors.push(text) };
    place = new OwnerDeployment({ clock, namespace: randomUUID(), partitions: PARTITIONS, log, bounds });
  };
  beforeEach(() => {
    clock = new FakeClock();
    errors = [];
  });
  afterEach(() => place[Symbol.asyncDispose]());

  const ownedBy = ({ owners }: OwnerProcess): readonly number[] => owners.owned.map(({ number }) => number);
  const storesOf = ({ owners }: OwnerProcess, partition: number): PartitionStores => {
    const stores = owners.local(partition);
    if (!stores) throw new Error(`the partition ${partition} is not here`);
    return stores;
  };
  /** Lets time pass until what is expected is so. */
  const until = (see: () => void): Promise<void> =>
    eventually(async () => {
      await clock.advance(LEASE_MS / 4);
      see();
    });
  const ownsAll = (process: OwnerProcess) => until(() => expect(ownedBy(process)).toEqual(ALL));

  /** Waits until each of these processes owns what it should own, and no partition moves any more. */
  const haveTheirs = (all: readonly OwnerProcess[]): Promise<void> =>
    until(() => {
      for (const one of all)
        expect(ownedBy(one)).toEqual(ALL.filter((partition) => shouldOwn(partition, idsOf(all)) === one.id));
    });
  const idsOf = (all: readonly OwnerProcess[]) => all.map(({ id }) => id);

  const clientOf = (partition: number) => ({ userId: `u${partition}`, clientId: 'tab' });
  const idOf = (partition: number, number: number) => `c${partition}.${number}`;
  const keyOf = (partition: number, commandId: string) => ({ ...clientOf(partition), commandId });
  const admit = ({ commands }: PartitionStores, partition: number, commandId: string) =>
    commands.admit(admission(commandId, { ...clientOf(partition), scopeId: clientOf(partition).userId }));

  /** Ends commands with results in each partition of a process, and leaves one that has not ended. */
  async function fill(process: OwnerProcess): Promise<void> {
    for (const partition of ownedBy(process)) {
      const stores = storesOf(process, partition);
      const binding = { nodeId: 'n1', instanceId: 'i1', epoch: 1 };
      await stores.commands.rebind(clientOf(partition), binding, 'up');
      for (let number = 0; number < ENDED; number++) {
        const key = keyOf(partition, idOf(partition, number));
        expect(await admit(stores, partition, key.commandId)).toMatchObject({ kind: 'admitted' });
        expect(await stores.commands.dispatch(key, binding)).toMatchObject({ kind: 'dispatch' });
        await stores.commands.finish(key, ending({ payload: toJson({ text: 'x'.repeat(100) }) }));
      }
      expect(await admit(stores, partition, 'live')).toMatchObject({ kind: 'admitted' });
    }
    await process.turns.recorded();
  }

  function expectWithin({ shares }: OwnerProcess): void {
    for (const share of EVIDENCE)
      expect([share, shares.used(share)]).toEqual([share, expect.toSatisfy(isWithin(share))]);
  }
  const isWithin = (share: (typeof EVIDENCE)[number]) => (used: number) => used > 0 && used <= BOUNDS[share].total;

  /** Sees that a process has what rules need of all partitions, and says what it lacks. */
  async function expectServed(process: OwnerProcess, newId: string): Promise<void> {
    for (const partition of ALL) {
      const stores = storesOf(process, partition);
      const { userId, clientId } = clientOf(partition);
      expect((await stores.commands.get([keyOf(partition, 'live')]))[0]).toMatchObject({ commandId: 'live' });
      for (let number = 0; number < ENDED; number++)
        expect(await admit(stores, partition, idOf(partition, number))).not.toMatchObject({ kind: 'admitted' });
      const page = { first: 100, after: null };
      const messages = await stores.history.messages(
        ...[userId, clientStream(clientId)],
        { kinds: null, afterTime: null, beforeTime: null },
        page,
      );
      expect(messages?.gaps).toMatchObject([{ source: 'messages', reason: 'evicted' }]);
      const listed = await stores.inspector.list({ ...ANY_COMMAND, userId }, page);
      expect(listed.gaps).toMatchObject([{ reason: 'evicted' }]);
      expect(await admit(stores, partition, newId)).toMatchObject({ kind: 'admitted' });
    }
    await process.turns.recorded();
  }

  it('holds after two of three full processes are gone, and what was dropped stays dropped', async () => {
    deploy(BOUNDS);
    const first = await place.start('a.1', REDIS);
    const second = await place.start('b.1', REDIS);
    const third = await place.start('d.1', REDIS);
    const three = [first, second, third];
    await haveTheirs(three);
    for (const one of three) {
      await fill(one);
      for (const share of EVIDENCE) expect(one.shares.used(share)).toBeLessThanOrEqual(BOUNDS[share].total);
    }
    await first.die();
    await haveTheirs([second, third]);
    await second.owners.close();
    for (const share of [...EVIDENCE, 'marks', 'queued_bytes'] as const) expect(second.shares.used(share)).toBe(0);
    await ownsAll(third);
    expectWithin(third);
    await expectServed(third, 'new');
    expectWithin(third);
    await third.die();
    const fourth = await place.start('e.1', REDIS);
    await ownsAll(fourth);
    expectWithin(fourth);
    await expectServed(fourth, 'newer');
  });

  it('leaves a partition to others while there is no room for what rules need', async () => {
    deploy({ marks: { guarantee: 4, total: 4 } });
    const first = await place.start('a.1', REDIS);
    await ownsAll(first);
    const second = await place.start('b.1', REDIS);
    await haveTheirs([first, second]);
    const left = ownedBy(first);
    // More than a process admits, as it has after it took over from another one.
    const holdings = second.shares.of('somebody');
    holdings.take('marks', 6);
    await first.die();
    await until(() => expect(errors).toContain('this relay has no room for more partitions'));
    for (let looks = 0; looks < 12; looks++) await until(() => {});
    expect(ownedBy(second)).toEqual(ALL.filter((partition) => !left.includes(partition)));
    expect(second.owners.orphans).toBe(left.length);
    holdings.release('marks', 6);
    await ownsAll(second);
  });
});
