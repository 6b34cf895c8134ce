/**
 * Tests admissions over Redis for which a process relies on a connection that it saw earlier. Redis compares that
 * connection with the present one.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ConnectRequest } from '../../src/core/connections/connection-store.ts';
import type { Connection } from '../../src/core/connections/connection.ts';
import { toJson } from '../../src/core/json.ts';
import { NODE_LEASE_MS } from '../../src/core/limits.ts';
import type { AdmitRequest } from '../../src/core/commands/command-store.ts';
import { shareBounds, type GivenBounds } from '../../src/core/shares/share-bounds.ts';
import { CALLER, admission, ALICE, ending, keyFor, kinds, openNode } from '../contract/kit/bench.ts';
import { auditedBench, redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';
import { advertisement } from '../kit/core.ts';

const REQUEST: ConnectRequest = {
  ...ALICE,
  instanceId: 'i1',
  nodeId: 'n1',
  clientType: 'browser',
  host: false,
  metadata: toJson({ a: 1 }),
  actions: [advertisement('open')],
};

describe('an admission that rests on a connection seen earlier', () => {
  let bench: RedisBench;
  /** The backend of another process, which has read the connection and therefore knows it. */
  let other: RedisBench;
  let link: Connection;
  beforeEach(async () => {
    bench = await redisBench({ leaseMs: NODE_LEASE_MS });
    other = await redisBench({ beside: bench, leaseMs: NODE_LEASE_MS });
    await openNode(bench);
    link = await comeUp('i1');
  });
  afterEach(async () => {
    await other.close();
    await bench.close();
  });

  const comeUp = async (instanceId: string): Promise<Connection> => {
    const { connections, commands } = bench.backend;
    const { connection } = await connections.connect({ ...REQUEST, instanceId });
    await commands.rebind(ALICE, connection, 'up');
    return connection;
  };
  const lastSeen = (at: RedisBench): Connection | null => at.backend.connections.lastSeen?.(ALICE) ?? null;
  const see = async (): Promise<Connection> => {
    const [seen] = await other.backend.connections.get([ALICE]);
    expect(lastSeen(other)).toEqual(seen);
    return seen!;
  };
  const admit = async (seen: Connection, commandId = 'c1') =>
    (await other.backend.commands.admit(admission(commandId, { seen, connectWithinMs: 1_000 }))).kind;
  const isUntouched = async (): Promise<void> => {
    expect(await bench.backend.commands.get([keyFor('c1')])).toEqual([null]);
    expect(await kinds(bench, 'c1')).toEqual([]);
    expect((await bench.backend.inspector.summary()).trackedCommands).toBe(0);
  };

  it('is admitted while the client has this link and advertises the same', async () => {
    expect(lastSeen(other)).toBeNull();
    expect(lastSeen(bench)).toEqual(link);
    expect(await admit(await see())).toBe('admitted');
    expect(await admit(link, 'c2')).toBe('admitted');
  });

  it('is compared in the call that admits, without a read before, if the calling node waits', async () => {
    await openNode(other, 'n2');
    const seen = await see();
    const waiter = (rpcId: string) =>
      ({ rpcId, caller: CALLER, callerNodeId: 'n2', waitFor: 'completed', withinMs: null }) as const;
    const admitOf = async (commandId: string) =>
      (await other.backend.commands.admit(admission(commandId, { seen, waiter: waiter(commandId) }))).kind;
    // The first ones open the stream of the client, and read the epoch of the client's node.
    expect([await admitOf('c2'), await admitOf('c3')]).toEqual(['admitted', 'admitted']);
    const trips = other.store.roundTrips;
    expect(await admitOf('c4')).toBe('admitted');
    expect(other.store.roundTrips - trips).toBe(1);
    await comeUp('i2');
    expect(await admitOf('c1')).toBe('outdated');
    expect(await bench.backend.commands.get([keyFor('c1')])).toEqual([null]);
  });

  it('is refused as outdated, and writes nothing, once the client advertises something else', async () => {
    const seen = await see();
    await bench.backend.connections.advertise(ALICE, link.epoch, [advertisement('close')]);
    expect(await admit(seen)).toBe('outdated');
    await isUntouched();
    expect(await admit(await see())).toBe('admitted');
  });

  it.each([
    ['the same instance has a newer link', () => comeUp('i1')],
    ['another instance has replaced it', () => comeUp('i2')],
    [
      'its link is down',
      async () => {
        await bench.backend.connections.disconnect(ALICE, link.epoch, 'client_closed');
        await bench.backend.commands.rebind(ALICE, link, 'down');
      },
    ],
    ["its node's lease is over", () => bench.advance(NODE_LEASE_MS)],
  ])('is refused as outdated, and writes nothing, once %s', async (_what, happen) => {
    const seen = await see();
    await happen();
    expect(await admit(seen)).toBe('outdated');
    await isUntouched();
  });

  it('is refused as outdated under a known id too: the checks of the caller come first', async () => {
    const seen = await see();
    expect(await admit(seen)).toBe('admitted');
    await comeUp('i2');
    expect(await admit(seen)).toBe('outdated');
    expect(await admit(await see())).toBe('attached');
  });

  it('finds the mark of an ended command, and refuses an id that was forgotten', async () => {
    const bound = (total: number) => ({ guarantee: total, total });
    await using small = await smallBench({ ended_records: bound(1), marks: bound(2) });
    const { bench: own, admitSeen, run } = small;
    const parked = admission('b1', { userId: 'bob', scopeId: 'bob', connectWithinMs: 60_000 });
    expect(await own.backend.commands.admit(parked)).toMatchObject({ kind: 'admitted' });
    await run('c1');
    for (const n of [1, 2]) await run(relayId(n), { chosenId: false });
    await own.quiet();
    expect(await admitSeen('c1')).toMatchObject({ kind: 'ended', mark: { outcome: 'completed' } });
    // The share `marks` has no room, which is "store_full" for an id that was never used.
    expect(await admitSeen(relayId(1))).toEqual({ kind: 'refused', code: 'share_exceeded' });
    expect(await admitSeen(relayId(3))).toEqual({ kind: 'refused', code: 'store_full' });
  });

  it('knows no connection that was read as lost', async () => {
    await see();
    await bench.backend.connections.disconnect(ALICE, link.epoch, 'client_closed');
    await other.backend.connections.get([ALICE]);
    expect(lastSeen(other)).toBeNull();
  });

  it('knows the last sign of life that was read', async () => {
    await see();
    await bench.advance(1_000);
    await bench.backend.connections.touch(ALICE, link.epoch);
    expect(lastSeen(bench)?.lastSeenAt).toBe(bench.now());
    await other.backend.connections.get([ALICE]);
    expect(lastSeen(other)?.lastSeenAt).toBe(bench.now());
  });
});

function relayId(n: number): string {
  return `01900000-0000-7000-8000-${String(n).padStart(12, '0')}`;
}

/** Opens a backend with these bounds and a connected client. Its admissions rest on the connection that it has seen. */
async function smallBench(bounds: GivenBounds) {
  const bench = await auditedBench({ partitions: 1, bounds: shareBounds(bounds) });
  await openNode(bench);
  const { connections, commands } = bench.backend;
  const { connection: seen } = await connections.connect(REQUEST);
  await commands.rebind(ALICE, seen, 'up');
  const admitSeen = (commandId: string, over: Partial<AdmitRequest> = {}) =>
    commands.admit(admission(commandId, { seen, ...over }));
  const run = async (commandId: string, over: Partial<AdmitRequest> = {}): Promise<void> => {
    expect(await admitSeen(commandId, over)).toMatchObject({ kind: 'admitted' });
    await commands.dispatch(keyFor(commandId), seen);
    await commands.finish(keyFor(commandId), ending());
  };
  return { bench, admitSeen, run, [Symbol.asyncDispose]: () => bench.close() };
}
