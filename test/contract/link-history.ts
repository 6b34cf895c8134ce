/**
 * Defines the contract tests of the history of links: which rows an opened and an ended link make, and when they are
 * removed.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ConnectRequest } from '../../src/core/connections/connection-store.ts';
import type { Connection } from '../../src/core/connections/connection.ts';
import { LINK_STREAM, type Message } from '../../src/core/history/message.ts';
import { DEAD_MS, FORGET_MS, PING_MS } from '../../src/core/limits.ts';
import { ALICE, admission, ending, inWaves, keyFor, kinds, type Bench, type MakeHistoryBench } from './kit/bench.ts';
import { hello } from './kit/connections-model.ts';
import { newMessage } from './kit/history-model.ts';

const EVERY = { afterTime: null, beforeTime: null, kinds: null };
const BOUNDS = { streamMessages: 100, streamsPerUser: 2, bytes: 64 * 1024, linkMessages: 40 };

/** Defines the tests of the rows that a ConnectionStore keeps in the link history of each user. */
export function linkHistoryContract(name: string, make: MakeHistoryBench): void {
  describe(`link history on ${name}`, () => {
    let bench: Bench;
    beforeEach(async () => {
      bench = await make(BOUNDS);
    });
    afterEach(() => bench.close());

    openings(() => bench);
    ends(() => bench);
    bounds(() => bench);
  });
}

function openings(bench: () => Bench): void {
  it('keeps one row when a link opens and one when it ends, with its cause and how long it was open', async () => {
    const { connections } = bench().backend;
    const { connection } = await connections.connect(hello('alice', 'tab', { clientType: 'mobile' }));
    await bench().advance(1234);
    await connections.disconnect(ALICE, connection.epoch, 'token_expired');
    const common = { clientType: 'mobile', nodeId: 'n1', epoch: connection.epoch };
    const [opened, closed, ...others] = await linksOf(bench());
    expect(others).toEqual([]);
    expect(opened).toEqual({
      id: `link_opened:${connection.epoch}`,
      userId: 'alice',
      suffix: LINK_STREAM,
      kind: 'link_opened',
      clientId: 'tab',
      instanceId: 'i1',
      commandId: null,
      traceId: null,
      parentSpanId: null,
      payload: null,
      spill: null,
      error: null,
      payloadBytes: 0,
      seq: expect.any(Number),
      at: connection.connectedAt,
      link: { ...common, cause: null, closeCode: null, openMs: null, previousInstanceId: null },
    });
    expect(closed).toMatchObject({ kind: 'link_closed', instanceId: 'i1', at: connection.connectedAt + 1234 });
    expect(closed?.link).toEqual({
      ...common,
      cause: 'token_expired',
      closeCode: null,
      openMs: 1234,
      previousInstanceId: null,
    });
  });

  it('says of an opening which instance was connected before, and why its link had ended', async () => {
    const { connections } = bench().backend;
    const { connection } = await connections.connect(hello('alice', 'tab'));
    await connections.disconnect(ALICE, connection.epoch, 'back_pressure');
    await connections.connect(hello('alice', 'tab'));
    await connections.connect(hello('alice', 'tab', { instanceId: 'i2', nodeId: 'n2' }));
    const rows = await linksOf(bench());
    expect(rows.map(shortOf)).toEqual([
      'link_opened i1 n1',
      'link_closed i1 n1 back_pressure',
      'link_opened i1 n1 back_pressure after i1',
      'link_replaced i1 n1 replaced',
      'link_opened i2 n2 replaced after i1',
    ]);
    const epochs = rows.map(({ link }) => link?.epoch);
    expect([epochs[0], epochs[2]]).toEqual([epochs[1], epochs[3]]);
    expect(new Set(epochs).size).toBe(3);
  });

  it('is read by its name: not listed or counted among the streams of its user, and not read by another name', async () => {
    const { connections, history } = bench().backend;
    await connections.connect(hello('alice', 'tab'));
    await connections.connect(hello('bob', 'tab'));
    const page = { first: 10, after: null };
    expect((await history.streams('alice', null, page)).rows).toEqual([]);
    expect((await history.users(page)).rows).toEqual([]);
    expect((await history.ofUsers(['alice'], 10)).map(({ total, rows }) => [total, rows])).toEqual([[0, []]]);
    expect((await linksOf(bench(), 'bob')).map(({ userId }) => userId)).toEqual(['bob']);
    expect(await history.messages('carol', LINK_STREAM, EVERY, { first: 1, after: null })).toBeNull();
  });

  it('has no row in a sample of all streams, and its details in a sample of its own stored rows', async () => {
    const { connections, history } = bench().backend;
    await connections.connect(hello('alice', 'tab'));
    const bounds = { messages: 10, bytes: 1_000_000 };
    expect((await history.sample(null, { ...bounds, of: 'payloads' }))?.rows).toEqual([]);
    expect((await history.sample(null, { ...bounds, of: 'stored' }))?.rows).toEqual([]);
    const own = await history.sample({ userId: 'alice', suffix: LINK_STREAM }, { ...bounds, of: 'stored' });
    const [sampled] = own?.rows ?? [];
    expect(JSON.parse(sampled?.stored ?? '')).toMatchObject({ kind: 'link_opened', link: { nodeId: 'n1' } });
  });
}

function ends(bench: () => Bench): void {
  const connect = async (over: Partial<ConnectRequest> = {}): Promise<Connection> =>
    (await bench().backend.connections.connect(hello('alice', 'tab', over))).connection;

  it('keeps an end once, however often it is reported', async () => {
    const { connections } = bench().backend;
    const { epoch } = await connect();
    for (let i = 0; i < 3; i++) await connections.disconnect(ALICE, epoch, 'client_closed');
    expect((await linksOf(bench())).map(shortOf)).toEqual(['link_opened i1 n1', 'link_closed i1 n1 client_closed']);
  });

  it('keeps the code of the close frame, in the row and in the connection, until the client connects again', async () => {
    const { connections } = bench().backend;
    const { epoch } = await connect();
    expect(await connections.disconnect(ALICE, epoch, 'client_closed', 4999)).toMatchObject({ closeCode: 4999 });
    expect(await connections.disconnect(ALICE, epoch, 'lost')).toMatchObject({
      disconnectCause: 'client_closed',
      closeCode: 4999,
    });
    expect(await connections.get([ALICE])).toMatchObject([{ closeCode: 4999 }]);
    expect((await connect()).closeCode).toBeNull();
    expect(await connections.get([ALICE])).toMatchObject([{ disconnectedAt: null, closeCode: null }]);
    const found = (await linksOf(bench())).map(({ kind, link }) => [kind, link?.cause, link?.closeCode]);
    expect(found).toEqual([
      ['link_opened', null, null],
      ['link_closed', 'client_closed', 4999],
      ['link_opened', 'client_closed', null],
    ]);
  });

  it('keeps nothing of the late close of a link that was replaced', async () => {
    const { connections } = bench().backend;
    const first = await connect();
    const second = await connect({ instanceId: 'i2' });
    await connections.disconnect(ALICE, first.epoch, 'client_closed');
    await connections.disconnect(ALICE, second.epoch, 'operator');
    const found = (await linksOf(bench())).map(shortOf).slice(1);
    expect(found).toEqual([
      'link_replaced i1 n1 replaced',
      'link_opened i2 n1 replaced after i1',
      'link_closed i2 n1 operator',
    ]);
  });

  it('keeps the end of a silent link that was never closed, when its row is forgotten', async () => {
    const { connections } = bench().backend;
    const { epoch } = await connect();
    await bench().advance(PING_MS);
    await connections.touch(ALICE, epoch);
    await bench().advance(DEAD_MS + FORGET_MS);
    for (let i = 0; i < 2; i++) await connections.users({ first: 10, after: null });
    const [, closed, ...others] = await linksOf(bench());
    expect(others).toEqual([]);
    expect(closed?.kind).toBe('link_closed');
    expect(closed?.link).toMatchObject({ cause: 'heartbeat_lost', openMs: PING_MS + DEAD_MS, epoch });
    expect(await connections.disconnect(ALICE, epoch, 'client_closed')).toBeNull();
    expect(await linksOf(bench())).toHaveLength(2);
  });

  it('does not call a silent link replaced when its client connects again', async () => {
    await connect();
    await bench().advance(DEAD_MS + 5);
    await connect({ instanceId: 'i2' });
    const rows = await linksOf(bench());
    expect(rows.map(shortOf)).toEqual([
      'link_opened i1 n1',
      'link_closed i1 n1 heartbeat_lost',
      'link_opened i2 n1 heartbeat_lost after i1',
    ]);
    expect(rows[1]?.link?.openMs).toBe(DEAD_MS);
  });
}

function bounds(bench: () => Bench): void {
  it("keeps a user's newest rows, as many as the bound of link histories says", async () => {
    const { connections } = bench().backend;
    for (let i = 0; i < 30; i++) await connections.connect(hello('alice', 'tab', { instanceId: `i${i}` }));
    const rows = await linksOf(bench());
    expect(rows).toHaveLength(BOUNDS.linkMessages);
    expect(shortOf(rows.at(-1))).toBe('link_opened i29 n1 replaced after i28');
    const backwards = await bench().backend.history.messages('alice', LINK_STREAM, EVERY, {
      first: 100,
      after: null,
      order: 'newest_first',
    });
    expect(backwards?.rows.map(({ row }) => row)).toEqual(rows.toReversed());
    expect(backwards?.gaps).toEqual([]);
  });

  it('stays complete when streams of its user are dropped to make room', async () => {
    const { connections, history } = bench().backend;
    const page = { first: 1000, after: null };
    for (const suffix of ['a', 'b', 'c']) await history.retain(newMessage({ suffix }));
    expect((await history.messages('alice', 'a', EVERY, page))?.gaps).toMatchObject([{ reason: 'evicted' }]);
    expect(await history.messages('alice', LINK_STREAM, EVERY, page)).toBeNull();
    await connections.connect(hello('alice', 'tab'));
    expect(await history.messages('alice', LINK_STREAM, EVERY, page)).toMatchObject({ rows: [{}], gaps: [] });
  });

  it('drops no evidence of commands while one client reconnects 10,000 times', async () => {
    const { backend } = bench();
    const { connection } = await backend.connections.connect(hello('alice', 'tab'));
    const binding = { nodeId: 'n1', instanceId: 'i1', epoch: connection.epoch };
    await backend.commands.rebind(ALICE, binding, 'up');
    const commands = Array.from({ length: 10 }, (_, i) => `c${i}`);
    for (const id of commands) {
      await backend.commands.admit(admission(id));
      await backend.commands.dispatch(keyFor(id), binding);
      await backend.commands.finish(keyFor(id), ending());
    }
    const evidence = async (): Promise<unknown> => ({
      kinds: await Promise.all(commands.map((id) => kinds(bench(), id))),
      stream: await backend.history.messages('alice', 'clients/tab', EVERY, { first: 1000, after: null }),
    });
    const before = await evidence();
    await reconnect(bench(), 10_000);
    expect(await evidence()).toEqual(before);
    expect(before).toMatchObject({ kinds: commands.map(() => ['command', 'result']), stream: { gaps: [] } });
    expect(await linksOf(bench())).toHaveLength(BOUNDS.linkMessages);
  });
}

/**
 * Connects a client many times at once, as over many sockets. Each connection has a new epoch, and ends the link before
 * it.
 */
async function reconnect({ backend }: Bench, times: number): Promise<void> {
  await inWaves(times, 250, async (i) => backend.connections.connect(hello('alice', 'tab', { instanceId: `r${i}` })));
}

async function linksOf({ backend }: Bench, userId = 'alice'): Promise<readonly Message[]> {
  const found = await backend.history.messages(userId, LINK_STREAM, EVERY, { first: 1000, after: null });
  return found?.rows.map(({ row }) => row) ?? [];
}

function shortOf(row: Message | undefined): string {
  const { cause = null, nodeId, previousInstanceId = null } = row?.link ?? {};
  const after = previousInstanceId === null ? [] : [`after ${previousInstanceId}`];
  return [row?.kind, row?.instanceId, nodeId, ...(cause === null ? [] : [cause]), ...after].join(' ');
}
