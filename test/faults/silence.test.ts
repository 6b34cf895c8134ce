/** Tests that a relay which stops without notice is found to be silent by another relay. */
import { randomUUID } from 'node:crypto';
import { setTimeout as after } from 'node:timers/promises';
import { inject, expect, onTestFailed, onTestFinished, test } from 'vitest';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { signToken } from '../../src/http/tokens.ts';
import { ownFolder } from '../kit/folder.ts';
import { TOKEN_SECONDS, WAIT_MS } from '../kit/patience.ts';
import { ADMIN_TOKEN, SECRET, startRelay, type Relay } from '../../faults/outages/processes/relays.ts';

const OFTEN_MS = 100;
/**
 * What is shown of the killed relay's client, in order: its status, whether the list is complete, and who is silent. An
 * owner that does not answer is named at once, and its rows are missing. The next one says that its rows may be older than it, and marks the links
 * as lost before the silence of the relay itself is noticed.
 */
const STATES = {
  redis: ['connected null true ', 'connected null false dies', 'disconnected node_lost false dies'],
  owned: [
    ...['connected null true ', 'connected null false dies', 'undefined undefined false dies'],
    ...['connected null false ', 'connected null true '],
    ...['disconnected node_lost false ', 'disconnected node_lost true ', 'disconnected node_lost false dies'],
  ],
};
type StoreName = keyof typeof STATES;

type Source = { readonly node_id: string | null; readonly reason: string | null };
type Listing<Item> = {
  readonly items: readonly Item[];
  readonly completeness: { readonly complete: boolean; readonly sources: readonly Source[] };
};
type Row = { readonly status: string; readonly node_id: string; readonly disconnect_cause: string | null };
type Node = {
  readonly node_id: string;
  readonly stale: boolean;
  readonly mailbox_listener_alive: boolean;
  readonly reconciliation_alive: boolean;
};

async function ask<Item>({ url }: Relay, path: string): Promise<Listing<Item>> {
  const response = await fetch(`${url}${path}`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    signal: AbortSignal.timeout(WAIT_MS),
  });
  expect(response.status).toBe(200);
  return response.json();
}

type Place = { readonly namespace: string; readonly store: StoreName };

async function relay(name: string, folder: string, { namespace, store }: Place): Promise<Relay> {
  const env = { CALLBOARD_DURABILITY: 'memory', CALLBOARD_STORE: store };
  const started = await startRelay({ name, folder, namespace, redisUrl: inject('redisUrl'), env });
  onTestFinished(() => started.proc.kill());
  return started;
}

test.each<StoreName>(['redis', 'owned'])(
  'a killed relay is reported as silent before its links are lost, and for as long as it is listed: %s',
  async (store) => {
    const [folder, place] = [ownFolder(), { namespace: randomUUID(), store }];
    const [dies, lives] = await Promise.all(['dies', 'lives'].map((name) => relay(name, folder, place)));
    if (!dies || !lives) throw new Error('nothing was started');
    const token = () =>
      signToken({ secret: SECRET, user: 'alice', scopes: ['connect'], ttlSeconds: TOKEN_SECONDS, now: Date.now() });
    const runtime = createRuntime({
      url: `${dies.url.replace('http', 'ws')}/connect`,
      token,
      clientId: 'tab',
      clientType: 'console',
    });
    onTestFinished(() => runtime.close());
    runtime.connect();
    const list = () => ask<Row>(lives, '/connections');
    await expect.poll(list).toMatchObject({
      items: [{ status: 'connected', node_id: 'dies' }],
      completeness: { complete: true },
    });

    await dies.proc.kill();
    const seen: string[] = [];
    onTestFailed(() => console.error('seen:', seen, 'said by the relay that lives:', lives.proc.complaint()));
    for (let listing = await list(); ; listing = await list()) {
      const [row] = listing.items;
      const silent = listing.completeness.sources.filter(({ reason }) => reason === 'node_silent');
      const text = `${row?.status} ${row?.disconnect_cause} ${listing.completeness.complete} ${silent.map((one) => one.node_id).join()}`;
      if (seen.at(-1) !== text) seen.push(text);
      if (row?.disconnect_cause === 'node_lost') break;
      await after(OFTEN_MS);
    }
    // On a busy machine, a look may miss a state that lasts some seconds. No state comes in another order.
    let from = 0;
    const isInOrder = (state: string): boolean => (from = STATES[store].indexOf(state, from) + 1) > 0;
    expect(seen.filter((state) => !isInOrder(state))).toEqual([]);

    const nodes = () => ask<Node>(lives, '/delivery/nodes');
    const alive = { stale: false, mailbox_listener_alive: true, reconciliation_alive: true };
    await expect.poll(nodes).toMatchObject({
      items: [
        { node_id: 'dies', stale: true, mailbox_listener_alive: false, reconciliation_alive: false },
        { node_id: 'lives', ...alive },
      ],
      completeness: { complete: false },
    });
    expect((await ask(lives, '/rpc/pending')).completeness.sources).toContainEqual(
      expect.objectContaining({ node_id: 'dies', reason: 'node_silent' }),
    );
  },
);
