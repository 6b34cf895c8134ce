/** Tests that callers which wait on a relay that closes continue at another relay. */
import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { openCallboard, type Callboard } from '../../src/callboard.ts';
import { createLinkCaller } from '../../src/clients/caller/index.ts';
import { caller, client, type GatewayAddress, type Peer } from '../gateway/kit/test-gateway.ts';
import { ADMIN, ask, postJson, SECRET, tokenOf } from '../http/kit/http-relay.ts';

const peers: Peer[] = [];
afterEach(() => {
  for (const { ws } of peers.splice(0)) ws.terminate();
});

type Node = AsyncDisposable & { readonly callboard: Callboard; readonly url: string; readonly gateway: GatewayAddress };

/** Opens two relays on one Redis, each with an HTTP server. */
async function pair(): Promise<readonly [Node, Node]> {
  const place = { url: inject('redisUrl'), namespace: randomUUID(), partitions: 2, durability: 'memory' } as const;
  const redis = { ...place, store: 'redis' } as const;
  const rest = { strictMigration: false, legacy: { commandStream: null, pending: null } };
  const config = { redis: { ...redis, ...rest }, auth: { adminTokens: [ADMIN], secret: SECRET } };
  const open = async (): Promise<Node> => {
    const callboard = await openCallboard({ config });
    const url = await callboard.listen();
    const settings = { port: Number(new URL(url).port), peers };
    return { callboard, url, gateway: settings, [Symbol.asyncDispose]: () => callboard.close() };
  };
  return Promise.all([open(), open()]);
}

const path = (commandId: string, more = ''): string => `/commands/alice/tab/${commandId}${more}`;
const body = (command_id: string) => postJson({ command_id });

async function waits({ url }: Node): Promise<unknown> {
  return (await ask(`${url}/rpc/pending/count`)).json?.['count'];
}

describe('a relay over Redis that closes while callers wait on it', () => {
  it('answers each caller at once with the ids with which it can continue to wait at another relay', async () => {
    const [a, b] = await pair();
    await using _ = b;
    const tab = await client(b.gateway, { token: await tokenOf('alice', 'connect') });
    const rest = ask(`${a.url}/connections/alice/tab/actions/open`, body('c1'));
    const query = `mutation { invokeAction(input: { userId: "alice", clientId: "tab", action: "open", commandId: "c2" }) {
      ... on Invocation { rpcId command { commandId outcome } } } }`;
    const graphql = ask(`${a.url}/graphql`, postJson({ query }));
    const line = await caller(a.gateway, await tokenOf('alice', 'invoke'));
    line.send({ type: 'invoke', ref: 'r1', client_id: 'tab', action: 'open', command_id: 'c3' }, {});
    const sent = [await tab.next('command'), await tab.next('command'), await tab.next('command')];
    const awaited = ask(`${a.url}${path('c1', '?within_ms=60000')}`);
    await expect.poll(() => waits(b)).toBe(4);

    await a.callboard.close();
    const lives = { command_id: 'c1', rpc_id: expect.any(String), outcome: null, stage: 'dispatched' };
    expect(await rest).toMatchObject({ status: 202, json: lives });
    expect(await awaited).toMatchObject({ status: 202, json: lives });
    const invoked = { rpcId: expect.any(String), command: { commandId: 'c2', outcome: null } };
    expect((await graphql).json).toEqual({ data: { invokeAction: invoked } });
    const outcome = await line.next('outcome');
    expect(outcome).toMatchObject({ ref: 'r1', command_id: 'c3', stage: 'dispatched', rpc_id: expect.any(String) });
    expect(outcome.outcome).toBeUndefined();
    expect(await line.end()).toMatchObject({ code: 4450 });
    expect(await waits(b)).toBe(0);

    const again = ['c1', 'c2', 'c3'].map((id) => ask(`${b.url}${path(id, '?within_ms=60000')}`));
    await expect.poll(() => waits(b)).toBe(3);
    for (const { command_id } of sent) tab.send({ type: 'result', command_id }, { of: command_id });
    for (const [n, answer] of (await Promise.all(again)).entries())
      expect(answer).toMatchObject({ status: 200, json: { outcome: 'completed', result: { of: `c${n + 1}` } } });
  });

  it('keeps the wait of a caller that continues at another relay', async () => {
    const [a, b] = await pair();
    await using _ = b;
    const tab = await client(b.gateway, { token: await tokenOf('alice', 'connect') });
    let to = a.url;
    class Balanced extends WebSocket {
      constructor(_url: string, protocols: string) {
        super(`${to.replace('http', 'ws')}/connect`, protocols);
      }
    }
    const token = () => tokenOf('alice', 'invoke');
    await using line = createLinkCaller({ url: 'ws://relay/connect', token, WebSocket: Balanced, random: () => 0 });
    const invoked = line.invoke({ userId: 'alice', clientId: 'tab', action: 'open' });
    const { command_id } = await tab.next('command');
    to = b.url;
    await a.callboard.close();
    await expect.poll(() => waits(b)).toBe(1);
    tab.send({ type: 'result', command_id }, { ok: true });
    expect(await invoked).toMatchObject({ outcome: 'completed', result: { ok: true } });
    expect(tab.seen('command')).toHaveLength(1);
  });
});
