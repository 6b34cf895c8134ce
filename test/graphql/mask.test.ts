/** Tests that unexpected errors are hidden, and that the relay's own errors are shown. */
import { GraphQLError } from 'graphql';
import { describe, expect, it } from 'vitest';
import { CallboardError, internalMessage } from '../../src/core/errors.ts';
import { silentLog } from '../../src/core/ports.ts';
import { silentMetrics } from '../../src/core/metrics.ts';
import { callboardErrorOf, createMask } from '../../src/graphql/execute/mask.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { startGraphqlServer } from './kit/graphql-server.ts';
import { SECRET } from './kit/small-schema.ts';

const crypto = createCrypto('test');

const wrap = (origin: Error, path?: string[]): GraphQLError =>
  new GraphQLError(origin.message, { cause: origin, path });

describe('masking', () => {
  it.each(['boom', 'boomLater', 'boomGraphql', 'badInt'])(
    'hides what broke %s, and keeps the other data',
    async (field) => {
      await using server = await startGraphqlServer();
      // The third run uses the compiled form of the query, which the relay makes only for repeated queries.
      for (let run = 0; run < 3; run++) {
        const answer = await server.ask(`{ hello ${field} }`);
        expect(answer.data).toEqual({ hello: 'hello you', [field]: null });
        expect(answer.text).not.toContain('hunter2');
        expect(answer.errors).toMatchObject([{ path: [field], extensions: { code: 'internal' } }]);
        expect(answer.status).toBe(200);
      }
    },
  );

  it('gives each hidden error an id, which is logged and counted once', async () => {
    await using server = await startGraphqlServer();
    const { errors } = await server.ask('{ boom }');
    const lines = server.lines.filter(({ fields }) => fields['errorId'] === errors[0]?.extensions?.['id']);
    expect(lines).toHaveLength(1);
    expect(lines[0]?.level).toBe('error');
    expect(String(lines[0]?.fields['err'])).toContain(SECRET);
    expect(server.lines).toHaveLength(1);
  });

  it('shows codes and details of our own errors, never their causes', async () => {
    await using server = await startGraphqlServer();
    const answer = await server.ask('{ absent wrong hello }');
    expect(answer.errors.map(({ path, extensions }) => [path, extensions])).toEqual([
      [['absent'], { code: 'not_found' }],
      [['wrong'], { code: 'invalid_argument', errors: [{ parameter: 'limit', detail: 'no' }] }],
    ]);
    expect(answer.text).not.toContain('hunter2');
    expect(server.lines).toEqual([]);
  });

  it("passes GraphQL's own messages about documents, variables and arguments", async () => {
    await using server = await startGraphqlServer();
    const text = async (query: string, variables?: Record<string, unknown>) => {
      const { errors, status, data } = await server.ask(query, { ...(variables && { variables }) });
      return [errors[0]?.message, status, data];
    };
    expect(await text('{ hello')).toEqual(['Syntax Error: Expected Name, found <EOF>.', 400, undefined]);
    expect(await text('{ nope }')).toEqual(['Cannot query field "nope" on type "Query".', 400, undefined]);
    expect(await text('query ($n: Int!) { count(n: $n) }', { n: 'x' })).toEqual([
      expect.stringContaining('Variable "$n" has invalid value'),
      400,
      undefined,
    ]);
    expect(await text('query ($n: Int) { count(n: $n) hello }', { n: null })).toEqual([
      expect.stringContaining('Argument "Query.count(n:)" has invalid value: Expected variable "$n"'),
      200,
      { count: null, hello: 'hello you' },
    ]);
    expect(server.lines).toEqual([]);
  });

  it('answers the same error with the same object and counts what it hides', () => {
    const counted: string[] = [];
    const metrics = { ...silentMetrics, count: (name: string) => void counted.push(name) };
    const mask = createMask({ log: silentLog, metrics, crypto });
    const error = wrap(new Error(SECRET), ['a']);
    const shown = mask(error);
    expect(mask(error)).toBe(shown);
    expect(mask(shown)).toBe(shown);
    expect(counted).toEqual(['errors_masked']);
    expect(shown.cause).toBeUndefined();
  });

  it.each([null, undefined, 'text', 7, { message: SECRET }, Symbol('x')])(
    'hides thrown values that are not errors: %s',
    (thrown) => {
      const shown = createMask({ log: silentLog, crypto })(thrown);
      expect(shown.extensions).toMatchObject({ code: 'internal', http: { status: 500 } });
      expect(shown.message).toBe(internalMessage(String(shown.extensions['id'])));
      expect(JSON.stringify(shown)).not.toContain('hunter2');
    },
  );

  it('finds our error under any number of wrappers, with the status of a whole request', () => {
    const error = new CallboardError('rate_limited', 'Slower.', { retryAfterMs: 1500 });
    const shown = createMask({ log: silentLog, crypto })(wrap(wrap(error)));
    expect(callboardErrorOf(shown)).toBe(error);
    expect(shown.extensions).toEqual({
      code: 'rate_limited',
      retryAfterMs: 1500,
      http: { status: 429, headers: { 'retry-after': '2' } },
    });
    expect(createMask({ log: silentLog, crypto })(wrap(error, ['a'])).extensions).toEqual({
      code: 'rate_limited',
      retryAfterMs: 1500,
    });
  });
});
