/** Tests the history of links over Redis: links that end with their node, and links that are closed late. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Backend } from '../../src/core/backend.ts';
import { LINK_STREAM, NO_PAYLOAD, type Message } from '../../src/core/history/message.ts';
import type { LinkDetails } from '../../src/core/connections/link-row.ts';
import { DEAD_MS, NODE_BEAT_MS, NODE_LEASE_MS, RETENTION_MS, STREAM_MESSAGES } from '../../src/core/limits.ts';
import { redisBench, type RedisBench } from '../contract/kit/redis-bench.ts';
import { FakeClock } from '../kit/clock.ts';
import { deployment } from '../kit/deployment.ts';
import { startTestRelay, until, type TestRelay } from '../relay/kit/test-relay.ts';
import { beats, LEASE, linkUp, TestNode } from './kit/test-node.ts';

const NONE = { commandId: null, traceId: null, parentSpanId: null, error: null };
const EVERY = { afterTime: null, beforeTime: null, kinds: null };

async function linksOf({ history }: Backend): Promise<readonly Message[]> {
  const found = await history.messages('alice', LINK_STREAM, EVERY, { first: 1000, after: null });
  return found?.rows.map(({ row }) => row) ?? [];
}

function shortOf({ kind, clientId, link }: Message): string {
  return [kind, clientId, link?.nodeId, link?.cause].join(' ');
}

it('shows rows of a version that kept no close code', async () => {
  const bench = await redisBench();
  try {
    const { history } = bench.backend;
    const old = {
      clientType: 'web',
      nodeId: 'n1',
      epoch: 7,
      cause: 'client_closed',
      openMs: 5,
      previousInstanceId: null,
    };
    const named = {
      userId: 'alice',
      suffix: LINK_STREAM,
      kind: 'link_closed',
      clientId: 'tab',
      instanceId: 'i1',
    } as const;
    await history.retain({ ...NO_PAYLOAD, ...named, id: 'link_closed:7', ...NONE, link: old as LinkDetails });
    expect((await linksOf(bench.backend))[0]?.link).toEqual({ ...old, closeCode: null });
  } finally {
    await bench.close();
  }
});

describe('the link history when a node is lost', () => {
  const benches: RedisBench[] = [];
  afterEach(async () => {
    for (const bench of benches.splice(0).reverse()) await bench.close();
  });
  const nodes = async (): Promise<readonly [TestNode, TestNode, TestNode]> => {
    const first = await redisBench(LEASE);
    benches.push(first);
    const open = async (id: string): Promise<TestNode> => {
      const bench = await redisBench({ ...LEASE, beside: first });
      benches.push(bench);
      return new TestNode(bench, id).attach();
    };
    return [await open('a'), await open('b'), await open('c')];
  };

  it('has one end of each of its links, from whichever node found the loss', async () => {
    const [a, b, c] = await nodes();
    const clients = Array.from({ length: 100 }, (_, i) => `tab-${String(i).padStart(3, '0')}`);
    for (const clientId of clients) await linkUp(a, clientId);
    await linkUp(b, 'other');
    await beats([a, b, c], 8_000);
    await beats([b, c], 12_000);
    const ended = (await linksOf(b.bench.backend)).filter(({ kind }) => kind !== 'link_opened');
    expect(ended.map(shortOf).sort()).toEqual(clients.map((clientId) => `link_closed ${clientId} a node_lost`));
    expect(new Set(ended.map(({ link }) => link?.epoch)).size).toBe(100);
    // These clients sent nothing after their hello, so the times for which their links were open are 0.
    for (const { link } of ended) expect(link?.openMs).toBe(0);
  });

  it('calls a link lost, and not replaced, whose client is on another node before its own node was cleared away', async () => {
    const [a, b] = await nodes();
    const epoch = await linkUp(a, 'tab');
    await beats([a, b], 8_000);
    await b.bench.clock.advance(LEASE.leaseMs + 1);
    await linkUp(b, 'tab');
    await beats([b], 12_000);
    // The close of the old link arrives late.
    await b.bench.backend.connections.disconnect({ userId: 'alice', clientId: 'tab' }, epoch, 'node_lost');
    const found = (await linksOf(b.bench.backend)).map(shortOf);
    expect(found.slice(0, 3)).toEqual([
      'link_opened tab a ',
      'link_closed tab a node_lost',
      'link_opened tab b node_lost',
    ]);
    expect(found.filter((row) => row.includes(' a ')).length).toBe(2);
  });
});

describe('the link history over two relays', () => {
  const relays: TestRelay[] = [];
  afterEach(async () => {
    for (const relay of relays.splice(0)) await relay[Symbol.asyncDispose]();
  });

  /** Opens two relays over one Redis. `pause` stops the heartbeats of the first one, as when its process hangs. */
  async function open() {
    const clock = new FakeClock(Date.now());
    const place = deployment(clock);
    const options = { retentionMs: RETENTION_MS, streamMessages: STREAM_MESSAGES, scopeOf: (userId: string) => userId };
    let paused = false;
    const start = async (nodeId: string): Promise<TestRelay> => {
      const backend = await place.open(options);
      const beat: Backend['nodes']['beat'] = (...given) =>
        paused && nodeId === 'a' ? undefined : backend.nodes.beat(...given);
      const wrapped = { ...backend, nodes: { ...backend.nodes, beat } };
      const relay = await startTestRelay({ nodeId }, { clock, backend: wrapped });
      relays.push(relay);
      return relay;
    };
    return { clock, a: await start('a'), b: await start('b'), pause: () => void (paused = true) };
  }

  const ROWS = `{ messages(stream: "alice/links") { nodes { kind instanceId link { nodeId cause previousInstanceId } } } }`;
  const read = async (relay: TestRelay): Promise<string[]> => {
    const { data } = await relay.graphql(ROWS);
    return (data?.['messages']?.nodes ?? []).map(({ kind, instanceId, link }: any) =>
      [kind, instanceId, link.nodeId, link.cause, link.previousInstanceId].join(' '),
    );
  };

  it('follows a client from one to the other', async () => {
    const { a, b } = await open();
    const first = await a.client({ client_id: 'tab', instance_id: 'i1' });
    first.ws.close();
    await until(async () => (await read(b)).length === 2);
    await b.client({ client_id: 'tab', instance_id: 'i1' });
    const again = await a.client({ client_id: 'tab', instance_id: 'i2' });
    again.ws.terminate();
    await until(async () => (await read(a)).length === 6);
    const expected = [
      'LINK_OPENED i1 a  ',
      'LINK_CLOSED i1 a CLIENT_CLOSED ',
      'LINK_OPENED i1 b CLIENT_CLOSED i1',
      'LINK_REPLACED i1 b REPLACED ',
      'LINK_OPENED i2 a REPLACED i1',
      'LINK_CLOSED i2 a LOST ',
    ];
    expect(await read(a)).toEqual(expected);
    expect(await read(b)).toEqual(expected);
  });

  it('has one end of a link whose relay hung, and that closed its sockets when it woke', async () => {
    const { clock, a, b, pause } = await open();
    const tab = await a.client({ client_id: 'tab', instance_id: 'i1' });
    await clock.advance(NODE_BEAT_MS);
    pause();
    for (let passed = 0; passed < NODE_LEASE_MS + 3 * NODE_BEAT_MS; passed += NODE_BEAT_MS)
      await clock.advance(NODE_BEAT_MS);
    await until(async () => (await read(b)).length === 2);
    tab.ws.terminate();
    await clock.advance(DEAD_MS);
    expect(await read(b)).toEqual(['LINK_OPENED i1 a  ', 'LINK_CLOSED i1 a NODE_LOST ']);
  });
});
