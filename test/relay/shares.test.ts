/**
 * Tests that a user who has reached the limit (the share) of a resource is refused more of it, over every interface.
 */
import { describe, expect, it } from 'vitest';
import { createHttpCaller, createLinkCaller } from '../../src/clients/caller/index.ts';
import { createCallboard } from '../../src/callboard.ts';
import { toJson } from '../../src/core/json.ts';
import { ADMIN, ask, postJson, startHttpRelay, SECRET, tokenOf, type HttpRelay } from '../http/kit/http-relay.ts';
import { advertisement, connect, user } from '../kit/core.ts';
import { settle } from '../kit/clock.ts';

const INVOKE = '/connections/alice/tab/actions/open';
const TARGET = { userId: 'alice', clientId: 'tab', action: 'open' };
const auth = { adminTokens: [ADMIN], secret: SECRET };

function connectUrl({ linkUrl }: Pick<HttpRelay, 'linkUrl'>): string {
  return `${linkUrl.replace('http', 'ws')}/connect`;
}

/** Starts the only wait that alice may have on this relay. Resolves with a function that ends it. */
async function waiting({ callboard, ask }: HttpRelay, token: string): Promise<() => Promise<void>> {
  const client = await connect(callboard.core, user('alice'), { actions: [advertisement('open')] });
  const first = ask(INVOKE, postJson({}, { token }));
  while (client.sent.length === 0) await settle();
  return async () => {
    await client.result(client.last);
    expect((await first).status).toBe(200);
  };
}

describe('a share that is used up', () => {
  it('is named on every interface: problem, typed refusal, error, link, and both caller libraries', async () => {
    await using at = await startHttpRelay({ shares: { waits: { guarantee: 1 } } });
    const token = await tokenOf('alice', 'connect', 'invoke');
    const end = await waiting(at, token);

    const problem = await at.ask(INVOKE, postJson({ command_id: 'c9' }, { token }));
    expect([problem.status, problem.json]).toEqual([
      429,
      expect.objectContaining({ code: 'share_exceeded', share: 'waits', by: 'capacity' }),
    ]);
    expect(Number(problem.headers['retry-after'])).toBeGreaterThan(0);

    const input = '{ userId: "alice", clientId: "tab", action: "open" }';
    const query = `mutation { invokeAction(input: ${input}) { ... on Refusal { code by share retryAfterMs } } }`;
    const typed = await at.ask('/graphql', postJson({ query }, { token }));
    const refusal = { code: 'share_exceeded', by: 'CAPACITY', share: 'waits', retryAfterMs: 1000 };
    expect(typed.json).toEqual({ data: { invokeAction: refusal } });

    const error = { code: 'share_exceeded', share: 'waits', by: 'capacity' };
    await using overHttp = createHttpCaller({ url: at.url, token });
    await expect(overHttp.invoke(TARGET)).rejects.toMatchObject(error);
    await using overLink = createLinkCaller({ url: connectUrl({ linkUrl: at.url }), token });
    await expect(overLink.invoke(TARGET)).rejects.toMatchObject(error);

    await end();
    expect((await at.ask(INVOKE, postJson({ wait_for: 'admitted' }, { token }))).status).toBe(202);
  });

  it('of documents in progress refuses queries and REST reads, and no mutation', async () => {
    await using at = await startHttpRelay({ shares: { documents: { guarantee: 1 } } });
    const token = await tokenOf('alice', 'connect', 'invoke');
    const own = at.callboard.core.shares.of('alice');
    const read = () => at.ask('/sites', { headers: { authorization: `Bearer ${token}` } });
    const query = (text: string, accept = 'application/json') =>
      at.ask('/graphql', postJson({ query: text }, { token, headers: { accept } }));
    own.take('documents', 1);
    const problem = await read();
    expect([problem.status, problem.json]).toEqual([
      429,
      expect.objectContaining({ code: 'share_exceeded', share: 'documents' }),
    ]);
    // An unusual media type is answered by Yoga, the others are not.
    for (const accept of ['application/json', 'application/json;q=0.9']) {
      const error = { extensions: expect.objectContaining({ code: 'share_exceeded', share: 'documents' }) };
      const answer = await query('{ viewer { userId } }', accept);
      expect(answer.json?.['errors']).toEqual([expect.objectContaining(error)]);
    }
    const mutation = 'mutation { cancelCommand(userId: "alice", clientId: "x", commandId: "c") { __typename } }';
    expect(JSON.stringify((await query(mutation)).json)).not.toContain('share_exceeded');
    own.release('documents', 1);
    expect((await read()).status).toBe(200);
    expect((await query('{ viewer { userId } }')).json).toEqual({ data: { viewer: { userId: 'alice' } } });
  });

  it('is documented: the members of problems and of the schema', async () => {
    await using at = await startHttpRelay();
    const { json } = await at.ask('/openapi.json', { token: null });
    expect(JSON.stringify(json)).toContain('"share":{"type":"string","enum":["links","advertised_bytes",');
  });

  it('appears in the gauges', async () => {
    await using at = await startHttpRelay({ shares: { waits: { guarantee: 1 } } });
    const end = await waiting(at, await tokenOf('alice', 'connect', 'invoke'));
    const { text } = await at.ask('/metrics');
    expect(text).toContain('callboard_share_used{share="waits"} 1');
    expect(text).toContain('callboard_share_limit{share="links"} 20000');
    expect(text).not.toContain('callboard_share_limit{share="waits"}');
    expect(text).toContain('callboard_share_users_over{share="links"} 0');
    await end();
    expect((await at.ask('/metrics')).text).toContain('callboard_share_used{share="waits"} 0');
  });

  it('appears in the gauges while params wait, whichever relay admitted them', async () => {
    await using at = await startHttpRelay();
    const body = { params: { text: 'x'.repeat(800) }, connect_within_ms: 60_000, wait_for: 'admitted' };
    const token = await tokenOf('alice', 'invoke');
    expect((await at.ask(INVOKE, postJson(body, { token }))).status).toBe(202);
    expect((await at.ask('/metrics')).text).toContain('callboard_share_used{share="queued_bytes"} 811');
  });
});

describe('readiness', () => {
  it('names a total that is used up, and stays, because other work goes on', async () => {
    await using at = await startHttpRelay({ shares: { links: { guarantee: 1, total: 1 } } });
    const readiness = async () => {
      const { status, json } = await ask(`${at.linkUrl}/readyz`, { token: null });
      return [status, json];
    };
    expect(await readiness()).toEqual([200, { status: 'ready' }]);
    const caller = createLinkCaller({ url: connectUrl(at), token: await tokenOf('alice', 'invoke') });
    await expect(caller.invoke(TARGET)).rejects.toMatchObject({ code: 'not_connected' });
    expect(await readiness()).toEqual([200, { status: 'ready', full_shares: ['links'] }]);
    expect((await at.ask('/metrics')).text).toContain('callboard_ready 1');
    await caller.close();
    await expect.poll(readiness).toEqual([200, { status: 'ready' }]);
  });
});

describe('accounts that hold all they can', () => {
  it('leave another user room to connect and to be called, and the relay stays ready', async () => {
    const bound = { guarantee: 16_000, total: 64_000 };
    await using at = await startHttpRelay({ shares: { advertised_bytes: bound, queued_bytes: bound } });
    const { core } = at.callboard;
    const metadata = toJson({ text: 'x'.repeat(900) });
    for (let account = 0; account < 5; account++) {
      const holder = user(`hoarder-${account}`);
      let room = true;
      for (let tab = 0; room && tab < 100; tab++) {
        const opened = connect(core, holder, { clientId: `tab-${tab}`, metadata });
        room = await opened.then(
          () => true,
          (error: unknown) => {
            expect(error).toMatchObject({ details: { share: 'advertised_bytes' } });
            return false;
          },
        );
      }
      expect(room).toBe(false);
    }
    const client = await connect(core, user('alice'), { actions: [advertisement('open')] });
    const call = at.ask(INVOKE, postJson({}, { token: await tokenOf('alice', 'invoke') }));
    while (client.sent.length === 0) await settle();
    await client.result(client.last);
    expect((await call).status).toBe(200);
    const { status, json } = await ask(`${at.linkUrl}/readyz`, { token: null });
    expect([status, json]).toEqual([200, { status: 'ready', full_shares: ['advertised_bytes'] }]);
  });
});

describe('bounds given by an embedding program', () => {
  it.each([
    { links: { guarantee: 10, total: 5 } },
    { links: { guarantee: 0 } },
    { queued_bytes: { guarantee: 1.5 } },
    { marks: { guarantee: 3_000_000 } },
  ])('that are inconsistent are refused, naming the share: %j', (shares) => {
    const name = Object.keys(shares)[0] ?? '';
    expect(() => createCallboard({ config: { auth, shares } })).toThrow(
      expect.objectContaining({
        code: 'invalid_argument',
        details: { errors: [expect.objectContaining({ parameter: `shares.${name}` })] },
      }),
    );
  });

  it('replace the defaults; historyMaxBytes is a total', async () => {
    const shares = { links: { total: 500 } };
    await using callboard = createCallboard({ config: { auth, shares, historyMaxBytes: 2 ** 20 } });
    const { bounds } = callboard.core.shares;
    expect(bounds.links).toEqual({ guarantee: 500, total: 500 });
    expect(bounds.history_bytes).toEqual({ guarantee: 2 ** 20, total: 2 ** 20 });
    expect(bounds.waits).toEqual({ guarantee: 10_000, total: null });
  });
});
