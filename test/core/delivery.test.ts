/** Tests what core shows of delivery to administrators: nodes, capacity scopes and records. */
import { describe, expect, it } from 'vitest';
import { compilePolicy } from '../../src/core/auth/policy-file.ts';
import type { Requester } from '../../src/core/core.ts';
import type { MailboxRow, NodeReport } from '../../src/core/commands/node-store.ts';
import { toJson } from '../../src/core/json.ts';
import { NODE_LEASE_MS } from '../../src/core/limits.ts';
import type { Log } from '../../src/core/ports.ts';
import { shareBounds } from '../../src/core/shares/share-bounds.ts';
import { createShares } from '../../src/core/shares/shares.ts';
import { CALLER } from '../contract/kit/bench.ts';
import { settle } from '../kit/clock.ts';
import { PROCESS, admin, connect, testCore, user, type TestClient, type TestCore } from '../kit/core.ts';
import { unawaited } from '../kit/patience.ts';

const alice = user('alice');
const TAB = { userId: 'alice', clientId: 'tab' };
const LISTING = { first: 100 };

const invoke = ({ core }: TestCore, commandId: string, over: object = {}) =>
  core.rpc.invoke(alice, { ...TAB, action: 'open', params: null, commandId, ...over });

function auditLog(): { readonly lines: Record<string, unknown>[]; readonly log: Log } {
  const lines: Record<string, unknown>[] = [];
  const info: Log['info'] = (fields) => void ('audit' in fields && lines.push(fields));
  return { lines, log: { debug() {}, warn() {}, error() {}, info } };
}

/** Opens a second node on the same backend. Its mailbox is a list, and the test decides what the node reports. */
async function otherNode({ backend }: TestCore, nodeId: string) {
  const rows: MailboxRow[] = [];
  await backend.nodes.attach(nodeId, {
    deliver: (row) => void rows.push(row),
    lost: () => Promise.resolve(),
    linksLost: () => {},
    revived: () => {},
  });
  const report: NodeReport = {
    listenerAlive: true,
    reconciliationAlive: true,
    activeDrainers: 0,
    connectionWaiters: 0,
    links: 0,
    unfinishedCommands: 0,
    draining: false,
    counters: new Map(),
    process: null,
  };
  const beat = (over: Partial<NodeReport> = {}) => backend.nodes.beat(nodeId, { ...report, ...over });
  await beat();
  return { rows, beat };
}

describe('a requester without administrator rights', () => {
  it('reads the own commands, can read nothing else of delivery and cannot act on it', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const { delivery } = relay.core;
    const key = { ...TAB, commandId: 'c1' };
    const asks: ((requester: Requester) => Promise<unknown>)[] = [
      (requester) => delivery.summary(requester),
      (requester) => delivery.nodes(requester, LISTING),
      (requester) => delivery.tenants(requester, LISTING),
      (requester) => delivery.status(requester, key),
      (requester) => delivery.disconnectClient(requester, TAB, null),
      (requester) => delivery.drainNode(requester, 'n1', 0),
    ];
    for (const ask of asks) {
      await expect(ask(alice)).rejects.toMatchObject({ code: 'forbidden' });
      await expect(ask(null)).rejects.toMatchObject({ code: 'unauthenticated' });
    }
    expect((await delivery.commands(alice, {}, LISTING)).nodes).toEqual([]);
    await expect(delivery.commands(alice, { userId: 'bob' }, LISTING)).rejects.toMatchObject({ code: 'not_found' });
    await expect(delivery.commands(null, {}, LISTING)).rejects.toMatchObject({ code: 'unauthenticated' });
    await settle();
    expect(client.closes).toEqual([]);
    expect(relay.core.draining).toBe(false);
  });
});

describe('nodes', () => {
  const mine = async ({ core }: TestCore, nodeId = 'n1') =>
    (await core.delivery.nodes(admin, LISTING)).nodes.find((node) => node.nodeId === nodeId);

  it('report their links, drainers, unended commands and waiting callers', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    await connect(relay.core, user('bob'));
    client.backlog = Number.MAX_SAFE_INTEGER;
    void invoke(relay, 'c1');
    void invoke(relay, 'c2');
    await relay.clock.advance(2_000);
    expect(await mine(relay)).toMatchObject({
      listenerAlive: true,
      reconciliationAlive: true,
      activeDrainers: 1,
      connectionWaiters: 2,
      links: 2,
      unfinishedCommands: 2,
      draining: false,
      stale: false,
      process: { ...PROCESS, version: '1.2.3', startedAt: relay.clock.now() - 2_000 },
      updatedAt: relay.clock.now(),
    });
  });

  it('count outcomes, acknowledgements and recoveries, with 0 for those that never happened', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const counter = async (name: string) => (await mine(relay))?.counters.get(name);
    expect(await counter('commands_ended:outcome_unknown')).toBe(0);
    expect(await counter('commands_recovered')).toBe(0);
    const done = invoke(relay, 'done');
    await settle();
    await client.session.ack('done');
    await client.result(client.last);
    await done;
    client.backlog = Number.MAX_SAFE_INTEGER;
    void invoke(relay, 'again');
    await settle();
    await client.session.closed('client_closed');
    await connect(relay.core, alice);
    await relay.clock.advance(2_000);
    expect(await counter('commands_acknowledged')).toBe(1);
    expect(await counter('commands_ended:completed')).toBe(1);
    expect(await counter('commands_ended:expired')).toBe(0);
    expect(await counter('commands_recovered')).toBe(1);
  });

  it('that were silent for the length of a lease are stale', async () => {
    await using relay = await testCore();
    const other = await otherNode(relay, 'n2');
    await relay.clock.advance(NODE_LEASE_MS - 1);
    expect(await mine(relay, 'n2')).toMatchObject({ stale: false });
    await relay.clock.advance(1);
    expect(await mine(relay, 'n2')).toMatchObject({ stale: true });
    expect(await mine(relay)).toMatchObject({ stale: false });
    await other.beat();
    expect(await mine(relay, 'n2')).toMatchObject({ stale: false });
  });

  it('report that their mailbox is no longer read', async () => {
    let deaf = false;
    await using relay = await testCore({
      wrap: (backend) => ({
        ...backend,
        nodes: { ...backend.nodes, post: (nodeId, row) => deaf || backend.nodes.post(nodeId, row) },
      }),
    });
    await relay.clock.advance(60_000);
    expect(await mine(relay)).toMatchObject({ listenerAlive: true, reconciliationAlive: true });
    deaf = true;
    await relay.clock.advance(8_000);
    expect(await mine(relay)).toMatchObject({ listenerAlive: false, reconciliationAlive: true });
    deaf = false;
    await relay.clock.advance(4_000);
    expect(await mine(relay)).toMatchObject({ listenerAlive: true });
  });

  it('report that their reconciliation fails', async () => {
    let broken = false;
    await using relay = await testCore({
      wrap: (backend) => ({
        ...backend,
        nodes: {
          ...backend.nodes,
          due(limit) {
            if (broken) throw new Error('no store');
            return backend.nodes.due(limit);
          },
        },
      }),
    });
    broken = true;
    await relay.clock.advance(8_000);
    expect(await mine(relay)).toMatchObject({ listenerAlive: true, reconciliationAlive: false });
  });

  it('are paged in order', async () => {
    await using relay = await testCore();
    for (const nodeId of ['n3', 'n2']) await otherNode(relay, nodeId);
    const first = await relay.core.delivery.nodes(admin, { first: 2 });
    const rest = await relay.core.delivery.nodes(admin, { first: 2, after: first.cursors.end() });
    expect([...first.nodes, ...rest.nodes].map(({ nodeId }) => nodeId)).toEqual(['n1', 'n2', 'n3']);
    expect(rest.hasNextPage).toBe(false);
    await expect(relay.core.delivery.tenants(admin, { after: first.cursors.end() })).rejects.toMatchObject({
      code: 'invalid_cursor',
    });
  });
});

describe('capacity scopes', () => {
  it('show the limit that the policy sets, and the holders', async () => {
    const policy = compilePolicy({
      rules: [],
      scopes: [{ id: 'team', members: ['alice', 'bob'], capacity: 7 }],
      userCapacity: 3,
    });
    await using relay = await testCore({ policy });
    await connect(relay.core, alice);
    void invoke(relay, 'c1');
    const park = { action: 'open', params: null, connectWithinMs: 9_000, commandId: 'c2', clientId: 'tab' };
    for (const name of ['bob', 'carol']) unawaited(relay.core.rpc.invoke(user(name), { userId: name, ...park }));
    await settle();
    const { nodes, completeness } = await relay.core.delivery.tenants(admin, LISTING);
    expect(nodes.map(({ scopeId, limit, reservedCommands }) => [scopeId, limit, reservedCommands])).toEqual([
      ['carol', 3, 1],
      ['team', 7, 2],
    ]);
    expect(nodes[1]?.holders.map(({ userId, commandId }) => [userId, commandId])).toEqual([
      ['alice', 'c1'],
      ['bob', 'c2'],
    ]);
    expect(completeness).toMatchObject({ complete: true, sources: [{ source: 'delivery' }] });
  });

  it('that the policy does not know have no limit', async () => {
    await using relay = await testCore({ policy: compilePolicy({ rules: [], scopes: [], userCapacity: 3 }) });
    const waiter = { rpcId: 'r', caller: CALLER, callerNodeId: 'n1', waitFor: 'completed', withinMs: null } as const;
    const asked = { chosenId: true, action: 'open', digest: 'd', scopeLimit: 5, memberLimit: null, params: null };
    const command = { ...asked, clientType: null, namedInstanceId: null };
    const traced = {
      caller: { kind: 'user', name: 'alice' },
      traceFlags: null,
      traceState: null,
      callSpan: null,
    } as const;
    const times = { traceId: null, parentSpanId: null, connectWithinMs: 9_000, respondWithinMs: 9_000 };
    const kept = { payload: null, payloadBytes: 0, spill: null };
    await relay.backend.commands.admit({
      ...TAB,
      commandId: 'c',
      scopeId: 'gone',
      ...command,
      ...traced,
      ...times,
      waiter,
      kept,
    });
    const { nodes } = await relay.core.delivery.tenants(admin, LISTING);
    expect(nodes).toMatchObject([{ scopeId: 'gone', limit: null, reservedCommands: 1 }]);
  });
});

describe('a delivery status', () => {
  it('is the record of the command, and null without a record', async () => {
    await using relay = await testCore();
    await connect(relay.core, alice);
    void invoke(relay, 'c1');
    await settle();
    expect(await relay.core.delivery.status(admin, { ...TAB, commandId: 'c1' })).toMatchObject({
      stage: 'dispatched',
      execution: 'may_have_run',
      outcome: null,
    });
    expect(await relay.core.delivery.status(admin, { ...TAB, userId: ' alice ', commandId: 'c1' })).not.toBe(null);
    expect(await relay.core.delivery.status(admin, { ...TAB, commandId: 'c2' })).toBe(null);
    expect(await relay.core.delivery.status(admin, { ...TAB, userId: 'bob', commandId: 'c1' })).toBe(null);
  });

  it('of invalid ids is refused as input', async () => {
    await using relay = await testCore();
    const status = (over: object) => relay.core.delivery.status(admin, { ...TAB, commandId: 'c1', ...over });
    for (const userId of ['', ' ', 'a/b', 'a\u0000b', 'x'.repeat(129)])
      await expect(status({ userId })).rejects.toMatchObject({ code: 'invalid_user', status: 400 });
    for (const over of [{ clientId: 'a/b' }, { clientId: '' }, { commandId: 'ü' }, { commandId: 'x'.repeat(129) }])
      await expect(status(over)).rejects.toMatchObject({ code: 'invalid_argument', status: 400 });
  });
});

describe('tracked commands', () => {
  it('are listed by user, client, stage and outcome, page by page', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    for (const commandId of ['c1', 'c2', 'c3']) void invoke(relay, commandId);
    await settle();
    await client.error(client.last, 'handler_failed');
    const ids = async (query: object) =>
      (await relay.core.delivery.commands(admin, query, LISTING)).nodes.map(({ commandId }) => commandId);
    expect(await ids({})).toEqual(['c1', 'c2', 'c3']);
    expect(await ids({ userId: 'alice', clientId: 'tab', stage: 'dispatched' })).toEqual(['c1', 'c2']);
    expect(await ids({ outcome: 'failed' })).toEqual(['c3']);
    expect(await ids({ nodeId: 'n2' })).toEqual([]);
    const first = await relay.core.delivery.commands(admin, {}, { first: 2 });
    const rest = await relay.core.delivery.commands(admin, {}, { after: first.cursors.end() });
    expect(rest.nodes.map(({ commandId }) => commandId)).toEqual(['c3']);
    await expect(
      relay.core.delivery.commands(admin, { userId: 'alice' }, { after: first.cursors.end() }),
    ).rejects.toMatchObject({ code: 'invalid_cursor' });
  });

  it('are none with a stage and an outcome that exclude each other, and are refused by invalid ids', async () => {
    await using relay = await testCore();
    const list = (query: object) => relay.core.delivery.commands(admin, query, LISTING);
    expect((await list({ stage: 'queued', outcome: 'failed' })).nodes).toEqual([]);
    expect((await list({ stage: 'terminal', outcome: 'failed' })).nodes).toEqual([]);
    await expect(list({ clientId: '/' })).rejects.toMatchObject({ code: 'invalid_argument' });
    await expect(list({ userId: '/' })).rejects.toMatchObject({ code: 'invalid_user' });
  });
});

describe('disconnecting a client', () => {
  it('closes its link as an operator, shows its state afterwards, and is written to the audit log', async () => {
    const { lines, log } = auditLog();
    await using relay = await testCore({ log });
    const client = await connect(relay.core, alice);
    void invoke(relay, 'c1');
    await settle();
    const answer = await relay.core.delivery.disconnectClient(admin, TAB, 'misbehaves');
    expect(client.closes).toEqual([{ cause: 'operator', instanceId: null }]);
    expect(answer).toMatchObject({
      state: 'closed',
      connection: { ...TAB, instanceId: 'i1', disconnectedAt: relay.clock.now(), disconnectCause: 'operator' },
    });
    const subject = { ...TAB, instanceId: 'i1', nodeId: 'n1', reason: 'misbehaves' };
    expect(lines).toEqual([{ audit: 'disconnect', requester: 'admin:test', ...subject }]);
    expect(relay.counts.get('links_closed:operator')).toBe(1);
    // The command does not end, because its client may reconnect and report.
    expect(await relay.core.delivery.status(admin, { ...TAB, commandId: 'c1' })).toMatchObject({ stage: 'dispatched' });
  });

  it('that is absent returns null, one whose link is down is refused, and neither is audited', async () => {
    const { lines, log } = auditLog();
    await using relay = await testCore({ log });
    const disconnect = (over: object = {}, reason: string | null = null) =>
      relay.core.delivery.disconnectClient(admin, { ...TAB, ...over }, reason);
    expect(await disconnect()).toBe(null);
    const client = await connect(relay.core, alice);
    await expect(disconnect({}, 'x'.repeat(257))).rejects.toMatchObject({ code: 'invalid_argument' });
    await expect(disconnect({ clientId: 'a b' })).rejects.toMatchObject({ code: 'invalid_argument' });
    expect(await disconnect({ userId: 'bob' })).toBe(null);
    await client.session.closed('client_closed');
    await expect(disconnect()).rejects.toMatchObject({ code: 'not_connected' });
    expect(client.closes).toEqual([]);
    expect(lines).toEqual([]);
  });

  it('never closes a newer link than the one that was read', async () => {
    await using relay = await testCore({
      wrap: (backend) => ({
        ...backend,
        nodes: {
          ...backend.nodes,
          async post(nodeId, row) {
            if (row.kind === 'kick' && row.cause === 'operator') await connect(relay.core, alice, { instanceId: 'i2' });
            return backend.nodes.post(nodeId, row);
          },
        },
      }),
    });
    const client = await connect(relay.core, alice);
    const answer = await relay.core.delivery.disconnectClient(admin, TAB, null);
    expect(client.closes).toEqual([{ cause: 'replaced', instanceId: 'i2' }]);
    expect(answer).toMatchObject({ state: 'closed', connection: { instanceId: 'i2', disconnectedAt: null } });
  });

  it('on a slow node is reported as requested only', async () => {
    await using relay = await testCore();
    const other = await otherNode(relay, 'n2');
    const { connections } = relay.backend;
    const hello = { instanceId: 'i1', clientType: 'web', host: false, metadata: null, actions: [] } as const;
    const { connection } = await connections.connect({ ...TAB, ...hello, nodeId: 'n2' });
    const slow = relay.core.delivery.disconnectClient(admin, TAB, null);
    await relay.clock.advance(2_000);
    expect(await slow).toMatchObject({ state: 'requested', connection: { disconnectedAt: null } });
    expect(other.rows).toEqual([
      { kind: 'kick', client: TAB, epoch: connection.epoch, cause: 'operator', instanceId: null },
    ]);
    const soon = relay.core.delivery.disconnectClient(admin, TAB, null);
    await relay.clock.advance(100);
    await connections.disconnect(TAB, connection.epoch, 'operator');
    await relay.clock.advance(100);
    expect(await soon).toMatchObject({ state: 'closed', connection: { disconnectCause: 'operator' } });
  });
});

describe('draining a node', () => {
  it('stops admitting, lets commands in flight end, and shows what is left', async () => {
    const { lines, log } = auditLog();
    await using relay = await testCore({ log });
    const busy = await connect(relay.core, alice);
    const idle = await connect(relay.core, user('bob'));
    const running = invoke(relay, 'runs');
    await settle();
    expect(await relay.core.delivery.drainNode(admin, 'n1', 60_000)).toMatchObject({
      nodeId: 'n1',
      draining: true,
      connectionWaiters: 1,
      unfinishedCommands: 1,
      updatedAt: relay.clock.now(),
    });
    expect(lines).toEqual([{ audit: 'drain', requester: 'admin:test', nodeId: 'n1' }]);
    expect(await invoke(relay, 'more')).toMatchObject({ kind: 'refused', code: 'draining' });
    await expect(connect(relay.core, user('carol'))).rejects.toMatchObject({ code: 'draining' });
    await relay.clock.advance(2_000);
    expect(idle.closes).toEqual([{ cause: 'node_drained', instanceId: null }]);
    expect(busy.closes).toEqual([]);
    const left = async () => (await relay.core.delivery.nodes(admin, LISTING)).nodes[0];
    expect(await left()).toMatchObject({ links: 1, unfinishedCommands: 1, connectionWaiters: 1 });
    await busy.result(busy.last);
    expect(await running).toMatchObject({ kind: 'outcome', command: { outcome: 'completed' } });
    await relay.clock.advance(2_000);
    expect(busy.closes).toEqual([{ cause: 'node_drained', instanceId: null }]);
    expect(await left()).toMatchObject({ links: 0, unfinishedCommands: 0, connectionWaiters: 0, draining: true });
  });

  it('closes links that are not idle in time, and ends no command', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const running = invoke(relay, 'runs');
    await settle();
    await relay.core.delivery.drainNode(admin, 'n1', 3_000);
    await relay.clock.advance(2_999);
    expect(client.closes).toEqual([]);
    await relay.clock.advance(1);
    expect(client.closes).toEqual([{ cause: 'node_drained', instanceId: null }]);
    expect(await relay.core.delivery.status(admin, { ...TAB, commandId: 'runs' })).toMatchObject({
      stage: 'dispatched',
    });
    await relay.clock.advance(30_000);
    expect(await running).toMatchObject({ command: { outcome: 'outcome_unknown', execution: 'may_have_run' } });
  });

  it('spreads the closes, so that clients do not all reconnect at once', async () => {
    await using relay = await testCore();
    const clients: TestClient[] = [];
    for (let i = 0; i < 50; i++) clients.push(await connect(relay.core, user(`u${i}`)));
    const closed = () => clients.filter(({ closes }) => closes.length > 0).length;
    await relay.core.delivery.drainNode(admin, 'n1', 60_000);
    await relay.clock.advance(0);
    expect(closed()).toBe(1);
    await relay.clock.advance(100);
    expect(closed()).toBeGreaterThan(5);
    expect(closed()).toBeLessThan(20);
    await relay.clock.advance(400);
    expect(clients.map(({ closes }) => closes)).toEqual(
      clients.map(() => [{ cause: 'node_drained', instanceId: null }]),
    );
  });

  it('may be requested again, with less time', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    void invoke(relay, 'runs');
    await settle();
    await relay.core.delivery.drainNode(admin, 'n1', 60_000);
    await relay.core.delivery.drainNode(admin, 'n1', 0);
    await settle();
    expect(client.closes).toEqual([{ cause: 'node_drained', instanceId: null }]);
  });

  it('that is absent returns null, and wrong input is refused', async () => {
    const { lines, log } = auditLog();
    await using relay = await testCore({ log });
    expect(await relay.core.delivery.drainNode(admin, 'n9', null)).toBe(null);
    for (const ms of [-1, 1.5, 600_001])
      await expect(relay.core.delivery.drainNode(admin, 'n1', ms)).rejects.toMatchObject({ code: 'invalid_argument' });
    await expect(relay.core.delivery.drainNode(admin, 'a/b', 0)).rejects.toMatchObject({ code: 'invalid_argument' });
    expect(relay.core.draining).toBe(false);
    expect(lines).toEqual([]);
  });

  it('reaches another node by its mailbox, and waits a little for its report', async () => {
    await using relay = await testCore();
    const other = await otherNode(relay, 'n2');
    const drain = relay.core.delivery.drainNode(admin, 'n2', 5_000);
    await relay.clock.advance(100);
    expect(other.rows).toEqual([{ kind: 'drain', withinMs: 5_000 }]);
    await other.beat({ draining: true, links: 3 });
    await relay.clock.advance(50);
    expect(await drain).toMatchObject({ nodeId: 'n2', draining: true, links: 3 });
    expect(relay.core.draining).toBe(false);
  });
});

describe('updates of a command', () => {
  it('carry progress in updates of their own, and never in the one that says that the command ended', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const pending = invoke(relay, 'c1');
    await settle();
    const updates = await relay.core.delivery.updates(alice, { ...TAB, commandId: 'c1' });
    const seen: (readonly [string, unknown])[] = [];
    const watching = (async () => {
      for await (const { event } of updates ?? []) seen.push([event.command.stage, event.progress]);
    })();
    await settle();
    // The record has ended already when the reports of progress make the relay read it.
    const reports = [1, 2].map((step) => client.session.progress('c1', toJson({ step })));
    await Promise.all([...reports, client.result(client.last)]);
    await pending;
    await watching;
    expect(seen.filter(([, progress]) => progress !== null)).toHaveLength(2);
    expect(seen.filter(([stage, progress]) => stage === 'terminal' && progress !== null)).toEqual([]);
    expect(seen.at(-1)).toEqual(['terminal', null]);
  });

  it('may be requested before the command is admitted, and then miss no progress', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const key = { ...TAB, commandId: 'c1' };
    const updates = await relay.core.delivery.updates(alice, key, 60_000);
    const seen: (readonly [unknown, number | null, number])[] = [];
    const watching = (async () => {
      for await (const { event, missed } of updates ?? []) seen.push([event.progress, event.number, missed]);
    })();
    await settle();
    expect(relay.core.shares.used('waits')).toBe(1);
    const pending = invoke(relay, 'c1');
    await settle();
    expect(relay.core.shares.used('waits')).toBe(1);
    for (const number of [2, 1, 3]) {
      await client.session.progress('c1', toJson(number), number);
      await settle();
    }
    await client.result(client.last);
    await pending;
    await watching;
    expect(seen.filter(([progress]) => progress !== null)).toEqual([
      ['2', 2, 1],
      ['3', 3, 0],
    ]);
    expect(relay.core.shares.used('waits')).toBe(0);
  });

  it('end with not_found when the command is not admitted in time, in the same way for a command of another user', async () => {
    await using relay = await testCore();
    await connect(relay.core, alice);
    void invoke(relay, 'c1');
    await settle();
    const requests = [
      [alice, 'c2'],
      [user('mallory'), 'c1'],
    ] as const;
    for (const [requester, commandId] of requests) {
      const updates = await relay.core.delivery.updates(requester, { ...TAB, commandId }, 1_000);
      const next = updates?.next();
      void next?.catch(() => {});
      await relay.clock.advance(999);
      expect(relay.core.shares.used('waits')).toBe(2);
      await relay.clock.advance(1);
      await expect(next).rejects.toMatchObject({ code: 'not_found' });
      expect(relay.core.shares.used('waits')).toBe(1);
      expect(await relay.core.delivery.updates(requester, { ...TAB, commandId })).toBe(null);
    }
    await expect(relay.core.delivery.updates(alice, { ...TAB, commandId: 'c2' }, 60_001)).rejects.toMatchObject({
      code: 'invalid_argument',
    });
  });

  it('that wait for an admission are bounded by the share of waits, and give it back when they are left', async () => {
    await using relay = await testCore({ shares: createShares(shareBounds({ waits: { guarantee: 1 } })) });
    const request = () => relay.core.delivery.updates(alice, { ...TAB, commandId: 'c1' }, 60_000);
    const first = await request();
    await expect(request()).rejects.toMatchObject({ code: 'share_exceeded' });
    await first?.return();
    await (await request())?.return();
    expect(relay.core.shares.used('waits')).toBe(0);
  });
});
