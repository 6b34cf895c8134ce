/** Serves the GraphQL handler over HTTP, with a fake core. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { GraphQLSchema } from 'graphql';
import type { Principal } from '../../../src/core/auth/principal.ts';
import { CallboardError } from '../../../src/core/errors.ts';
import type { Log } from '../../../src/core/ports.ts';
import { createSseStreams } from '../../../src/web/sse.ts';
import { createGraphqlHandler, type GraphqlHandlerOptions } from '../../../src/graphql/http/handler.ts';
import type { FakeClock } from '../../kit/clock.ts';
import { admin, testCore, user } from '../../kit/core.ts';
import { createFeeds, smallSchema, type Feeds } from './small-schema.ts';

export type LogLine = { readonly level: string; readonly fields: Record<string, unknown>; readonly message: string };

export type GraphqlServer = AsyncDisposable & {
  readonly url: string;
  readonly clock: FakeClock;
  readonly subscriptions: Feeds;
  readonly lines: LogLine[];
  readonly counts: ReadonlyMap<string, number>;
  /** Shuts down only the GraphQL handler; the HTTP server continues. */
  closeHandler(): Promise<void>;
  /** Posts a query. `requester` is a name in `principals`. */
  ask(query: string, options?: Ask): Promise<Answer>;
};
export type Ask = {
  readonly requester?: string | null;
  readonly variables?: Record<string, unknown>;
  readonly accept?: string;
};
export type Answer = {
  readonly status: number;
  readonly text: string;
  readonly data: Record<string, unknown> | null | undefined;
  readonly errors: { message: string; path?: unknown[]; extensions?: Record<string, unknown> }[];
  readonly code: unknown;
  readonly headers: Headers;
};

/** Returns the principals of the test server by token. Each token is the principal's name. */
export function principals(): Map<string, Principal> {
  return new Map<string, Principal>([
    ['admin', admin],
    ['alice', user('alice')],
    ['bob', user('bob')],
  ]);
}

export async function startGraphqlServer(
  options: Partial<GraphqlHandlerOptions> & { requester?: Map<string, Principal>; schema?: GraphQLSchema } = {},
): Promise<GraphqlServer> {
  const { core, clock, counts, ...life } = await testCore();
  const subscriptions = createFeeds();
  const lines: LogLine[] = [];
  const known = options.requester ?? principals();
  const own = options.schema === undefined;
  const streams = createSseStreams({ clock: core.clock, direct: options.fastPath ?? true });
  const handler = createGraphqlHandler({
    schema: smallSchema,
    core,
    log: recordLog(lines),
    introspection: 'admin',
    streams,
    ...(own && { makeContext: ({ requester, signal }) => ({ requester, signal, subscriptions, seen: new Set() }) }),
    ...options,
  });
  const close = async (): Promise<void> => {
    const closed = handler.close();
    streams.close();
    await closed;
  };
  const server = createServer((req, res) => void front(req, res, { server: handler, known }));
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
  return {
    url,
    clock,
    subscriptions,
    lines,
    counts,
    closeHandler: close,
    ask: (query, requested = {}) => ask(url, query, requested),
    async [Symbol.asyncDispose]() {
      await close();
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
      await life[Symbol.asyncDispose]();
    },
  };
}

async function ask(url: string, query: string, { requester = 'alice', variables, accept }: Ask): Promise<Answer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: accept ?? 'application/graphql-response+json',
      ...(requester !== null && { authorization: `Bearer ${requester}` }),
    },
    body: JSON.stringify({ query, variables }),
  });
  const text = await response.text();
  const { data, errors = [] } = JSON.parse(text);
  return { status: response.status, text, data, errors, code: errors[0]?.extensions?.code, headers: response.headers };
}

type Front = { readonly server: ReturnType<typeof createGraphqlHandler>; readonly known: Map<string, Principal> };

/**
 * Does what the HTTP layer guarantees to the handler: it authenticates the requester, and parses a body of the right
 * content type.
 */
async function front(req: IncomingMessage, res: ServerResponse, { server, known }: Front): Promise<void> {
  try {
    const token = req.headers.authorization?.replace(/^Bearer /, '');
    const requester = token === undefined ? null : known.get(token);
    if (requester === undefined) throw new CallboardError('unauthenticated', 'This token is not known.');
    await server.handle(req, res, { requester, body: req.method === 'POST' ? await readBody(req) : undefined });
  } catch (error) {
    if (!(error instanceof CallboardError)) throw error;
    server.refuse(res, error);
  }
}

async function readBody(req: IncomingMessage): Promise<unknown> {
  if (!/^application\/json\b/.test(req.headers['content-type'] ?? '')) {
    throw new CallboardError('unsupported_media_type', 'Send application/json.');
  }
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk);
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    throw new CallboardError('invalid_argument', 'The body is not JSON.');
  }
}

function recordLog(lines: LogLine[]): Log {
  const at = (level: string) => (fields: Record<string, unknown>, message: string) =>
    void lines.push({ level, fields, message });
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
