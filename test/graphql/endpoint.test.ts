/** Tests the GraphQL endpoint over HTTP: media types, methods, refusals and the editor's page. */
import { describe, expect, it } from 'vitest';
import { startGraphqlServer, type GraphqlServer } from './kit/graphql-server.ts';

const authorization = 'Bearer alice';
const JSON_ANSWER = /^application\/(graphql-response\+)?json/;
const json = { 'content-type': 'application/json', authorization };
const post = (server: GraphqlServer, body: unknown, headers: Record<string, string> = {}) =>
  fetch(server.url, { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(body) });
const codeOf = async (response: Response): Promise<unknown> => (await response.json()).errors[0].extensions.code;

describe('the GraphQL endpoint', () => {
  it.each(['application/json', 'application/graphql-response+json', '*/*'])(
    'answers 401 without a token, requested as %s',
    async (accept) => {
      await using server = await startGraphqlServer();
      const answer = await server.ask('{ hello __typename }', { requester: null, accept });
      expect(answer).toMatchObject({ status: 401, code: 'unauthenticated', data: undefined });
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
      const mutation = await server.ask('mutation { touch }', { requester: null, accept });
      expect(mutation).toMatchObject({ status: 401, code: 'unauthenticated', data: undefined });
      expect(await server.ask('{ __typename }', { requester: null, accept })).toMatchObject({
        status: 200,
        errors: [],
      });
    },
  );

  it('answers in the requested media type, also its own refusals', async () => {
    await using server = await startGraphqlServer();
    const type = async (body: unknown, accept: string) =>
      (await post(server, body, { accept })).headers.get('content-type');
    for (const accept of ['application/json', 'application/graphql-response+json']) {
      expect(await type({ query: '{ hello }' }, accept)).toBe(`${accept}; charset=utf-8`);
      expect(await type([], accept)).toBe(`${accept}; charset=utf-8`);
      expect(await type({ query: '{' }, accept)).toBe(`${accept}; charset=utf-8`);
    }
  });

  it.each([',', ','.repeat(300), 'text/plain', 'image/*', 'application/json;charset=latin1', 'text/plain, image/png'])(
    'refuses with a code what it cannot answer: %j',
    async (accept) => {
      await using server = await startGraphqlServer();
      const refused = [
        await fetch(`${server.url}?query={hello}`, { headers: { accept, authorization, 'user-agent': 'test' } }),
        await post(server, { query: '{ hello }' }, { accept }),
      ];
      for (const response of refused) {
        expect(response.status).toBe(406);
        expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
        expect(await codeOf(response)).toBe('not_acceptable');
      }
    },
  );

  it.each(['application/*', '*/*', 'text/html, application/json', 'application/json; charset=utf-8;q=0.5, ,'])(
    'answers a request that accepts %j',
    async (accept) => {
      await using server = await startGraphqlServer();
      const response = await post(server, { query: '{ hello }' }, { accept });
      expect([response.status, (await response.json()).data]).toEqual([200, { hello: expect.anything() }]);
    },
  );

  it.each([
    'text/event-stream, application/json;q=0.9',
    'text/event-stream;q=0.1, application/json',
    'text/event-stream, application/graphql-response+json',
    'text/event-stream, */*;q=0.1',
    'multipart/mixed, application/json;q=0.5',
    'text/event-stream, multipart/mixed, application/*',
  ])('answers queries and mutations in JSON where %j admits it, and streams subscriptions', async (accept) => {
    await using server = await startGraphqlServer();
    for (const query of ['{ hello }', 'mutation { touch }', '{']) {
      const response = await post(server, { query }, { accept });
      expect([query, response.headers.get('content-type')]).toEqual([query, expect.stringMatching(JSON_ANSWER)]);
      expect(await response.json()).toHaveProperty(query === '{' ? 'errors' : 'data');
    }
    const byGet = await fetch(`${server.url}?query={hello}`, { headers: { accept, authorization } });
    expect(byGet.headers.get('content-type')).toMatch(JSON_ANSWER);
    const refused = await post(server, { query: '{ hello }' }, { accept, authorization: '' });
    expect([refused.status, refused.headers.get('content-type')]).toEqual([401, expect.stringMatching(JSON_ANSWER)]);
    if (!accept.startsWith('text/event-stream')) return;
    const stream = await post(server, { query: 'subscription { ticks }' }, { accept });
    expect([stream.status, stream.headers.get('content-type')]).toEqual([200, expect.stringMatching('event-stream')]);
    await stream.body?.cancel();
  });

  it.each(['text/event-stream', 'text/event-stream, application/json;q=0', 'text/event-stream, text/plain'])(
    'streams every operation where %j admits no JSON',
    async (accept) => {
      await using server = await startGraphqlServer();
      for (const query of ['{ hello }', 'subscription { ticks }']) {
        const response = await post(server, { query }, { accept });
        expect(response.headers.get('content-type')).toMatch('event-stream');
        await response.body?.cancel();
      }
    },
  );

  it('refuses a mutation by GET with a method error', async () => {
    await using server = await startGraphqlServer();
    const response = await fetch(`${server.url}?query=mutation{touch}`, { headers: { authorization } });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
    expect(await codeOf(response)).toBe('method_not_allowed');
  });

  it.each([
    [[{ query: '{ hello }' }, { query: '{ hello }' }]],
    [[]],
    [{}],
    [null],
    ['{ hello }'],
    [7],
    [{ query: '' }],
    [{ query: 7 }],
    [{ query: ['{ hello }'] }],
    [{ query: '{ hello }', variables: [1] }],
    [{ query: '{ hello }', variables: 'x' }],
    [{ query: '{ hello }', operationName: 7 }],
    [{ query: '{ hello }', extensions: 'x' }],
  ])('refuses the body %j', async (body) => {
    await using server = await startGraphqlServer();
    const response = await post(server, body);
    expect(response.status).toBe(400);
    expect(await codeOf(response)).toBe('invalid_argument');
  });

  it('refuses an operation name that is not in the document, and a document that needs one', async () => {
    await using server = await startGraphqlServer();
    const query = 'query A { hello } query B { hello }';
    expect((await post(server, { query, operationName: 'C' })).status).toBe(400);
    expect((await post(server, { query })).status).toBe(400);
    expect((await post(server, { query, operationName: 'A' })).status).toBe(200);
    expect((await post(server, { query: 'fragment F on Query { hello }' })).status).toBe(400);
  });

  it('answers a GET only for requesters that can send a header', async () => {
    await using server = await startGraphqlServer();
    const url = `${server.url}?query=${encodeURIComponent('{ me __typename }')}`;
    const bare = await fetch(url);
    expect(bare.status).toBe(403);
    expect(await codeOf(bare)).toBe('forbidden');
    expect((await fetch(url, { headers: { 'x-callboard-csrf': '1' } })).status).toBe(401);
    const requested = await fetch(url, { headers: { authorization } });
    expect(await requested.json()).toEqual({ data: { me: 'alice', __typename: 'Query' } });
  });

  it('runs no mutation by GET, and answers 400 for its malformed parameters', async () => {
    await using server = await startGraphqlServer();
    const get = (search: string) => fetch(`${server.url}?${search}`, { headers: { authorization } });
    const mutation = await get(`query=${encodeURIComponent('mutation { touch }')}`);
    expect(mutation.status).toBe(405);
    expect(mutation.headers.get('allow')).toBe('POST');
    for (const search of [
      '',
      'query=',
      'query=%7Bhello%7D&variables=%7B',
      'query=%7Bhello%7D&variables=[]',
      'query=%7Bhello%7D&extensions=x',
    ]) {
      expect([search, (await get(search)).status]).toEqual([search, 400]);
    }
    const named = encodeURIComponent('query ($n: Int!) { count(n: $n) }');
    expect(await (await get(`query=${named}&variables=${encodeURIComponent('{"n":5}')}`)).json()).toEqual({
      data: { count: 5 },
    });
  });

  it.each(['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD'])('answers %s with 405', async (method) => {
    await using server = await startGraphqlServer();
    expect((await fetch(server.url, { method, headers: { authorization } })).status).toBe(405);
  });

  it('refuses a subscription that is not requested as an event stream', async () => {
    await using server = await startGraphqlServer();
    for (const accept of ['application/json', 'application/graphql-response+json', '*/*', 'multipart/mixed']) {
      const response = await post(server, { query: 'subscription { ticks }' }, { accept });
      expect([accept, response.status]).toEqual([accept, 406]);
    }
    expect(server.subscriptions.feeds.size).toBe(0);
  });

  it('does not reveal its internal HTTP extensions', async () => {
    await using server = await startGraphqlServer();
    const texts = [
      await (await post(server, { query: '{ nope }' })).text(),
      await (await post(server, { query: '{ hello }', variables: 7 })).text(),
      await (
        await fetch(server.url, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: '{"query":"{hello}"}',
        })
      ).text(),
    ];
    for (const text of texts) expect(text).not.toMatch(/"http"|"spec"|stack/);
  });

  it('has no other path below it', async () => {
    await using server = await startGraphqlServer();
    for (const path of ['/other', '/stream/more', '/health', '/']) {
      const response = await fetch(server.url + path, { headers: { authorization } });
      expect([path, response.status]).toEqual([path, 404]);
    }
  });

  it('keeps simultaneous requests apart', async () => {
    await using server = await startGraphqlServer();
    const requester = Array.from({ length: 60 }, (_, i) => (i % 2 ? 'alice' : 'bob'));
    const answers = await Promise.all(requester.map((name) => server.ask('{ me }', { requester: name })));
    expect(answers.map(({ data }) => data?.['me'])).toEqual(requester);
  });
});

describe('the GraphiQL page', () => {
  const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

  it('is one document that loads nothing from elsewhere', async () => {
    await using server = await startGraphqlServer();
    const response = await fetch(server.url, { headers: html });
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const policy = response.headers.get('content-security-policy') ?? '';
    expect(policy).not.toMatch(/https?:|\*/);
    expect(policy).toContain("default-src 'none'");
    const page = await response.text();
    const markup = page.slice(0, page.indexOf('<style>'));
    expect(markup).toContain('href="data:');
    expect(markup).not.toMatch(/https?:/);
    expect(page).not.toMatch(/<script[^>]*\ssrc=["']?\w/);
    expect(page).toContain('"endpoint":"/graphql"');
  });

  it('is sent again only when it has changed', async () => {
    await using server = await startGraphqlServer();
    const etag = (await fetch(server.url, { headers: html })).headers.get('etag') ?? '';
    expect((await fetch(server.url, { headers: { ...html, 'if-none-match': etag } })).status).toBe(304);
    expect((await fetch(server.url, { headers: { ...html, 'if-none-match': '"other"' } })).status).toBe(200);
  });
});
