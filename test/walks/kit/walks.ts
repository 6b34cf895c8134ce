/** Opens a relay with a client in this process, and lists the source files that a request passes through. */
import { createHook, executionAsyncId } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { openCallboard } from '../../../src/callboard.ts';
import { signToken } from '../../../src/http/tokens.ts';
import { startRedis } from '../../kit/redis.ts';
import { TOKEN_SECONDS } from '../../kit/patience.ts';

const SECRET = 'the secret of a traced relay, longer than 32 bytes';
const ADMIN = 'the-token-of-the-administrator-of-a-traced-relay';
/** The number of requests before the traced one. They cause everything that happens once per token, route or link. */
const WARM_UP = 3;
/** A query of the connections, as a dashboard repeats it. */
const QUERY = JSON.stringify({
  query: `query Connections($first: Int!) {
    connections(first: $first) { nodes { id clientId status actionNames } nextCursor completeness { complete } }
  }`,
  variables: { first: 50 },
});

/** The files below `src` through which a request passes, in the order in which it first reaches them. */
export type Walk = readonly string[];

/** A relay, and a client that is connected to it and runs the action `open`. */
type Opened = AsyncDisposable & { readonly url: string; readonly token: string; readonly client: WebSocket };

/**
 * Makes a call over REST to a client of a relay in direct mode. `inbound`: from the request to the write of the command
 * to the client's socket. `outbound`: from the client's result to the write of the response.
 */
export async function walkCall(): Promise<{ readonly inbound: Walk; readonly outbound: Walk }> {
  await using opened = await open();
  await warmUp(() => callOnce(opened));
  using chain = new CausalChain();
  const requested = chain.mark();
  const inbound = atWrite(['"type":"command"'], () => chain.since(requested));
  let outbound: Promise<Walk> = Promise.resolve([]);
  await callOnce(opened, () => {
    const reported = chain.mark();
    outbound = atWrite(['HTTP/1.1 200'], () => chain.since(reported));
  });
  return { inbound: await inbound, outbound: await outbound };
}

/** Sends a query that the relay knows to `/graphql` in direct mode: from the request to the write of the response. */
export async function walkQuery(): Promise<Walk> {
  await using opened = await open();
  const query = (): Promise<string> => send(`${opened.url}/graphql`, ADMIN, QUERY);
  await warmUp(query);
  using chain = new CausalChain();
  const requested = chain.mark();
  const walk = atWrite(['HTTP/1.1 200'], () => chain.since(requested));
  await query();
  return await walk;
}

/**
 * Publishes an event of a site with `POST /ingest` in direct mode: from the request to the write of the event to the
 * event stream of a viewer.
 */
export async function walkEvent(): Promise<Walk> {
  await using opened = await open();
  const { url, token } = opened;
  const site = { client_id: 'tab', title: 'A board', event_names: ['changed'] };
  await send(`${url}/sites/board`, token, JSON.stringify(site), 'PUT');
  const session = JSON.parse(await send(`${url}/sites/board/sessions`, token, '{}'));
  const events = await listen(`${url}/site-sessions/${session.session_id}/events`, session.token);
  const publish = async (): Promise<void> => {
    const address = { kind: 'event', stream_suffix: 'sites/board/events', client_id: 'tab', instance_id: 'i1' };
    await send(`${url}/ingest`, token, JSON.stringify({ ...address, payload: { name: 'changed' } }));
  };
  await warmUp(publish);
  using chain = new CausalChain();
  const requested = chain.mark();
  const walk = atWrite(['event: changed'], () => chain.since(requested));
  await publish();
  const found = await walk;
  await events.cancel();
  return found;
}

/**
 * Makes a call over REST to a client of a relay over this Redis: from the request to the write of the transaction that
 * admits the command to the socket of Redis.
 */
export async function walkAdmission(redisUrl: string): Promise<Walk> {
  await using opened = await open(redisUrl);
  await warmUp(() => callOnce(opened));
  using chain = new CausalChain();
  const requested = chain.mark();
  const walk = atWrite(['evalsha', ':admitted:'], () => chain.since(requested));
  await callOnce(opened);
  return await walk;
}

async function open(redisUrl: string | null = null): Promise<Opened> {
  const auth = { adminTokens: [ADMIN], secret: SECRET, jwksUrl: null, issuer: null, audience: null };
  const shared = {
    url: redisUrl ?? '',
    store: 'redis',
    partitions: 1,
    durability: 'memory',
    namespace: randomUUID(),
  } as const;
  const migration = { strictMigration: false, legacy: { commandStream: null, pending: null } };
  const redis = redisUrl === null ? null : { ...shared, ...migration };
  const relay = await openCallboard({ config: { auth, ...(redis && { redis }) } });
  const url = await relay.listen();
  const scopes = ['connect', 'invoke', 'host'];
  const token = await signToken({ secret: SECRET, user: 'alice', scopes, ttlSeconds: TOKEN_SECONDS, now: Date.now() });
  const client = await openClient(url, token);
  return {
    ...{ url, token, client },
    async [Symbol.asyncDispose]() {
      client.terminate();
      await relay.close();
    },
  };
}

async function warmUp(request: () => Promise<unknown>): Promise<void> {
  for (let time = 0; time < WARM_UP; time++) await request();
}

/**
 * Makes one call. `beforeResult` is called after the command has reached the client and before the client sends its
 * result.
 */
async function callOnce({ url, token, client }: Opened, beforeResult: () => void = () => {}): Promise<void> {
  const command = nextCommand(client);
  const body = JSON.stringify({ params: { page: 1 } });
  const answered = send(`${url}/connections/alice/tab/actions/open`, token, body);
  const command_id = await command;
  await settled();
  beforeResult();
  client.send(`${JSON.stringify({ type: 'result', command_id })}\n{"done":true}`);
  await answered;
}

/** Waits until the relay has finished the work that follows the write of the command. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await setImmediate();
}

async function openClient(url: string, token: string): Promise<WebSocket> {
  const client = new WebSocket(`${url.replace('http', 'ws')}/connect`, ['callboard.v1']);
  await once(client, 'open');
  const hello = { type: 'hello', token, client_id: 'tab', instance_id: 'i1', client_type: 'browser' };
  client.send(`${JSON.stringify(hello)}\n{"actions":[{"name":"open"}]}`);
  await once(client, 'message');
  return client;
}

async function nextCommand(client: WebSocket): Promise<string> {
  for (;;) {
    const [data] = await once(client, 'message');
    const header = JSON.parse(String(data).split('\n')[0] ?? '');
    if (header.type === 'command') return header.command_id;
  }
}

/** Sends JSON and returns the text of the answer. Throws if the answer is a refusal. */
async function send(url: string, token: string, body: string, method = 'POST'): Promise<string> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const response = await fetch(url, { method, headers, body });
  const text = await response.text();
  if (!response.ok || text.includes('"errors"')) throw new Error(text);
  return text;
}

/** Opens an event stream and waits for its first bytes. */
async function listen(url: string, token: string): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const { body } = await fetch(url, { headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream' } });
  const reader = body?.getReader();
  if (!reader) throw new Error('There is no event stream.');
  await reader.read();
  return reader;
}

/** Resolves with what `look` returns at the moment when a socket of this process is about to write all these texts. */
function atWrite<T>(texts: readonly string[], look: () => T): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<T>();
  const own = Socket.prototype.write;
  Socket.prototype.write = function write(this: Socket, chunk: string | Uint8Array, ...rest: never[]): boolean {
    const written = Buffer.from(chunk);
    if (texts.every((text) => written.includes(text))) {
      Socket.prototype.write = own;
      resolve(look());
    }
    return own.call(this, chunk, ...rest);
  };
  return promise;
}

// Finds the files of `src` whose code led from one moment to a later one, through callbacks, promises and ticks.

/**
 * A moment at which code scheduled a callback or resolved a promise: when that was, the id of the async resource in
 * which the code ran, and the files of the code.
 */
type Moment = { readonly at: number; readonly by: number; readonly files: readonly string[] };
type Resource = Moment & { readonly type: string; readonly trigger: number };

const FRAME = /^\s+at (?!async ).*\/src\/([^:]+\.ts):\d+/;

/**
 * Records the causes of what happens in this process until it is disposed. A callback is caused by the code that
 * scheduled it. The continuation of a promise is also caused by the code that resolved the promise. Each cause has the
 * files of its stack, and the async resource in which it ran. That resource has causes of its own.
 */
class CausalChain implements Disposable {
  readonly #resources = new Map<number, Resource>();
  readonly #resolved = new Map<number, Moment>();
  readonly #stackTraceLimit = Error.stackTraceLimit;
  readonly #hook = createHook({
    init: (id, type, trigger) => void this.#resources.set(id, { ...this.#moment(), type, trigger }),
    promiseResolve: (id) => {
      if (!this.#resolved.has(id)) this.#resolved.set(id, this.#moment());
    },
  });
  #clock = 0;

  constructor() {
    Error.stackTraceLimit = Infinity;
    this.#hook.enable();
  }

  /** Records the present moment and returns its number for `since`. */
  mark(): number {
    return this.#clock++;
  }

  /** Returns the files below `src` whose code led from the moment `mark` to this call, in order. */
  since(mark: number): readonly string[] {
    const found: Moment[] = [this.#moment()];
    const seen = new Set<number>();
    const visit = (id: number): void => {
      const resource = this.#resources.get(id);
      if (seen.has(id) || !resource) return;
      seen.add(id);
      const causes = [resource];
      if (resource.type === 'PROMISE') visit(resource.trigger);
      const resolved = resource.type === 'PROMISE' ? this.#resolved.get(resource.trigger) : undefined;
      for (const cause of resolved ? [...causes, resolved] : causes) {
        if (cause.at < mark) continue;
        found.push(cause);
        visit(cause.by);
      }
    };
    visit(executionAsyncId());
    return [...new Set(found.sort((a, b) => a.at - b.at).flatMap(({ files }) => files))];
  }

  [Symbol.dispose](): void {
    this.#hook.disable();
    Error.stackTraceLimit = this.#stackTraceLimit;
  }

  #moment(): Moment {
    const lines = (new Error().stack ?? '').split('\n');
    const files = lines.flatMap((line) => FRAME.exec(line)?.[1] ?? []).reverse();
    return { at: this.#clock++, by: executionAsyncId(), files };
  }
}

if (import.meta.main) {
  const print = (way: string, walk: Walk): void =>
    void process.stdout.write(`${way}: ${walk.length} files\n${walk.join('\n')}\n\n`);
  const { inbound, outbound } = await walkCall();
  print('call, from the request to the socket of the client', inbound);
  print('call, from the result to the response', outbound);
  print('known query, from the request to the response', await walkQuery());
  print('event of a site, from the request to the stream of a viewer', await walkEvent());
  const redis = await startRedis();
  try {
    print('call, from the request to the socket of Redis', await walkAdmission(redis.url));
  } finally {
    await redis.stop();
  }
}
