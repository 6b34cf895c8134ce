/** Tests the form of REST answers and errors. */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { connect } from 'node:net';
import { GraphQLError, GraphQLString } from 'graphql';
import { describe, expect, test } from 'vitest';
import { CallboardError, internalMessage } from '../../src/core/errors.ts';
import { isCode } from '../../src/protocol/codes.ts';
import { answerOf } from '../../src/rest/answer.ts';
import type { Route, Match } from '../../src/rest/compile.ts';
import type { HangUpSignal } from '../../src/web/hang-up.ts';
import { explainError, problem } from '../../src/rest/problem.ts';
import { DocumentReading } from '../../src/core/document-reading.ts';
import { serve, type Serving } from '../../src/rest/serve.ts';
import { admin } from '../kit/core.ts';
import { startSmall } from './kit/small-schema.ts';

const post = { method: 'POST', path: '/things/a', body: {} };

describe('response bodies', () => {
  test('are the root field’s value, in REST words, with opaque JSON unchanged', async () => {
    await using relay = await startSmall();
    const thing = { color: 'dark-blue', made_at: '2026-01-01T00:00:00.000Z', extra: { RED: ['DARK_BLUE'] } };
    const { body, headers } = await relay.ask('/things');
    expect(body).toEqual({
      items: [
        { id: 'a', ...thing },
        { id: 'b', ...thing },
      ],
      next_cursor: null,
    });
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(headers['cache-control']).toBe('no-store');
    // The first run of a plan and later ones may use different engines.
    for (let run = 0; run < 3; run++) expect((await relay.ask('/things')).body).toEqual(body);
  });

  test('with a null on the path to the answer are 404', async () => {
    await using relay = await startSmall();
    expect((await relay.ask('/things/a/twin')).body).toEqual({ id: 'twin' });
    for (const path of ['/things/none', '/things/none/twin', '/things/single/twin']) {
      const { status, body } = await relay.ask(path);
      expect([path, status, body.code]).toEqual([path, 404, 'not_found']);
    }
  });
});

describe('errors', () => {
  test('any error makes the whole answer a problem without partial data', async () => {
    await using relay = await startSmall();
    const { status, body } = await relay.ask('/fails/partly');
    expect(status).toBe(500);
    expect(body).toMatchObject({ code: 'internal', status: 500 });
    expect(body).not.toHaveProperty('id', null);
  });

  test('an internal error is masked, and its id is logged', async () => {
    await using relay = await startSmall();
    const { status, text, body } = await relay.ask('/fails/secretly');
    expect(status).toBe(500);
    expect(text).not.toContain('1234');
    expect(body.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(body.detail).toBe(internalMessage(body.id));
    expect(relay.small.logged).toHaveLength(1);
    expect(relay.small.logged[0]).toMatchObject({ errorId: body.id });
  });

  test('a fault reported by a resolver is named by its REST parameter', async () => {
    await using relay = await startSmall();
    const { body } = await relay.ask('/fails/argument');
    expect(body).toMatchObject({ code: 'invalid_argument', detail: 'owner_id: no' });
    expect(body.errors).toEqual([{ parameter: 'owner_id', detail: 'no' }]);
  });

  test('429 has the retry time in whole seconds, never zero', async () => {
    await using relay = await startSmall();
    const { status, headers } = await relay.ask('/fails/busy');
    expect([status, headers['retry-after']]).toEqual([429, '3']);
    expect(problem({ code: 'rate_limited', detail: '', retryAfterMs: 0 }).headers).toEqual({ 'retry-after': '1' });
    expect(problem({ code: 'queue_full', detail: '' }).headers).toEqual({ 'retry-after': '1' });
  });

  test('a refusal about a command names the command', async () => {
    await using relay = await startSmall();
    const { status, body } = await relay.ask('/fails/away');
    expect(status).toBe(409);
    expect(body).toMatchObject({ code: 'not_connected', user_id: 'u', client_id: 'c', command_id: 'm' });
  });

  test('a code that occurs only inside answers is never a problem of status 200', () => {
    expect(problem({ code: 'handler_failed', detail: '' }).status).toBe(500);
  });

  test('an error with a status of its own keeps it', () => {
    const error = new CallboardError('invalid_user', 'The subject is not canonical.', { status: 401 });
    const answer = problem(explainError(error));
    expect([answer.status, answer.headers]).toEqual([401, { 'www-authenticate': 'Bearer' }]);
  });
});

describe('several errors', () => {
  const answering = {
    inputs: new Map(),
    bodyShape: 'plain',
    body: { path: ['a'], type: GraphQLString, nodes: [], variants: [], nullable: false, schema: {} },
    onlyItem: null,
    reads: false,
  };

  test('are all explained, and a failure of the relay takes precedence', () => {
    const explained: string[] = [];
    const errors = ['not_found', 'internal', 'forbidden'].map((code) => new GraphQLError(code));
    const answer = answerOf(answering, { data: { a: null }, errors }, (error) => {
      const message = error instanceof Error ? error.message : '';
      explained.push(message);
      return { code: isCode(message) ? message : 'internal', detail: message };
    });
    expect(explained).toEqual(['not_found', 'internal', 'forbidden']);
    expect(answer.status).toBe(500);
  });
});

describe('unions', () => {
  const error = { code: 'handler_failed', message: 'It broke.' };

  test.each([
    ['completed', null, 200],
    ['failed', error, 200],
    ['cancelled', null, 200],
    [null, null, 202],
  ])('an invocation whose outcome is %s', async (outcome, failure, status) => {
    await using relay = await startSmall();
    relay.small.answer = { __typename: outcome ? 'Outcome' : 'Pending', commandId: 'm', outcome, error: failure };
    const reply = await relay.ask(post);
    expect(reply.status).toBe(status);
    expect(reply.body).toEqual({ command_id: 'm', outcome, error: failure });
  });

  test.each([
    ['expired', { code: 'connect_timeout', message: 'It did not connect.' }, 'connect_timeout', 'It did not connect.'],
    ['outcome_unknown', { code: 'response_timeout', message: 'Late.' }, 'response_timeout', 'Late.'],
    ['outcome_unknown', null, 'response_timeout', 'The command may have run; its end is not known.'],
    ['expired', { code: 'handler_failed', message: 'x' }, 'queue_timeout', expect.stringContaining('has not run')],
  ])('an invocation that ended %s is 504 with what is known of it', async (outcome, failure, code, detail) => {
    await using relay = await startSmall();
    relay.small.answer = { __typename: 'Outcome', commandId: 'm', outcome, error: failure };
    const { status, body, headers } = await relay.ask(post);
    expect(status).toBe(504);
    expect(headers['content-type']).toBe('application/problem+json');
    expect(body).toMatchObject({ status: 504, code, detail, command_id: 'm', outcome, error: failure });
  });

  test('a refusal is a problem by its code, with the refusing check', async () => {
    await using relay = await startSmall();
    const refusal = { __typename: 'Refusal', by: 'dark-blue', retryAfterMs: null };
    relay.small.answer = { ...refusal, code: 'command_conflict', message: 'Another.' };
    const conflict = await relay.ask(post);
    expect([conflict.status, conflict.headers['retry-after']]).toEqual([409, undefined]);
    expect(conflict.body).toMatchObject({ code: 'command_conflict', detail: 'Another.', by: 'dark-blue' });
    expect(conflict.body).not.toHaveProperty('message');
    relay.small.answer = { ...refusal, code: 'queue_full', message: 'Full.', retryAfterMs: 5000 };
    const full = await relay.ask(post);
    expect([full.status, full.headers['retry-after']]).toEqual([429, '5']);
  });

  test('any other type is 200, without the name of its type', async () => {
    await using relay = await startSmall();
    relay.small.answer = { __typename: 'Receipt', state: 'red' };
    const { status, body } = await relay.ask(post);
    expect([status, body]).toEqual([200, { state: 'red' }]);
  });
});

describe('hanging up', () => {
  test('aborts the signal of an operation that may wait; a read has none', async () => {
    await using relay = await startSmall();
    relay.small.answer = new Promise(() => {});
    const socket = connect(relay.port, '127.0.0.1');
    socket.write('POST /things/a HTTP/1.1\r\nhost: a\r\nx-who: admin\r\ncontent-length: 0\r\n\r\n');
    await expect.poll(() => relay.small.signal).toBeDefined();
    const signal = relay.small.signal;
    if (!signal) throw new Error('no signal');
    expect(signal.aborted).toBe(false);
    const fired = new Promise<void>((received) => signal.addEventListener('abort', received));
    socket.destroy();
    await fired;
    await relay.ask('/things/a');
    expect(relay.small.signal).toBeUndefined();
  });

  test('before the handler was reached aborts at once', async () => {
    const [seen, started] = [new Array<HangUpSignal | undefined>(), Promise.withResolvers<void>()];
    const plan = { write: () => null, run: () => (started.resolve(), Promise.resolve({ data: { a: 1 } })) };
    await using server = await bareServer((req, res) => {
      res.once('close', () => {
        const exchange = { requester: admin, path: '/a', query: '', body: undefined };
        const contextOf = ({ signal }: { signal?: HangUpSignal }) => void seen.push(signal);
        const read: Serving['read'] = (_, run) => run(new DocumentReading());
        serve(
          { contextOf, read, explain: () => ({ code: 'internal', detail: '' }) },
          { req, res, exchange },
          matchOf(plan),
        );
      });
    });
    const socket = connect(server.port, '127.0.0.1');
    socket.write('GET /a HTTP/1.1\r\nhost: a\r\n\r\n');
    await server.reached;
    socket.destroy();
    await started.promise;
    expect(seen[0]?.aborted).toBe(true);
  });

  test('after the answer was received aborts nothing', async () => {
    await using relay = await startSmall();
    relay.small.answer = { __typename: 'Receipt', state: 'red' };
    await relay.ask(post);
    const signal = relay.small.signal;
    await relay.ask('/things/a');
    expect(signal?.aborted).toBe(false);
  });
});

function matchOf(plan: { write: () => null; run: () => Promise<{ data: { a: number } }> }): Match {
  const whole = { operation: 'mutation', introspects: false, onlyMeta: false } as const;
  const bound = {
    asks: new Set<string>(),
    cost: () => 0,
    advice: () => null,
    fault: () => null,
    args: () => [],
    ...plan,
  };
  const route: Route = {
    id: 'A',
    method: 'GET',
    path: '/a',
    access: 'ADMIN',
    bodyAs: null,
    waitsBy: null,
    forUsers: null,
    streams: false,
    itemRefusal: null,
    around: null,
    summary: null,
    mutates: true,
    inputs: new Map(),
    bodyShape: 'plain',
    body: { path: ['a'], type: GraphQLString, nodes: [], variants: [], nullable: false, schema: {} },
    plan: {
      ...whole,
      bind: () => bound,
      bindValues: () => bound,
    },
  };
  return { resource: { template: '/a', routes: new Map([['GET', route]]), allow: 'GET' }, path: {} };
}

async function bareServer(handle: RequestListener) {
  const reached = Promise.withResolvers<void>();
  const server = createServer((req, res) => {
    handle(req, res);
    reached.resolve();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const close = () => new Promise<void>((done) => void server.close(() => done()));
  return { port, reached: reached.promise, [Symbol.asyncDispose]: close };
}
