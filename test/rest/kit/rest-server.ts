/** Serves the REST handler with core behind it, and sends it requests. */
import { once } from 'node:events';
import { createServer, request, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http';
import { expect } from 'vitest';
import type { Principal } from '../../../src/core/auth/principal.ts';
import { checkedJson, type JsonText } from '../../../src/core/json.ts';
import { silentLog } from '../../../src/core/ports.ts';
import { createContext } from '../../../src/graphql/schema/context.ts';
import { createMask } from '../../../src/graphql/execute/mask.ts';
import { createPlans, readDocument } from '../../../src/graphql/execute/executor.ts';
import { restSchema } from '../../../src/graphql/schema/schema.ts';
import { BUILTIN_DESCRIPTIONS } from '../../../src/http/builtin-descriptions.ts';
import { SITE_EVENTS_DESCRIPTION } from '../../../src/http/site-events.ts';
import { createRestHandler, type RestHandler } from '../../../src/rest/serve.ts';
import { admin, user, type TestOptions } from '../../kit/core.ts';
import { openCore, type OpenedCore } from '../../kit/topology-core.ts';
import { conformanceOf } from './conformance.ts';

export type Reply = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The parsed body; null if the answer had none. */
  readonly body: any;
};

export type RestRequest = {
  readonly method?: string;
  /** The path, which is written to the request line unchanged. */
  readonly path: string;
  readonly requester?: string | null;
  readonly body?: unknown;
};

export type RestServer = AsyncDisposable & {
  readonly handler: RestHandler;
  readonly port: number;
  /** The operations and statuses that were answered, such as `GET /users 200`. */
  readonly answered: ReadonlySet<string>;
  ask(request: RestRequest | string): Promise<Reply>;
};

/**
 * Returns the requester with this name: `admin`, `alice` with every scope, `alice:host` with one scope,
 * `grant:<session>:<grant>`, and so on.
 */
export function requesterOf(name: string | null | undefined): Principal | null {
  if (!name) return null;
  if (name === 'admin') return admin;
  const [userId = '', scope = '', grantId] = name.split(':');
  if (grantId) return { kind: 'grant', sessionId: scope, grantId, ownerId: 'alice', expiresAt: Infinity };
  if (scope === 'connect' || scope === 'invoke' || scope === 'host') return user(userId, scope);
  return user(userId);
}

/**
 * Serves the handler with a bare HTTP server, which only does what the HTTP layer must do: it finds the requester,
 * splits path and query, and parses the body. Every answer is checked against its OpenAPI description.
 */
export async function startRestServer(handler: RestHandler, free: readonly string[] = []): Promise<RestServer> {
  const server = createServer((req, res) => {
    void readBody(req).then((body) => {
      const url = req.url ?? '';
      const cut = url.indexOf('?');
      const path = cut < 0 ? url : url.slice(0, cut);
      const query = cut < 0 ? '' : url.slice(cut + 1);
      const requester = requesterOf(req.headers['x-who'] === undefined ? null : String(req.headers['x-who']));
      if (handler.handle(req, res, { requester, path, query, body })) return;
      res.writeHead(404, { 'x-no-route': '1' }).end();
    });
  });
  // Property tests pause between requests for longer than the default.
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = portOf(server);
  const conformance = await conformanceOf(handler, free);
  return {
    handler,
    port,
    answered: conformance.seen,
    async ask(given) {
      const request = typeof given === 'string' ? { path: given } : given;
      const reply = await ask(port, request);
      const { method = 'GET', path } = request;
      const answer = { method, path: path.split('?')[0] ?? '', type: String(reply.headers['content-type']), ...reply };
      if (method !== 'HEAD' && reply.headers['x-no-route'] === undefined) expect(conformance.check(answer)).toEqual([]);
      return reply;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

/** Serves the real REST documents over a real core: one core, or two of one deployment. */
export async function startRestRelay(options: Omit<TestOptions, 'wrap'> = {}): Promise<RestServer & OpenedCore> {
  const cored = await openCore(options);
  const { core, backend, clock, counts } = cored;
  const handler = createRestHandler({
    schema: restSchema,
    plans: createPlans(restSchema),
    mask: createMask({ log: silentLog, crypto: core.crypto }),
    contextOf: ({ requester, signal, reading, asks }) => createContext({ core, requester, signal, reading, asks }),
    read: (request, run) => readDocument(core, request, run),
    besides: [SITE_EVENTS_DESCRIPTION, ...BUILTIN_DESCRIPTIONS],
  });
  const started = await startRestServer(handler);
  return {
    ...started,
    core,
    backend,
    clock,
    counts,
    async [Symbol.asyncDispose]() {
      await started[Symbol.asyncDispose]();
      await cored[Symbol.asyncDispose]();
    },
  };
}

async function readBody(req: IncomingMessage): Promise<JsonText | undefined> {
  let text = '';
  for await (const chunk of req.setEncoding('utf8')) text += String(chunk);
  return text === '' ? undefined : (checkedJson(text) ?? undefined);
}

async function ask(port: number, { method = 'GET', path, requester = 'admin', body }: RestRequest): Promise<Reply> {
  const headers = {
    ...(requester && { 'x-who': requester }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
  };
  const req = request({ host: '127.0.0.1', port, method, path, headers });
  req.end(body === undefined ? undefined : JSON.stringify(body));
  const [res]: IncomingMessage[] = await once(req, 'response');
  if (!res) throw new Error('no response');
  let text = '';
  for await (const chunk of res.setEncoding('utf8')) text += String(chunk);
  const json = String(res.headers['content-type']).includes('json') && text !== '';
  return { status: res.statusCode ?? 0, headers: res.headers, text, body: json ? JSON.parse(text) : null };
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address ? address.port : 0;
}
