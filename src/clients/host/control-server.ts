/**
 * Runs the control server: an HTTP server for programs on the same machine, through which they host cooperative sites.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { ID } from '../../protocol/fields.ts';
import { guarded, type ErrorSink } from '../link/callbacks.ts';
import {
  ANY as ANY_VALUE,
  BASE_URL,
  COUNT,
  FUNCTION,
  STRING,
  checkMembers,
  wrong,
  type MembersOf,
} from '../link/options.ts';
import { systemClock } from '../link/platform.ts';
import { REQUEST_MEMBERS } from '../link/request-with-retries.ts';
import { siteMembers } from '../runtime/runtime.ts';
import type { Runtime } from '../runtime/types.ts';
import { readObject } from './json-body.ts';
import { ProblemError, problemOf, problem, type HostResponse } from './problems.ts';
import { HostError, checkRuntime, publisherOf, type PublisherOptions } from './publisher.ts';
import { refusalOf } from './request-guard.ts';
import { readDefinition, readEvent } from './site-bodies.ts';

type ControlSitesOptions = Omit<PublisherOptions, 'runtime' | 'siteId'> & {
  /** The runtime that hosts the sites. Its token needs the scope `host`. */
  readonly runtime: Runtime;
};

export type ControlServerOptions = ControlSitesOptions & {
  /** The bearer token that local programs must send. No white space. */
  readonly token: string;
  /** The port to listen on; 0: any free port. */
  readonly port: number;
  /** The address to listen on. Default `127.0.0.1`. */
  readonly host?: '127.0.0.1' | '::1';
  /** Receives unexpected errors. The request is answered with `internal`. What this callback throws is ignored. */
  readonly onError?: ErrorSink;
};

const [, SENDING] = REQUEST_MEMBERS;
const CONTROL_MEMBERS: MembersOf<ControlServerOptions> = [
  { runtime: ANY_VALUE, token: ANY_VALUE, port: COUNT },
  { ...SENDING, url: BASE_URL, host: STRING, onError: FUNCTION },
];

export interface ControlServer extends AsyncDisposable {
  /** The server's base address. */
  readonly url: string;
  readonly port: number;
  /**
   * Stops listening, and aborts the requests in progress. The sites stay registered, because they belong to the
   * runtime.
   */
  close(): Promise<void>;
}

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '::1']);
/**
 * The time limits of requests and connections, in milliseconds. They stop local programs that send slowly or not at
 * all.
 */
const TIMES = { headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 5_000 };

/**
 * Starts an HTTP server for programs on this machine, through which they define cooperative sites and publish events
 * with the given runtime: `PUT` and `DELETE` `/sites/{site_id}`, `POST /sites/{site_id}/events`. One token gives access
 * to all routes. Requests from other machines, from web pages, or without the token are refused before their bodies are
 * read. Rejects with the error of `listen`, and with TypeError if `host` is not a loopback address, or if the token or
 * the runtime is invalid.
 */
export async function startCooperativeSiteControlServer(options: ControlServerOptions): Promise<ControlServer> {
  checkMembers('', options, CONTROL_MEMBERS);
  const { token, host = '127.0.0.1' } = options;
  if (!LOOPBACK.has(host)) throw new TypeError('host: 127.0.0.1 or ::1 expected');
  if (typeof token !== 'string' || !/^\S+$/.test(token)) throw wrong('token', token, 'a string without white space');
  checkRuntime(options.runtime);
  const closing = new AbortController();
  const server = createServer(TIMES);
  const port = await listen(server, options.port, host);
  const serve = (request: IncomingMessage, response: ServerResponse, sendContinue = (): void => {}): void => {
    const disconnected = new AbortController();
    response.once('close', () => disconnected.abort(new DOMException('The requester disconnected.', 'AbortError')));
    const signal = AbortSignal.any([disconnected.signal, closing.signal]);
    const context = { options, port, sendContinue, signal };
    void answerOf(request, context).then((answer) => send(request, response, answer));
  };
  server.on('request', (request, response) => serve(request, response));
  // Without this listener, Node would send `100 Continue` before the request is checked.
  server.on('checkContinue', (request, response) => serve(request, response, () => response.writeContinue()));
  const close = async (): Promise<void> => {
    closing.abort(new ProblemError('draining', 'The server is closing.'));
    await end(server);
  };
  const url = `http://${host === '::1' ? '[::1]' : host}:${port}`;
  return { url, port, close, [Symbol.asyncDispose]: close };
}

type RequestContext = {
  readonly options: ControlServerOptions;
  readonly port: number;
  /** Sends `100 Continue` if the client waits for it. */
  readonly sendContinue: () => void;
  readonly signal: AbortSignal;
};

/** Returns the response to a request, and an error response if anything fails. Never rejects. */
async function answerOf(
  request: IncomingMessage,
  { options, port, sendContinue, signal }: RequestContext,
): Promise<HostResponse> {
  const refusal = refusalOf(request, { port, token: options.token });
  if (refusal) return refusal;
  try {
    const route = findRoute(options, request.method ?? '', request.url ?? '');
    const body = route.takesBody ? await readObject(request, sendContinue) : {};
    return await route.answer(body, signal);
  } catch (error) {
    const known = problemOf(error);
    if (known) return known;
    if (!signal.aborted) guarded(() => options.onError?.(error), undefined);
    return problem('internal', 'The control server failed.');
  }
}

function send(request: IncomingMessage, response: ServerResponse, { status, body, headers }: HostResponse): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...headers,
    // If the body was not read to its end, the connection is closed, because the rest of the body would be taken for
    // the next request.
    ...(!request.complete && { connection: 'close' }),
  });
  response.end(body && JSON.stringify(body));
}

async function listen(server: Server, port: number, host: string): Promise<number> {
  server.listen({ port, host, exclusive: true });
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : port;
}

function end(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  server.closeAllConnections();
  return promise;
}

// The routes: define a site, remove it, publish an event.

/** One route. A request's body is read only after its route was found. */
type HostRoute = {
  readonly takesBody: boolean;
  answer(body: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<HostResponse>;
};

/** How long to wait for the relay's answer to a registration or a removal, in milliseconds. */
const REGISTER_MS = 10_000;
const KEPT = 'The change is kept and sent to the relay at the next connection.';

/** Finds the route of a request. Throws ProblemError with `not_found`, `method_not_allowed` or `invalid_argument`. */
function findRoute(options: ControlSitesOptions, method: string, target: string): HostRoute {
  const [path = '', query] = target.split('?', 2);
  const [, encoded, events] = /^\/sites\/([^/]+)(\/events)?$/.exec(path) ?? [];
  const siteId = encoded === undefined ? null : decode(encoded);
  if (siteId === null || !ID.test(siteId)) throw new ProblemError('not_found', 'There is no resource at this path.');
  const routes = events === undefined ? siteRoutes(options, siteId) : eventRoutes(options, siteId);
  const route = routes.get(method);
  if (!route) {
    const allow = [...routes.keys()].join(', ');
    throw new ProblemError('method_not_allowed', `This path allows only ${allow}.`, { headers: { allow } });
  }
  if (query !== undefined && query !== '')
    throw new ProblemError('invalid_argument', 'This path takes no query parameters.');
  return route;
}

function siteRoutes(options: ControlSitesOptions, siteId: string): ReadonlyMap<string, HostRoute> {
  const { runtime } = options;
  const put: HostRoute = {
    takesBody: true,
    async answer(body) {
      const definition = readDefinition(siteId, body);
      await confirmed(options, runtime.site(definition).registered);
      const { clientId, status } = runtime;
      const owner = status.state === 'connected' ? (status.welcome.user_id ?? null) : null;
      const site = { site_id: siteId, owner, mode: 'cooperative', ...siteMembers(definition), client_id: clientId };
      return { status: 200, body: site };
    },
  };
  const remove: HostRoute = {
    takesBody: false,
    async answer() {
      await confirmed(options, runtime.removeSite(siteId));
      return { status: 204 };
    },
  };
  return new Map([
    ['PUT', put],
    ['DELETE', remove],
  ]);
}

function eventRoutes(options: ControlSitesOptions, siteId: string): ReadonlyMap<string, HostRoute> {
  const publisher = publisherOf({ ...options, siteId });
  const post: HostRoute = {
    takesBody: true,
    async answer(body, signal) {
      const { messageId, refusedBy, ...facts } = await publisher.publish(readEvent(body), { signal });
      return { status: 200, body: { message_id: messageId, ...facts, refused_by: refusedBy } };
    },
  };
  return new Map([['POST', post]]);
}

/**
 * Waits until the relay confirms the change. Rejects if there is no link, and after REGISTER_MS. In both cases the
 * runtime still sends the change later.
 */
async function confirmed({ runtime, clock = systemClock }: ControlSitesOptions, done: Promise<void>): Promise<void> {
  done.catch(() => {});
  const { promise: gone, reject } = Promise.withResolvers<never>();
  const late = new HostError('runtime_disconnected', `The relay did not answer in time. ${KEPT}`);
  const check = (): void => {
    if (runtime.status.state === 'connected') return;
    reject(new HostError('runtime_disconnected', `The runtime is not connected to the relay. ${KEPT}`));
  };
  const cancelTimer = clock.after(REGISTER_MS, () => reject(late));
  const stop = runtime.onStatus(check);
  check();
  try {
    await Promise.race([done, gone]);
  } finally {
    cancelTimer();
    stop();
  }
}

/** Decodes percent-encoded text; null if its encoding is invalid. */
function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
