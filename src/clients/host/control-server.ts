/** Runs the control server, an HTTP server for this machine only. Through it, local programs host cooperative sites. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { isCode, statusOf, type Code } from '../../protocol/codes.ts';
import { ID, type Check } from '../../protocol/fields.ts';
import { isRecord, readMembers } from '../../protocol/json.ts';
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
import { REQUEST_MEMBERS } from '../link/relay-request.ts';
import { guarded, type ErrorSink } from '../link/callbacks.ts';
import { LinkClosedError } from '../link/link-status.ts';
import { RawJson } from '../link/raw-json.ts';
import { systemClock } from '../link/platform.ts';
import { SiteRefusedError } from '../runtime/ends.ts';
import { siteMembers } from '../runtime/runtime.ts';
import type { Runtime, SiteDefinition } from '../runtime/types.ts';
import { HostError, checkRuntime, publisherOf, type NewSiteEvent, type PublisherOptions } from './publisher.ts';

type ControlSitesOptions = Omit<PublisherOptions, 'runtime' | 'siteId'> & {
  /** The runtime that hosts the sites. Its token needs the scope `host`. */
  readonly runtime: Runtime;
};

export type ControlServerOptions = ControlSitesOptions & {
  /** The bearer token of local applications. No white space. */
  readonly token: string;
  /** The port to listen on; 0 takes a free one. */
  readonly port: number;
  /** The address to listen on. Default `127.0.0.1`. */
  readonly host?: '127.0.0.1' | '::1';
  /** Receives unexpected errors; their requests are answered with `internal`. What it throws is ignored. */
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
 * read. Rejects with the error of `listen`, and with TypeError for a `host` that is not loopback, an invalid token or
 * an invalid runtime.
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
  readonly port: number;
  /** Sends `100 Continue` to a requester that waits for it; otherwise does nothing. */
  readonly sendContinue: () => void;
  readonly signal: AbortSignal;
};

/** Returns the response to a request. Never rejects. */
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
    // Closes the connection, because the rest of an unread body cannot be distinguished from the next request.
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

// Refuses requests to the control server that do not come from an authorized local program.

/** The parts of a request that are checked. */
type RequestHead = Pick<IncomingMessage, 'headers' | 'rawHeaders'> & {
  readonly socket: Pick<Socket, 'remoteAddress'>;
};

/** `port`: the port on which the server listens, which the Host header must name. */
type Rules = { readonly port: number; readonly token: string };

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

// The routes: define a site, remove it, publish an event.

/** One route. The body is read only after the route is known. */
type HostRoute = {
  readonly takesBody: boolean;
  answer(body: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<HostResponse>;
};

/** How long the relay may take to answer a registration or a removal. Milliseconds. */
const REGISTER_MS = 10_000;
const KEPT = 'The change is kept and sent to the relay at the next connection.';

/** Finds the route of a request. Throws ProblemError `not_found`, `method_not_allowed` or `invalid_argument`. */
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
 * Waits until the relay confirms the change. Rejects without a link, and after REGISTER_MS. The runtime keeps the
 * change even then.
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

// Checks the JSON bodies of the control server's routes, member by member.

type Members = Readonly<Record<string, unknown>>;

const TEXT: Check = { expected: 'a string', test: (value) => typeof value === 'string' };
const NAMES: Check = { expected: 'an array of strings', test: isTexts };
const FLAG: Check = { expected: 'true or false', test: (value) => typeof value === 'boolean' };
const OBJECT: Check = { expected: 'an object', test: isRecord };
const ANY: Check = { expected: 'JSON', test: () => true };

const DEFINITION = { title: TEXT, event_names: NAMES, actions: NAMES, capability_profile: OBJECT };
const PROFILE = { action_invocation: FLAG, sharing: FLAG };
const EVENT = { name: TEXT, data: ANY, message_id: TEXT };

/**
 * Reads the definition of a site. Throws ProblemError `invalid_argument`, naming every wrong member. The relay checks
 * the syntax of the names.
 */
function readDefinition(siteId: string, body: Members): SiteDefinition {
  const wrong = faultsOf(DEFINITION, body);
  const profile = isRecord(body['capability_profile']) ? body['capability_profile'] : {};
  refuse([...wrong, ...faultsOf(PROFILE, profile, 'capability_profile.')]);
  const { title, event_names: eventNames, actions } = body;
  const { action_invocation: actionInvocation, sharing } = profile;
  return {
    siteId,
    title: typeof title === 'string' ? title : null,
    eventNames: isTexts(eventNames) ? eventNames : [],
    actions: isTexts(actions) ? actions : [],
    capabilityProfile: { actionInvocation: actionInvocation === true, sharing: sharing === true },
  };
}

/** Reads an event. Throws ProblemError `invalid_argument`, naming every wrong member. */
function readEvent(body: Members): NewSiteEvent {
  const { name, data, message_id: messageId } = body;
  const missing = name === undefined || name === null ? [{ parameter: 'name', detail: 'required' }] : [];
  refuse([...missing, ...faultsOf(EVENT, body)]);
  return { name: String(name), data: data ?? null, ...(typeof messageId === 'string' && { messageId }) };
}

/** Returns the faults of the given members. A member that is null counts as absent. */
function faultsOf(checks: Readonly<Record<string, Check>>, members: Members, prefix = ''): readonly Fault[] {
  return Object.entries(members).flatMap(([name, value]) => {
    const parameter = prefix + name;
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (!check) return [{ parameter, detail: 'unknown member' }];
    return value === null || check.test(value) ? [] : [{ parameter, detail: `expected ${check.expected}` }];
  });
}

type Fault = { readonly parameter: string; readonly detail: string };

function refuse(errors: readonly Fault[]): void {
  if (errors.length === 0) return;
  const detail = errors.map((fault) => `${fault.parameter}: ${fault.detail}`).join('; ');
  throw new ProblemError('invalid_argument', detail, { errors });
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

// Makes the error responses of the control server, as problem documents (RFC 9457).

type HostResponse = {
  readonly status: number;
  /** The object that is sent as JSON: a problem document or an answer. Absent for an answer without a body. */
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
};
type Problem = HostResponse & { readonly body: object };

type ProblemDetails = {
  readonly errors?: readonly Fault[];
  readonly messageId?: string | null;
  readonly retryAfterMs?: number | null;
  readonly headers?: Readonly<Record<string, string>>;
};

/** An error that is thrown to answer a request with a problem document. */
class ProblemError extends Error {
  readonly answer: Problem;

  constructor(code: Code, detail: string, details: ProblemDetails = {}) {
    super(detail);
    this.name = 'Refusal';
    this.answer = problem(code, detail, details);
  }
}

/** Creates a problem document (RFC 9457) of the same form as the relay's. */
function problem(code: Code, detail: string, details: ProblemDetails = {}): Problem {
  const { errors, messageId, retryAfterMs, headers } = details;
  const status = statusOf(code);
  const words = code.replaceAll('_', ' ');
  const title = words.charAt(0).toUpperCase() + words.slice(1);
  const more = { ...(errors && { errors }), ...(messageId != null && { message_id: messageId }) };
  return {
    status,
    body: { type: 'about:blank', title, status, code, detail, ...more },
    headers: {
      ...headers,
      'content-type': 'application/problem+json',
      ...(status === 401 && { 'www-authenticate': 'Bearer' }),
      ...(retryAfterMs != null && { 'retry-after': String(Math.max(1, Math.ceil(retryAfterMs / 1000))) }),
    },
  };
}

/** Returns the problem that the requester receives for an error. Null: the error is a fault of this server. */
function problemOf(error: unknown): Problem | null {
  if (error instanceof ProblemError) return error.answer;
  if (error instanceof LinkClosedError) return problem('runtime_disconnected', error.message);
  if (error instanceof SiteRefusedError) return ofRelay(error.code, error.message);
  if (!(error instanceof HostError)) return null;
  const { code, message, messageId, retryAfterMs } = error;
  return ofRelay(code, message, { messageId, retryAfterMs });
}

/**
 * Returns the problem for a refusal of the relay, with the relay's code. `unauthenticated` becomes
 * `runtime_disconnected`, because it concerns the runtime's token, not the requester's; so does a code without an error
 * status.
 */
function ofRelay(code: string, message: string, details: ProblemDetails = {}): Problem {
  if (isCode(code) && code !== 'unauthenticated' && statusOf(code) >= 400) return problem(code, message, details);
  return problem('runtime_disconnected', `The relay refused it: ${message}`, details);
}

// Reads the JSON body of a request to the control server, within a size limit.

const MAX_BODY_BYTES = 1024 * 1024;

/** The members of a body whose original text is sent on unchanged. */
const PASSED_ON: ReadonlySet<string> = new Set(['data']);
/** The most members that the object in a body may have. */
const MAX_MEMBERS = 100;

/**
 * Reads a body as a JSON object; `{}` without a body. The member `data` becomes a RawJson. Checks the headers first.
 * `sendContinue` is called before the body is read. Throws ProblemError and then leaves the rest of the body unread.
 */
async function readObject(request: IncomingMessage, sendContinue: () => void): Promise<Record<string, unknown>> {
  const { headers } = request;
  const length = Number(headers['content-length'] ?? 0);
  if (length === 0 && headers['transfer-encoding'] === undefined) return {};
  if (length > MAX_BODY_BYTES) throw tooLarge();
  if (!isJson(headers)) throw new ProblemError('unsupported_media_type', 'A body must be application/json in UTF-8.');
  sendContinue();
  return parse(await collect(request));
}

function isJson(headers: IncomingMessage['headers']): boolean {
  const [type = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';');
  const charset = parameters.map((text) => text.trim()).find((text) => text.startsWith('charset='));
  const utf8 = charset === undefined || /^charset="?utf-8"?$/.test(charset);
  return type.trim() === 'application/json' && utf8 && (headers['content-encoding'] ?? 'identity') === 'identity';
}

async function collect(request: IncomingMessage): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let size = 0;
  // `for await` over the request would destroy its socket before the response is sent.
  await new Promise<void>((resolve, reject) => {
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      chunks.push(chunk);
      if (size <= MAX_BODY_BYTES) return;
      request.off('data', take);
      request.pause();
      reject(tooLarge());
    };
    request.on('data', take);
    request.once('end', resolve);
    const broken = (): void =>
      reject(new ProblemError('invalid_argument', 'The body ended before its announced length.'));
    request.once('error', broken);
    request.once('close', broken);
  });
  return Buffer.concat(chunks);
}

function parse(bytes: Uint8Array): Record<string, unknown> {
  try {
    const members = readMembers(new TextDecoder('utf-8', { fatal: true }).decode(bytes), MAX_MEMBERS);
    if (members !== null && typeof members !== 'string')
      return Object.fromEntries(
        [...members].map(([name, json]) => [name, PASSED_ON.has(name) ? new RawJson(json) : JSON.parse(json)]),
      );
  } catch {
    // Not UTF-8 or not JSON: the ProblemError after this block reports both.
  }
  throw new ProblemError('invalid_argument', 'The body must be a JSON object.');
}

function tooLarge(): ProblemError {
  return new ProblemError('payload_too_large', `A body may have at most ${MAX_BODY_BYTES} bytes.`);
}
