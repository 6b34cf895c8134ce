/** Tests what the access log says of a request. */
import { once } from 'node:events';
import { Agent, request, type IncomingMessage } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ADMIN } from './kit/http-relay.ts';
import { startTestRelay, type TestRelay, type Welcomed } from '../relay/kit/test-relay.ts';

const PATH = '/connections/alice/tab/actions/open';

let at: TestRelay;
let tab: Welcomed;
beforeEach(async () => {
  at = await startTestRelay();
  tab = await at.client({ client_id: 'tab', instance_id: 'i1' });
});
afterEach(() => at[Symbol.asyncDispose]());

/** Resolves with the log lines of requests since the last call, without the parts that differ between runs. */
async function requests(count: number): Promise<unknown[]> {
  const found = (): Record<string, unknown>[] =>
    at.lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
  await expect.poll(() => found().length).toBe(count);
  return found().map(({ method, path, status, commandId, outcome, code }) => ({
    ...{ method, path, status },
    ...(commandId !== undefined && { commandId }),
    ...(outcome !== undefined && { outcome }),
    ...(code !== undefined && { code }),
  }));
}

async function unknownEnd(ask: () => Promise<{ readonly status: number }>): Promise<number> {
  const requested = ask();
  await tab.next('command');
  await at.clock.advance(1_000);
  return (await requested).status;
}

describe('the log line of a request', () => {
  it('REST: names the command, its outcome and the code of a 504, of a read, of a refusal and of a cancellation', async () => {
    expect(await unknownEnd(() => at.post(PATH, { command_id: 'c1', respond_within_ms: 1_000 }))).toBe(504);
    await at.rest('/commands/alice/tab/c1', { requester: 'alice' });
    await at.post('/commands/alice/tab/c1/cancel');
    await at.post('/connections/alice/gone/actions/open', { command_id: 'c2' });
    await at.post(PATH, { command_id: 'c3', wait_for: 'admitted' });
    await at.rest('/commands/alice/tab/none', { requester: 'alice' });
    await at.rest('/connections');
    const ended = { commandId: 'c1', outcome: 'outcome_unknown', code: 'response_timeout' };
    expect(await requests(7)).toEqual([
      { method: 'POST', path: PATH, status: 504, ...ended },
      { method: 'GET', path: '/commands/alice/tab/c1', status: 200, ...ended },
      { method: 'POST', path: '/commands/alice/tab/c1/cancel', status: 200, ...ended },
      {
        ...{ method: 'POST', path: '/connections/alice/gone/actions/open', status: 409 },
        ...{ commandId: 'c2', code: 'not_connected' },
      },
      { method: 'POST', path: PATH, status: 202, commandId: 'c3' },
      { method: 'GET', path: '/commands/alice/tab/none', status: 404, code: 'not_found' },
      { method: 'GET', path: '/connections', status: 200 },
    ]);
  });

  it('GraphQL: names the command, whichever path handles the request', async () => {
    const query = `mutation ($id: ID!) {
      invokeAction(input: { userId: "alice", clientId: "tab", action: "open", commandId: $id, respondWithinMs: 1000 }) {
        ... on Invocation { outcome } } }`;
    const ids = ['c1', 'c2', 'c3', 'c4'];
    for (const id of ids)
      expect(await unknownEnd(() => at.graphql(query, { requester: 'alice', variables: { id } }))).toBe(200);
    const ended = { outcome: 'outcome_unknown', code: 'response_timeout' };
    expect(await requests(4)).toEqual(
      ids.map((commandId) => ({ method: 'POST', path: '/graphql', status: 200, commandId, ...ended })),
    );
  });

  it('says who asked for what in each request over one socket, whatever the one before was', async () => {
    const asked = [
      ['GET', '/connections', 'admin'],
      ['GET', '/connections', 'alice'],
      ['GET', '/connections', 'alice'],
      ['POST', '/connections', 'alice'],
      ['GET', '/users/alice', 'alice'],
      ['GET', '/connections?limit=5', 'bob'],
      ['GET', '/connections', 'admin'],
      ['GET', `/${'x'.repeat(600)}`, 'alice'],
    ] as const;
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<unknown>();
    for (const [method, path, user] of asked) {
      const headers = { authorization: `Bearer ${await at.token(user)}` };
      const [response]: IncomingMessage[] = await once(
        request(at.url + path, { agent, method, headers }).end(),
        'response',
      );
      sockets.add(response?.socket);
      await response?.toArray();
    }
    agent.destroy();
    expect(sockets.size).toBe(1);
    const lines = () => at.lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
    await expect.poll(() => lines().length).toBe(asked.length);
    const shown = lines().map(({ method, path, requester, status, code }) => [method, path, requester, status, code]);
    const admin = expect.stringMatching(/^admin:/);
    expect(shown).toEqual([
      ['GET', '/connections', admin, 200, undefined],
      ['GET', '/connections', 'user:alice', 403, 'forbidden'],
      ['GET', '/connections', 'user:alice', 403, 'forbidden'],
      ['POST', '/connections', 'user:alice', 405, 'method_not_allowed'],
      ['GET', '/users/alice', 'user:alice', 403, 'forbidden'],
      ['GET', '/connections', 'user:bob', 403, 'forbidden'],
      ['GET', '/connections', admin, 200, undefined],
      ['GET', `/${'x'.repeat(511)}`, 'user:alice', 404, 'not_found'],
    ]);
    expect(new Set(lines().map(({ id }) => id)).size).toBe(asked.length);
  });

  it('has the code of a refusal by the HTTP layer, and no token', async () => {
    await at.ask('/connections', { token: 'no token of ours' });
    await at.rest('/nowhere');
    await at.rest('/connections?limit=0');
    expect(await requests(3)).toMatchObject([
      { status: 401, code: 'unauthenticated' },
      { status: 404, code: 'not_found' },
      { status: 400, code: 'invalid_argument' },
    ]);
    expect(at.lines.filter((line) => line.includes(ADMIN) || line.includes('no token of ours'))).toEqual([]);
  });
});
