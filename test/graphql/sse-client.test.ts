/** Tests that the official graphql-sse client reads the relay's event streams. */
import { NetworkError, createClient, type Client, type ExecutionResult } from 'graphql-sse';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startGraphqlServer, type GraphqlServer } from './kit/graphql-server.ts';
import { SECRET } from './kit/small-schema.ts';

type Iteration = AsyncIterableIterator<ExecutionResult>;

/** Runs all tests in both modes of the official client, at each address that serves the mode. */
describe.each([
  ['distinct connections at /graphql', '', false],
  ['distinct connections at /graphql/stream', '/stream', false],
  ['a single connection', '/stream', true],
] as const)('the official client with %s', (_mode, path, singleConnection) => {
  let server: GraphqlServer;
  let client: Client;
  beforeEach(async () => {
    server = await startGraphqlServer();
    client = clientOf('alice');
  });
  afterEach(async () => {
    client.dispose();
    await server[Symbol.asyncDispose]();
  });
  const clientOf = (requester: string): Client =>
    createClient({
      url: server.url + path,
      headers: { authorization: `Bearer ${requester}` },
      singleConnection,
      retryAttempts: 0,
    });
  const iterate = (query: string, variables?: Record<string, unknown>): Iteration =>
    client.iterate({ query, ...(variables && { variables }) });
  const all = async (query: string, variables?: Record<string, unknown>): Promise<ExecutionResult[]> => {
    const results: ExecutionResult[] = [];
    for await (const result of iterate(query, variables)) results.push(result);
    return results;
  };
  const push = (n: number): void => server.subscriptions.feeds.forEach((feed) => feed.push(n));
  /** Starts a subscription and waits until the server has subscribed. */
  const started = async (
    query: string,
  ): Promise<{ results: Iteration; first: Promise<IteratorResult<ExecutionResult>> }> => {
    const opened = server.subscriptions.opened.promise;
    const results = iterate(query);
    const first = results.next();
    await opened;
    return { results, first };
  };

  it('gets each event as it is published, and ends what it leaves', async () => {
    const { results, first } = await started('subscription { ticks }');
    push(7);
    expect((await first).value).toEqual({ data: { ticks: 7 } });
    push(8);
    push(9);
    expect((await results.next()).value).toEqual({ data: { ticks: 8 } });
    expect((await results.next()).value).toEqual({ data: { ticks: 9 } });
    expect(server.subscriptions.feeds.size).toBe(1);
    await results.return?.();
    await until(() => server.subscriptions.feeds.size === 0);
  });

  it('sees the end of a subscription whose source has ended', async () => {
    expect(await all('subscription ($n: Int) { ticks(times: $n) }', { n: 3 })).toEqual([
      { data: { ticks: 1 } },
      { data: { ticks: 2 } },
      { data: { ticks: 3 } },
    ]);
  });

  it('runs queries and mutations as its requester', async () => {
    expect(await all('{ me hello }')).toEqual([{ data: { me: 'alice', hello: 'hello you' } }]);
    expect(await all('mutation { touch }')).toEqual([{ data: { touch: expect.any(Number) } }]);
  });

  it('gets a refusal with its code, from the document, a limit, or the resolver', async () => {
    const codes = async (query: string): Promise<unknown> => {
      const [answer, ...more] = await all(query);
      expect(more).toEqual([]);
      return answer?.errors?.map(({ extensions }) => extensions?.['code']);
    };
    expect(await codes('subscription { refused }')).toEqual(['not_found']);
    expect(await codes('subscription { nope }')).toEqual(['graphql_validation_failed']);
    expect(await codes('subscription {')).toEqual(['graphql_parse_failed']);
    expect(await codes('{ __schema { description } }')).toEqual(['forbidden']);
    expect(await codes(`{ cat { ${Array.from({ length: 101 }, (_, i) => `a${i}: id`).join(' ')} } }`)).toEqual([
      'too_complex',
    ]);
    expect(await codes('{ named(first: 20000) { id } }')).toEqual(['too_complex']);
    expect(await codes('subscription { ticks seen }')).toEqual(['graphql_validation_failed']);
  });

  it('gets the errors of variables', async () => {
    const [answer] = await all('subscription ($n: Int) { ticks(times: $n) }', { n: 'x' });
    expect(answer?.errors?.[0]?.message).toContain('$n');
    expect(JSON.stringify(answer)).not.toContain('"http"');
  });

  it.each(['boomStart', 'boomEvents'])('does not see what broke %s', async (field) => {
    const opened = server.subscriptions.opened.promise;
    const results = iterate(`subscription { ${field} }`);
    const first = results.next();
    if (field === 'boomEvents') {
      await opened;
      push(1);
    }
    const { value } = await first;
    expect(JSON.stringify(value)).not.toContain('hunter2');
    expect(value.errors[0].extensions).toEqual({ code: 'internal', id: expect.any(String) });
    expect(server.lines.filter(({ fields }) => String(fields['err']).includes(SECRET))).toHaveLength(1);
    await results.return?.();
  });

  it('does not see what broke the source, gets one error and ends', async () => {
    const { results, first } = await started('subscription { ticks }');
    push(1);
    await first;
    const next = results.next();
    server.subscriptions.feeds.forEach((feed) => feed.fail(new Error(SECRET)));
    const { value } = await next;
    expect(value.errors[0].extensions.code).toBe('internal');
    expect(JSON.stringify(value)).not.toContain('hunter2');
    expect((await results.next()).done).toBe(true);
  });

  it('gets fresh values with each event', async () => {
    const { results, first } = await started('subscription { seen }');
    push(1);
    push(2);
    expect((await first).value).toEqual({ data: { seen: 1 } });
    expect((await results.next()).value).toEqual({ data: { seen: 1 } });
    await results.return?.();
  });

  it('would reconnect after a shutdown, because it receives no `complete`', async () => {
    const { results, first } = await started('subscription { ticks }');
    push(1);
    await first;
    const next = results.next();
    await server.closeHandler();
    await expect(next).rejects.toThrow(NetworkError);
    expect(server.subscriptions.feeds.size).toBe(0);
  });

  it('loses nothing and keeps order while it runs many operations at once', async () => {
    const counts = await Promise.all(
      Array.from({ length: singleConnection ? 40 : 8 }, async (_, i) => {
        const results = await all('subscription ($n: Int) { ticks(times: $n) }', { n: i + 1 });
        return results.map(({ data }) => data?.['ticks']);
      }),
    );
    expect(counts.every((ticks, i) => ticks.length === i + 1 && ticks.every((tick, at) => tick === at + 1))).toBe(true);
  });
});

async function until(met: () => boolean): Promise<void> {
  while (!met()) await new Promise((done) => setImmediate(done));
}
