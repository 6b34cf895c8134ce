/** Tests access, paths, methods and queries of REST requests. */
import { describe, expect, test } from 'vitest';
import { startSmall } from './kit/small-schema.ts';

describe('access', () => {
  test('is checked before the parameters are read', async () => {
    await using relay = await startSmall();
    expect((await relay.ask({ path: '/things?nonsense=1', requester: null })).body.code).toBe('unauthenticated');
    expect((await relay.ask({ path: '/things?nonsense=1', requester: 'alice' })).body.code).toBe('forbidden');
    expect((await relay.ask({ path: '/things?nonsense=1', requester: 'admin' })).body.code).toBe('invalid_argument');
  });

  test('without a token is 401 with the required scheme', async () => {
    await using relay = await startSmall();
    const reply = await relay.ask({ path: '/things', requester: null });
    expect(reply.status).toBe(401);
    expect(reply.headers['www-authenticate']).toBe('Bearer');
  });

  test.each([
    ['admin', 200, 403],
    ['alice', 200, 200],
    ['alice:host', 403, 200],
    ['alice:connect', 403, 403],
    [null, 401, 401],
  ])('for %s: INVOKE answers %i, HOST answers %i', async (requester, invoke, host) => {
    await using relay = await startSmall();
    expect((await relay.ask({ path: '/things/a', requester })).status).toBe(invoke);
    expect((await relay.ask({ method: 'PUT', path: '/kept', requester, body: [] })).status).toBe(host);
  });
});

describe('paths and methods', () => {
  test('a path that no route has is left to the caller of the handler', async () => {
    await using relay = await startSmall();
    for (const path of ['/', '/thing', '/things/a/b/c', '/things/', '//things', '/THINGS']) {
      const { headers, status } = await relay.ask(path);
      expect([path, status, headers['x-no-route'] ?? 'answered']).toEqual([path, 404, '1']);
    }
  });

  test('another method is 405 with the allowed ones', async () => {
    await using relay = await startSmall();
    const reply = await relay.ask({ method: 'DELETE', path: '/things/a', requester: null });
    expect(reply.status).toBe(405);
    expect(reply.headers['allow']).toBe('GET, POST, HEAD');
    expect(reply.body).toMatchObject({ code: 'method_not_allowed', status: 405, type: 'about:blank' });
  });

  test('HEAD has the headers of GET and no body', async () => {
    await using relay = await startSmall();
    const get = await relay.ask('/things/a');
    const head = await relay.ask({ method: 'HEAD', path: '/things/a' });
    expect(head.status).toBe(200);
    expect(head.text).toBe('');
    expect(head.headers['content-length']).toBe(String(Buffer.byteLength(get.text)));
  });

  test('the base path is in the description, and requests arrive without it', async () => {
    await using relay = await startSmall('/relay/v1');
    expect((await relay.ask('/things/a')).status).toBe(200);
    expect((await relay.ask('/relay/v1/things/a')).headers['x-no-route']).toBe('1');
    expect(await relay.handler.openapi()).toMatchObject({ servers: [{ url: '/relay/v1' }] });
  });

  test('escapes in a path are decoded once', async () => {
    await using relay = await startSmall();
    expect((await relay.ask('/given/a%2Fb%2525%20%C3%A9')).body).toMatchObject({ id: 'a/b%25 é' });
    expect((await relay.ask('/given/a+b')).body).toMatchObject({ id: 'a+b' });
  });

  test.each(['%ZZ', '%', '%E0%A4%A', '%FF'])('a malformed escape %s is reported with its parameter', async (bad) => {
    await using relay = await startSmall();
    const inPath = await relay.ask(`/given/x${bad}`);
    expect(inPath.status).toBe(400);
    expect(inPath.body.errors).toEqual([{ parameter: 'id', detail: 'not valid percent-encoding' }]);
    const inQuery = await relay.ask(`/given/x?note=${bad}`);
    expect(inQuery.body.errors).toEqual([{ parameter: 'note', detail: 'not valid percent-encoding' }]);
  });
});

describe('queries', () => {
  test('values are converted by type: enums by words, lists by commas, times as epoch milliseconds', async () => {
    await using relay = await startSmall();
    const query = 'owner_id=o+1&color=dark-blue&colors=red,dark-blue&since=1767225600000&bright=true&limit=7';
    expect((await relay.ask(`/things?${query}`)).status).toBe(200);
    expect(relay.small.seen).toEqual([
      {
        ownerId: 'o 1',
        color: 'dark-blue',
        colors: ['red', 'dark-blue'],
        since: Date.parse('2026-01-01T00:00:00Z'),
        bright: true,
        first: 7,
      },
    ]);
  });

  test('omitted values stay omitted, and defaults are filled in', async () => {
    await using relay = await startSmall();
    await relay.ask('/things?&');
    expect(relay.small.seen).toEqual([{ first: 100 }]);
  });

  test('every fault is reported at once, in order, and nothing runs', async () => {
    await using relay = await startSmall();
    const query =
      'colour=red&color=DARK_BLUE&colors=red,,green&since=2026-02-30T00:00:00Z&bright=1&limit=1001&owner_id=';
    const { status, body, headers } = await relay.ask(`/things?${query}&color=red`);
    expect(status).toBe(400);
    expect(headers['content-type']).toBe('application/problem+json');
    expect(body).toMatchObject({
      type: 'about:blank',
      title: 'Invalid argument',
      status: 400,
      code: 'invalid_argument',
    });
    expect(body.errors).toEqual([
      { parameter: 'colour', detail: 'unknown parameter' },
      { parameter: 'color', detail: 'expected one of red, dark-blue' },
      { parameter: 'colors', detail: 'expected one of red, dark-blue' },
      { parameter: 'colors', detail: 'expected one of red, dark-blue' },
      { parameter: 'since', detail: 'expected an RFC 3339 time or epoch milliseconds, not seconds' },
      { parameter: 'bright', detail: 'expected true or false' },
      { parameter: 'limit', detail: 'expected an integer, 1 to 1000' },
      { parameter: 'owner_id', detail: 'expected 1 to 512 characters' },
      { parameter: 'color', detail: 'given twice' },
    ]);
    expect(relay.small.seen).toEqual([]);
  });

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'id'])(
    'the name %s is an unknown parameter like any other',
    async (name) => {
      await using relay = await startSmall();
      const { body } = await relay.ask(`/given/a?${name}=1`);
      expect(body.errors).toEqual([{ parameter: name, detail: 'unknown parameter' }]);
    },
  );

  test.each(['0', '1001', '1.5', '1e2', '', '99999999999', '+5', ' 5', '0x10'])(
    'limit=%s is refused',
    async (limit) => {
      await using relay = await startSmall();
      expect((await relay.ask(`/things?limit=${encodeURIComponent(limit)}`)).status).toBe(400);
    },
  );

  test.each([
    ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00.000Z'],
    ['2026-01-01t02:30:00.5%2B02:30', '2026-01-01T00:00:00.500Z'],
    ['0', '1970-01-01T00:00:00.000Z'],
    ['253402300799999', '9999-12-31T23:59:59.999Z'],
  ])('the time %s is %s', async (text, time) => {
    await using relay = await startSmall();
    await relay.ask(`/things?since=${text}`);
    expect(relay.small.seen[0]).toMatchObject({ since: Date.parse(time) });
  });

  test.each(['2026-01-01', '2026-01-01T00:00:00', '253402300800000', '-1', 'now', '2026-13-01T00:00:00Z'])(
    'the time %s is refused',
    async (text) => {
      await using relay = await startSmall();
      expect((await relay.ask(`/things?since=${text}`)).status).toBe(400);
    },
  );

  test('a long list of faults and long names are truncated', async () => {
    await using relay = await startSmall();
    const query = Array.from({ length: 100 }, (_, i) => `${'x'.repeat(90)}${i}=1`).join('&');
    const { body } = await relay.ask(`/things?${query}`);
    expect(body.errors).toHaveLength(32);
    expect(body.errors[0].parameter).toBe(`${'x'.repeat(64)}...`);
  });

  test('an identifier of 600 characters is refused by its parameter', async () => {
    await using relay = await startSmall();
    expect((await relay.ask(`/given/${'a'.repeat(600)}`)).body.errors[0].parameter).toBe('id');
    expect((await relay.ask(`/given/${'a'.repeat(512)}`)).status).toBe(200);
  });
});
