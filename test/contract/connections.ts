/**
 * Defines the contract tests of the port ConnectionStore, which keeps connections of clients. Every backend must pass
 * them.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as fc from 'fast-check';
import type { ConnectRequest } from '../../src/core/connections/connection-store.ts';
import { connectionStatus, type Connection, type Predecessor } from '../../src/core/connections/connection.ts';
import { toJson } from '../../src/core/json.ts';
import { DEAD_MS, FORGET_MS, STALE_MS } from '../../src/core/limits.ts';
import { ALL, connectionActs, ConnectionModel, hello, ids } from './kit/connections-model.ts';
import { listing } from './connections-listing.ts';
import type { Bench, MakeBench } from './kit/bench.ts';

type ConnectionContractOptions = {
  /** The number of random runs in the comparison with a plain list. */
  readonly runs?: number;
  /**
   * The sort order of listings: UTF-16 code units or UTF-8 bytes. They differ only for characters beyond the basic
   * plane.
   */
  readonly order?: 'units' | 'bytes';
};

/** Defines the tests that every ConnectionStore must pass. */
export function connectionContract(
  name: string,
  make: MakeBench,
  { runs = 150, order = 'units' }: ConnectionContractOptions = {},
): void {
  describe(`connections on ${name}`, () => {
    let bench: Bench;
    beforeEach(async () => {
      bench = await make();
    });
    afterEach(() => bench.close());

    identity(() => bench);
    fencing(() => bench);
    forgetting(() => bench);
    listing(() => bench, order);

    it('behaves like a plain list of rows, for any sequence of events', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(connectionActs, { maxLength: 40 }), async (acts) => {
          await using own = await opened(make);
          const model = new ConnectionModel(own);
          for (const act of acts) await model.run(act);
        }),
        { numRuns: runs },
      );
    });
  });
}

function identity(bench: () => Bench): void {
  it("keeps the client's hello, member for member", async () => {
    const { connections } = bench().backend;
    const action = { name: 'open', summary: 's', description: null, version: '2', checksArguments: true };
    const actions = [{ ...action, schema: toJson({ type: 'object' }), metadata: toJson([1]) }];
    const request = hello('alice', 'tab', { actions, metadata: toJson({ os: 'x' }), clientType: 'mobile' });
    const { kind, connection, previous } = await connections.connect(request);
    expect({ kind, previous }).toEqual({ kind: 'connected', previous: null });
    expect(connection).toEqual({
      ...request,
      epoch: expect.any(Number),
      connectedAt: bench().now(),
      lastSeenAt: bench().now(),
      disconnectedAt: null,
      disconnectCause: null,
      closeCode: null,
      replacedInstanceId: null,
      replacedAt: null,
      predecessors: [],
    });
    expect(await connections.get([{ userId: 'alice', clientId: 'tab' }])).toEqual([connection]);
  });

  it('answers the requested keys in their order, with null for a missing row', async () => {
    const { connections } = bench().backend;
    await connections.connect(hello('alice', 'a'));
    await connections.connect(hello('bob', 'a', { instanceId: 'b1' }));
    const keys = [
      { userId: 'bob', clientId: 'a' },
      { userId: 'alice', clientId: 'b' },
      { userId: 'carol', clientId: 'a' },
      { userId: 'alice', clientId: 'a' },
    ];
    const found = await connections.get(keys);
    expect(found.map((row) => row?.instanceId ?? null)).toEqual(['b1', null, null, 'i1']);
    expect(await connections.get([])).toEqual([]);
  });

  it('resumes the same instance under a new epoch, live or recently lost', async () => {
    const { connections } = bench().backend;
    const first = await connections.connect(hello('alice', 'tab'));
    const second = await connections.connect(hello('alice', 'tab', { nodeId: 'n2' }));
    expect(second).toMatchObject({ kind: 'resumed', previous: first.connection });
    expect(second.connection).toMatchObject({ nodeId: 'n2', replacedInstanceId: null });
    expect(second.connection.epoch).toBeGreaterThan(first.connection.epoch);
    await connections.disconnect(second.connection, second.connection.epoch, 'client_closed');
    await bench().advance(FORGET_MS - 1);
    const third = await connections.connect(hello('alice', 'tab'));
    expect(third).toMatchObject({ kind: 'resumed', connection: { disconnectedAt: null } });
    expect(third.connection.epoch).toBeGreaterThan(second.connection.epoch);
    expect(third.connection.disconnectCause).toBeNull();
  });

  it('refuses a hello that is older than the link of its instance, up or lost, and changes nothing', async () => {
    const { connections } = bench().backend;
    const attempt = (linkAttempt: number | undefined, over: Partial<ConnectRequest> = {}) =>
      connections.connect(hello('alice', 'tab', { ...over, linkAttempt }));
    const stale = expect.objectContaining({ code: 'stale_instance' });
    const refused = (linkAttempt: number) =>
      expect(Promise.resolve().then(() => attempt(linkAttempt))).rejects.toEqual(stale);
    const { connection } = await attempt(3);
    const rows = () => connections.get([connection]);
    expect([connection.linkAttempt, await rows()]).toEqual([3, [connection]]);
    await refused(2);
    expect(await rows()).toEqual([connection]);
    await connections.disconnect(connection, connection.epoch, 'lost');
    const [lost] = await rows();
    await refused(1);
    expect(await rows()).toEqual([lost]);
    expect(await attempt(3)).toMatchObject({ kind: 'resumed' });
    expect(await attempt(4)).toMatchObject({ kind: 'resumed', connection: { linkAttempt: 4 } });
    // A client that does not count is treated as before, and so is another instance.
    expect((await attempt(undefined)).connection.linkAttempt).toBeUndefined();
    expect(await attempt(1)).toMatchObject({ kind: 'resumed', connection: { linkAttempt: 1 } });
    expect(await attempt(9, { instanceId: 'i2' })).toMatchObject({ kind: 'replaced' });
    expect(await attempt(1)).toMatchObject({ kind: 'replaced' });
  });

  it('reports which instance was replaced and when, also after the new one resumed', async () => {
    const { connections } = bench().backend;
    await connections.connect(hello('alice', 'tab'));
    await bench().advance(10);
    const replacedAt = bench().now();
    const taken = await connections.connect(hello('alice', 'tab', { instanceId: 'i2' }));
    expect(taken).toMatchObject({ kind: 'replaced', previous: { instanceId: 'i1' } });
    expect(taken.connection).toMatchObject({ replacedInstanceId: 'i1', replacedAt });
    await bench().advance(1000);
    const back = await connections.connect(hello('alice', 'tab', { instanceId: 'i2' }));
    expect(back).toMatchObject({ kind: 'resumed', connection: { replacedInstanceId: 'i1', replacedAt } });
  });

  it('lists the last ten earlier instances, with node, time and cause, until the row is forgotten', async () => {
    const { connections } = bench().backend;
    const key = { userId: 'alice', clientId: 'tab' };
    const expected: Predecessor[] = [];
    for (let i = 0; i < 12; i++) {
      const request = hello('alice', 'tab', { instanceId: `i${i}`, nodeId: `n${i % 2}` });
      const { connection } = await connections.connect(request);
      expect(connection.predecessors).toEqual(expected.slice(0, 10));
      await bench().advance(10);
      // An instance that resumes keeps the same list of predecessors.
      expect((await connections.connect(request)).connection.predecessors).toEqual(connection.predecessors);
      const { epoch } = (await connections.get([key]))[0] ?? connection;
      const cause = (['replaced', 'client_closed', 'heartbeat_lost'] as const)[i % 3] ?? 'replaced';
      if (cause === 'client_closed') await connections.disconnect(key, epoch, cause);
      // Without a close, the link becomes silent.
      if (cause === 'heartbeat_lost') await bench().advance(DEAD_MS);
      expected.unshift({ instanceId: `i${i}`, nodeId: `n${i % 2}`, replacedAt: bench().now(), cause });
    }
    const [row] = await connections.get([key]);
    expect(row?.predecessors).toEqual(expected.slice(1, 11));
    expect(await connections.touch(key, row?.epoch ?? 0)).toBeNull();
    await bench().advance(FORGET_MS);
    expect((await connections.connect(hello('alice', 'tab'))).connection.predecessors).toEqual([]);
  });

  it('replaces an instance whose link was just lost, and treats a forgotten one as new', async () => {
    const { connections } = bench().backend;
    const { connection } = await connections.connect(hello('alice', 'tab'));
    await connections.disconnect(connection, connection.epoch, 'heartbeat_lost');
    await bench().advance(FORGET_MS - 1);
    const next = await connections.connect(hello('alice', 'tab', { instanceId: 'i2' }));
    expect(next).toMatchObject({ kind: 'replaced', connection: { replacedInstanceId: 'i1' } });
    await connections.disconnect(next.connection, next.connection.epoch, 'client_closed');
    await bench().advance(FORGET_MS);
    const fresh = await connections.connect(hello('alice', 'tab', { instanceId: 'i3' }));
    expect(fresh).toMatchObject({ kind: 'connected', previous: null });
    expect(fresh.connection).toMatchObject({ replacedInstanceId: null, replacedAt: null });
  });
}

function fencing(bench: () => Bench): void {
  it('accepts a sign of life only from the current epoch of a link that is up', async () => {
    const { connections } = bench().backend;
    const key = { userId: 'alice', clientId: 'tab' };
    expect(await connections.touch(key, 1)).toBeNull();
    const { epoch: former } = (await connections.connect(hello('alice', 'tab'))).connection;
    const { epoch } = (await connections.connect(hello('alice', 'tab'))).connection;
    await bench().advance(100);
    expect(await connections.touch(key, former)).toBeNull();
    expect(await connections.touch(key, epoch)).toMatchObject({ lastSeenAt: bench().now(), epoch });
    expect(await connections.touch(key, epoch + 1)).toBeNull();
    await connections.disconnect(key, epoch, 'client_closed');
    expect(await connections.touch(key, epoch)).toBeNull();
  });

  it('does not revive a link that was silent for too long', async () => {
    const { connections } = bench().backend;
    const { connection } = await connections.connect(hello('alice', 'tab'));
    await bench().advance(DEAD_MS - 1);
    expect(await connections.touch(connection, connection.epoch)).not.toBeNull();
    await bench().advance(DEAD_MS);
    expect(await connections.touch(connection, connection.epoch)).toBeNull();
    expect(await connections.advertise(connection, connection.epoch, [])).toBeNull();
  });

  it('replaces advertisements as a whole, under the current epoch only', async () => {
    const { connections } = bench().backend;
    const action = { name: 'a', summary: null, description: null, version: null, checksArguments: null };
    const actions = [{ ...action, schema: null, metadata: null }];
    const { connection } = await connections.connect(hello('alice', 'tab'));
    expect(await connections.advertise(connection, connection.epoch + 1, actions)).toBeNull();
    expect(await connections.advertise(connection, connection.epoch, actions)).toMatchObject({ actions });
    expect(await connections.get([connection])).toMatchObject([{ actions, epoch: connection.epoch }]);
  });

  it("keeps a newer link up when an old socket's close arrives late", async () => {
    const { connections } = bench().backend;
    const { connection } = await connections.connect(hello('alice', 'tab'));
    const { epoch } = (await connections.connect(hello('alice', 'tab'))).connection;
    expect(await connections.disconnect(connection, connection.epoch, 'client_closed')).toBeNull();
    expect(await connections.get([connection])).toMatchObject([{ disconnectedAt: null, epoch }]);
  });

  it('records the first cause and time of a loss, and ignores a second', async () => {
    const { connections } = bench().backend;
    const { connection } = await connections.connect(hello('alice', 'tab'));
    const lostAt = bench().now();
    const lost = await connections.disconnect(connection, connection.epoch, 'token_expired');
    expect(lost).toMatchObject({ disconnectedAt: lostAt, disconnectCause: 'token_expired' });
    await bench().advance(50);
    expect(await connections.disconnect(connection, connection.epoch, 'client_closed')).toEqual(lost);
    expect(await connections.disconnect({ userId: 'bob', clientId: 'tab' }, 1, 'operator')).toBeNull();
  });

  it('never changes a connection that it has returned', async () => {
    const { connections } = bench().backend;
    const { connection } = await connections.connect(hello('alice', 'tab'));
    const asGiven = structuredClone(connection);
    await bench().advance(5);
    await connections.touch(connection, connection.epoch);
    await connections.disconnect(connection, connection.epoch, 'operator');
    expect(connection).toEqual(asGiven);
  });
}

function forgetting(bench: () => Bench): void {
  it('shows a lost row for FORGET_MS, and afterwards in no answer', async () => {
    const { connections } = bench().backend;
    const { connection } = await connections.connect(hello('alice', 'tab'));
    await connections.disconnect(connection, connection.epoch, 'client_closed');
    await bench().advance(FORGET_MS - 1);
    expect(await ids(bench(), ALL)).toEqual(['alice/tab']);
    await bench().advance(1);
    expect(await ids(bench(), ALL)).toEqual([]);
    expect(await connections.get([connection])).toEqual([null]);
    expect(await connections.ofUsers(['alice'], 10)).toEqual([{ total: 0, rows: [] }]);
    expect((await connections.users({ first: 10, after: null })).rows).toEqual([]);
  });

  it('keeps a row whose client reconnected in time', async () => {
    const { connections } = bench().backend;
    const { connection } = await connections.connect(hello('alice', 'tab'));
    await connections.disconnect(connection, connection.epoch, 'client_closed');
    await bench().advance(FORGET_MS - 1);
    await connections.connect(hello('alice', 'tab'));
    await bench().advance(10);
    expect(await ids(bench(), ALL)).toEqual(['alice/tab']);
  });

  it('keeps a row as long as its link shows signs of life, and no longer', async () => {
    const { connections } = bench().backend;
    const { connection } = await connections.connect(hello('alice', 'tab'));
    for (let i = 0; i < 6; i++) {
      await bench().advance(DEAD_MS - 1);
      expect(await connections.touch(connection, connection.epoch)).toMatchObject({ lastSeenAt: bench().now() });
      expect(await ids(bench(), ALL)).toEqual(['alice/tab']);
    }
    await bench().advance(DEAD_MS + FORGET_MS - 1);
    expect(await ids(bench(), ALL)).toEqual(['alice/tab']);
    await bench().advance(1);
    expect(await ids(bench(), ALL)).toEqual([]);
  });

  it('counts a silent link that was never closed as lost after DEAD_MS, and forgets it like any other', async () => {
    await bench().backend.connections.connect(hello('alice', 'tab'));
    const states: [number, Connection['disconnectCause'] | string][] = [
      [STALE_MS - 1, 'connected'],
      [1, 'stale'],
      [DEAD_MS - STALE_MS - 1, 'stale'],
      [1, 'disconnected'],
      [FORGET_MS - 1, 'disconnected'],
    ];
    for (const [ms, status] of states) {
      await bench().advance(ms);
      const [row] = await bench().backend.connections.get([{ userId: 'alice', clientId: 'tab' }]);
      expect(row && connectionStatus(row, bench().now())).toBe(status);
    }
    await bench().advance(1);
    expect(await ids(bench(), ALL)).toEqual([]);
  });
}

async function opened(make: MakeBench): Promise<Bench & AsyncDisposable> {
  const bench = await make();
  return { ...bench, [Symbol.asyncDispose]: () => bench.close() };
}
