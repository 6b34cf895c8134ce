/** Runs the control server, an HTTP server for this machine only. Through it, local programs host cooperative sites. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { guarded, type ErrorSink } from '../link/link.ts';
import { findRoute, type ControlSitesOptions } from './host-sites.ts';
import { ProblemError, problem, problemOf, readObject, type HostResponse, type Problem } from './publisher.ts';

export type ControlServerOptions = ControlSitesOptions & {
  /** The bearer token of local applications. No white space. */
  readonly token: string;
  /** The port to listen on; 0 takes a free one. */
  readonly port: number;
  /** The address to listen on. Default `127.0.0.1`. */
  readonly host?: '127.0.0.1' | '::1';
  /** Receives unexpected errors; their requests are answered with `internal`. */
  readonly onError?: ErrorSink;
};

export interface ControlServer extends AsyncDisposable {
  /** The server's base address. */
  readonly url: string;
  readonly port: number;
  /** Stops listening and ends running requests. The sites stay registered, because they belong to the runtime. */
  close(): Promise<void>;
}

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '::1']);
/**
 * The time limits of requests and connections, in milliseconds. They stop local programs that send slowly or send
 * nothing.
 */
const TIMES = { headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 5_000 };

/**
 * Starts an HTTP server for programs on this machine. Through it, they define cooperative sites and publish events with
 * the given runtime: `PUT` and `DELETE` `/sites/{site_id}`, `POST /sites/{site_id}/events`. The token gives access to
 * all routes. Requests from other machines, from web pages or without the token are refused before their bodies are
 * read. Rejects with the error of `listen`, and with TypeError for a `host` that is not loopback or an invalid token.
 */
export async function startCooperativeSiteControlServer(options: ControlServerOptions): Promise<ControlServer> {
  const { token, host = '127.0.0.1' } = options;
  if (!LOOPBACK.has(host)) throw new TypeError('host: 127.0.0.1 or ::1 expected');
  if (!/^\S+$/.test(token)) throw new TypeError('token: a string without white space expected');
  const closing = new AbortController();
  const server = createServer(TIMES);
  const port = await listen(server, options.port, host);
  const serve = (request: IncomingMessage, response: ServerResponse, sendContinue = (): void => {}): void => {
    const disconnected = new AbortController();
    response.once('close', () => disconnected.abort(new DOMException('The requester disconnected.', 'AbortError')));
    const signal = AbortSignal.any([disconnected.signal, closing.signal]);
    const context = { options, rules: { port, token }, sendContinue, signal };
    void answerOf(request, context).then((answer) => send({ request, response }, answer));
  };
  server.on('request', (request, response) => serve(request, response));
  // Without this listener, Node answers `Expect: 100-continue` itself, before the request is checked.
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
  readonly rules: Rules;
  /** Sends `100 Continue` to a requester that waits for it; otherwise does nothing. */
  readonly sendContinue: () => void;
  readonly signal: AbortSignal;
};

/** Returns the response to a request. Never rejects. */
async function answerOf(
  request: IncomingMessage,
  { options, rules, sendContinue, signal }: RequestContext,
): Promise<HostResponse> {
  const refusal = refusalOf(request, rules);
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

type Exchange = { readonly request: IncomingMessage; readonly response: ServerResponse };

function send({ request, response }: Exchange, { status, body, headers }: HostResponse): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...headers,
    // Closes the connection, because the rest of an unread body cannot be distinguished from the next request.
    ...(!request.complete && { connection: 'close' }),
  });
  response.end(body && JSON.stringify(body));
}

function listen(server: Server, port: number, host: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.once('error', reject);
  server.listen({ port, host, exclusive: true }, () => {
    const address = server.address();
    server.off('error', reject);
    resolve(typeof address === 'object' && address !== null ? address.port : port);
  });
  return promise;
}

function end(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  server.closeAllConnections();
  return promise;
}

// Refuses requests to the control server that do not come from an authorized local program.

/** The parts of a request that are checked. */
type RequestHead = Pick<IncomingMessage, 'headers' | 'rawHeaders'> & {
  readonly socket: Pick<Socket, 'remoteAddress'>;
};

type Rules = {
  /** The port on which the server listens. The Host header must name it. */
  readonly port: number;
  readonly token: string;
};

/**
 * Checks a request by its peer address and headers, before its body is read. Returns the refusal, or null when the
 * request is accepted. The first three checks keep other machines and web pages out. A page whose name was made to
 * resolve to this machine (DNS rebinding) still sends its own name as Host. Browsers send Origin with every request
 * that can change state. Forwarded headers are ignored.
 */
export function refusalOf(request: RequestHead, { port, token }: Rules): Problem | null {
  if (!isLoopback(request.socket.remoteAddress)) {
    return problem('forbidden', 'Only programs on this machine may send requests.');
  }
  if (!namesLoopback(request, port)) return problem('forbidden', 'The Host header does not name this server.');
  if (request.headers.origin !== undefined) return problem('forbidden', 'Web pages may not send requests.');
  if (!bears(request, token)) return problem('unauthenticated', 'The bearer token is missing or wrong.');
  return null;
}

function isLoopback(address: string | undefined): boolean {
  return address === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/i.test(address ?? '');
}

/**
 * Whether the request has exactly one Host header, which names this machine and the server's port. Reads the raw
 * headers, because `headers` contains only the first of several Host headers.
 */
function namesLoopback({ rawHeaders }: RequestHead, port: number): boolean {
  const hosts = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'host');
  const [host = ''] = hosts;
  const names = ['127.0.0.1', '[::1]', 'localhost'];
  const known = names.some((name) => host.toLowerCase() === `${name}:${port}`);
  const plain = port === 80 && names.includes(host.toLowerCase());
  return hosts.length === 1 && (known || plain);
}

/** Whether the request bears the token. Compares digests, which have equal lengths, in constant time. */
function bears({ headers }: RequestHead, token: string): boolean {
  const [, given = ''] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
  return timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
