/**
 * Reads the target, address, origin and body of a request, and writes the access log. Also defines the form of a
 * built-in route. Only this file takes the base path off a request's path.
 */
import { isUtf8 } from 'node:buffer';
import { subjectOf, type Principal } from '../core/auth/principal.ts';
import { CallboardError, fail } from '../core/errors.ts';
import { jsonFault, trustJson, type JsonFault, type JsonText } from '../core/json.ts';
import { ENVELOPE_DEPTH, JSON_DEPTH } from '../core/limits.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock, Log } from '../core/ports.ts';
import { traceContextOf, traceLogFields } from '../core/trace-context.ts';
import { emptyNotes, type RequestNotes } from '../web/request-notes.ts';
import { addressOf, type ProxyTrust } from '../web/forwarded.ts';
import { originRefusal, type OriginRule, type RefusalLog } from '../web/origin.ts';
import type { HttpRequest, HttpResponse, HttpSocket } from '../web/request.ts';

/** `basePath`: what all paths of the relay begin with, without a trailing slash; empty for the root. */
type RequestInfoOptions = { readonly id: string; readonly basePath: string; readonly trustProxy: ProxyTrust };

/** One HTTP request with its parsed target and the peer's address. */
export type RequestInfo = {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  /** The id of the request in the log and in `x-request-id`. The relay never takes it from the request. */
  readonly id: string;
  readonly method: string;
  /**
   * The path below the base path, without query, still percent-encoded. Null: the path is outside the base path, or the
   * target is not a path.
   */
  readonly path: string | null;
  /** The query without the question mark; empty if there is none. */
  readonly query: string;
  /** The peer's address; taken from a proxy's header only with `trustProxy`. */
  readonly address: string;
};

/** Reads the request target, and takes the base path off `request.url`: handlers only know paths without it. */
export function requestInfoOf(request: HttpRequest, response: HttpResponse, options: RequestInfoOptions): RequestInfo {
  const { url = '' } = request;
  const target = targetOf(url);
  const path = target === null ? null : below(options.basePath, target.path);
  const query = target?.query ?? '';
  const asWritten = options.basePath === '' && url.startsWith('/');
  if (path !== null && !asWritten) request.url = query === '' ? path : `${path}?${query}`;
  return {
    request,
    response,
    id: options.id,
    method: request.method ?? 'GET',
    path,
    query,
    address: addressOf(request, options.trustProxy),
  };
}

/** Returns the path of a request below the base path, or null. */
export function pathOf(request: HttpRequest, basePath: string): string | null {
  const target = targetOf(request.url ?? '');
  return target === null ? null : below(basePath, target.path);
}

/** Parses the request target: the origin form, and the absolute form that proxies may send. */
function targetOf(url: string): { readonly path: string; readonly query: string } | null {
  const text = originForm(url);
  if (text === null) return null;
  const cut = text.indexOf('?');
  return cut < 0 ? { path: text, query: '' } : { path: text.slice(0, cut), query: text.slice(cut + 1) };
}

function originForm(url: string): string | null {
  if (url.startsWith('/')) return url;
  const parsed = /^https?:\/\//i.test(url) ? URL.parse(url) : null;
  return parsed && parsed.pathname + parsed.search;
}

/** The prefix of the metadata of a resource. RFC 9728 puts it before the whole path, so also before the base path. */
const RESOURCE_METADATA = '/.well-known/oauth-protected-resource';

function below(basePath: string, path: string): string | null {
  if (basePath === '') return path;
  if (path === basePath) return '/';
  if (path === `${RESOURCE_METADATA}${basePath}/mcp`) return `${RESOURCE_METADATA}/mcp`;
  return path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : null;
}

// Adds CORS headers for allowed origins, and refuses browser requests from all others. It does not authenticate.

const METHODS = 'GET, HEAD, POST, PUT, DELETE';
/** The request headers that pages may send: the relay's own, those of W3C Trace Context, MCP and Apollo's clients. */
const REQUEST_HEADERS = [
  ...['authorization', 'content-type', 'accept', 'last-event-id', 'x-callboard-csrf', 'x-graphql-event-stream-token'],
  ...['traceparent', 'tracestate', 'mcp-protocol-version', 'mcp-session-id', 'mcp-method', 'mcp-name'],
  ...['apollographql-client-name', 'apollographql-client-version'],
  ...['apollo-require-preflight', 'x-apollo-operation-name'],
].join(', ');
const EXPOSED = 'retry-after, www-authenticate, x-request-id, mcp-session-id';

/** Adds CORS headers for allowed origins. Returns true if the request was a preflight, which is then answered. */
export function crossOrigin({ request, response }: RequestInfo, rule: OriginRule): boolean {
  const { origin } = request.headers;
  if (origin === undefined || originRefusal(request, rule) !== null) return false;
  response.setHeader('access-control-allow-origin', origin);
  response.setHeader('access-control-expose-headers', EXPOSED);
  if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return false;
  response.setHeader('access-control-allow-methods', METHODS);
  response.setHeader('access-control-allow-headers', REQUEST_HEADERS);
  response.setHeader('access-control-max-age', '600');
  response.writeHead(204).end();
  return true;
}

/**
 * Refuses browser requests of foreign pages. Other programs send neither `Origin` nor `Sec-Fetch-Site` and pass. A
 * browser's ambient credentials grant nothing, because only the Authorization header counts.
 */
export function requireOwnPage({ request, address }: RequestInfo, { origins, refused }: OwnPageParts): void {
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (origin === undefined) {
    if (site !== 'cross-site') return;
    refused(request, { reason: 'cross_site', address });
    fail('forbidden', 'Cross-site requests are refused.');
  }
  const refusal = originRefusal(request, origins);
  if (refusal === null) return;
  refused(request, { reason: refusal.reason, address });
  fail('forbidden', refusal.detail);
}

type OwnPageParts = { readonly origins: OriginRule; /** Logs the refusal. */ readonly refused: RefusalLog };

// Reads request bodies within a size limit. It does not interpret them.

/**
 * Reads the JSON body of a request and returns what `use` makes of its bytes; undefined if there is no body. Buffers at
 * most `maxBytes`, whatever Content-Length says. Throws `payload_too_large`, `unsupported_media_type` or
 * `invalid_argument`; the rest of the body is then not read, so the connection must be closed after the response. For a
 * body without Content-Length, `unannounced` is called with the size of each chunk as it arrives.
 */
export function readBody<T>(
  request: HttpRequest,
  maxBytes: number,
  { use, unannounced }: BodyOptions<T>,
): MaybePromise<T> {
  if (!mayHaveBody(request)) return use(undefined);
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > 0) requireJson(request);
  if (announced > maxBytes) throw tooLarge(maxBytes);
  return collect(request, maxBytes, announced === 0 ? unannounced : undefined).then((bytes) => {
    if (bytes.length === 0) return use(undefined);
    if (announced === 0) requireJson(request);
    return use(bytes);
  });
}

type BodyOptions<T> = {
  readonly use: (bytes: Buffer | undefined) => MaybePromise<T>;
  readonly unannounced?: ((bytes: number) => void) | undefined;
};

/** The responses of requests that wait for `100 Continue` before they send their bodies. */
const awaited = new WeakMap<HttpRequest, HttpResponse>();

/** Defers the answer to `Expect: 100-continue` until the body is read: a request that is refused sends none. */
export function deferContinue(request: HttpRequest, response: HttpResponse): void {
  awaited.set(request, response);
}

function continueNow(request: HttpRequest): void {
  awaited.get(request)?.writeContinue();
  awaited.delete(request);
}

/** Whether a request may have a body. Without Content-Length and Transfer-Encoding it has none (RFC 9112, 6.3). */
export function mayHaveBody(request: HttpRequest): boolean {
  return isChunked(request) || Number(request.headers['content-length'] ?? 0) > 0;
}

export function isChunked({ headers }: HttpRequest): boolean {
  return headers['transfer-encoding'] !== undefined;
}

function requireJson({ headers }: HttpRequest): void {
  if (headers['content-type'] === 'application/json' && headers['content-encoding'] === undefined) return;
  const [type = '', ...parameters] = (headers['content-type'] ?? '')
    .split(';')
    .map((part) => part.trim().toLowerCase());
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice('charset='.length);
  const json = type === 'application/json' && (charset === undefined || /^"?utf-?8"?$/.test(charset));
  const plain = (headers['content-encoding'] ?? 'identity').toLowerCase() === 'identity';
  if (!json || !plain) {
    throw new CallboardError('unsupported_media_type', 'A body must be application/json in UTF-8, not compressed.');
  }
}

function collect(request: HttpRequest, maxBytes: number, unannounced?: (bytes: number) => void): Promise<Buffer> {
  continueNow(request);
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  const take = (chunk: Buffer): void => {
    size += chunk.length;
    unannounced?.(chunk.length);
    if (size <= maxBytes) return void chunks.push(chunk);
    leave();
    request.pause();
    reject(tooLarge(maxBytes));
  };
  const whole = (): void => {
    leave();
    resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks));
  };
  const broken = (): void =>
    reject(new CallboardError('invalid_argument', 'The body ended before its announced length.'));
  // Every request emits `close`. A listener left in place would then create an unused error, which costs more than the
  // rest of the read. The listeners would also keep the chunks in memory for as long as a stream is open.
  const leave = (): void => void request.off('data', take).off('end', whole).off('close', broken);
  // A request that is cut off emits `close`. It emits `error` too, but only if anything listens to that.
  request.on('data', take).on('end', whole).on('close', broken);
  return promise;
}

/** Decodes the body as JSON text. Throws `invalid_argument` if it is not UTF-8, not JSON, or nested too deeply. */
export function parseBody(bytes: Buffer): JsonText {
  const text = decodeBody(bytes);
  const fault = jsonFault(text, ENVELOPE_DEPTH);
  return fault === null ? trustJson(text) : refuseBody(fault);
}

/** Decodes the body, and does not check whether it is JSON. Throws `invalid_argument` if it is not UTF-8. */
export function decodeBody(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw malformed('The body is not UTF-8.');
  return bytes.toString('utf8');
}

/** A payload in a body may have JSON_DEPTH levels, which is checked where it is taken out. */
const BODY_DEPTH = JSON_DEPTH + ENVELOPE_DEPTH;

/** Throws the `invalid_argument` that says why a body is not accepted as JSON. */
export function refuseBody(fault: JsonFault): never {
  throw malformed(fault === 'depth' ? `The body is nested deeper than ${BODY_DEPTH} levels.` : 'The body is not JSON.');
}

function tooLarge(maxBytes: number): CallboardError {
  return new CallboardError('payload_too_large', `A body may have at most ${maxBytes} bytes.`);
}

function malformed(detail: string): CallboardError {
  return new CallboardError('invalid_argument', detail, { errors: [{ parameter: 'body', detail }] });
}

// The access log: one line per request. It must not contain headers, queries or tokens.

/** The paths that health checks and scrapers poll; their requests are logged at the level debug. */
const PROBES: ReadonlySet<string | null> = new Set(['/healthz', '/readyz', '/metrics']);
/** The greatest number of characters of a path that a line of the log shows. */
const PATH_MAX = 512;

type AccessLogParts = {
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'observe'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Called once, when the response has closed. */
  readonly ended: (socket: HttpSocket, response: HttpResponse) => void;
};

/** What a log line says of a request. `requester` is set by authentication; the handlers fill in the notes. */
export type AccessEntry = RequestNotes & { requester: Principal | null };

/** Writes one access log line, and measures the request by its route, when the response (or its stream) closes. */
export function logAccess(info: RequestInfo, { log, metrics, clock, ended }: AccessLogParts): AccessEntry {
  const access: AccessEntry = { requester: null, ...emptyNotes(info.id) };
  const started = clock.monotonic();
  // Destructured here, because a stream may be open for days and the closure would keep the rest of the request info
  // alive.
  const { id, method, path, address, request, response } = info;
  const { socket } = request;
  access.trace = traceContextOf(request.headers) ?? null;
  response.on('close', () => {
    ended(socket, response);
    const ms = clock.monotonic() - started;
    if (access.route !== null) metrics.observe('http_seconds', ms, access.route);
    const status = response.headersSent ? response.statusCode : null;
    const shared = sharedFields(request, { method, path, status, address }, access);
    const { commandId, trace } = access;
    const fields = {
      id,
      ms: Math.round(ms),
      ...(commandId !== null && { commandId }),
      ...(trace !== null && traceLogFields(trace)),
    };
    if (PROBES.has(path)) log.debug(fields, 'request', shared);
    else log.info(fields, 'request', shared);
  });
  return access;
}

type Answered = Pick<RequestInfo, 'method' | 'path' | 'address'> & { readonly status: number | null };
type SharedFields = Answered & { readonly requester: string | null; readonly outcome?: string; readonly code?: string };
type LineNotes = Pick<AccessEntry, 'requester' | 'outcome' | 'code'>;
type LastLine = { readonly of: Answered; readonly notes: LineNotes; readonly fields: SharedFields };

/** The last line of each socket, which most next lines repeat but for the id and the time. */
const lastLines = new WeakMap<HttpSocket, LastLine>();

/** Returns the fields that describe this request. If it is like the last one of its socket, the object is the same. */
function sharedFields({ socket, url = '' }: HttpRequest, of: Answered, notes: LineNotes): SharedFields {
  const last = lastLines.get(socket);
  if (last && isLike(last, of, notes)) return last.fields;
  const { requester, outcome, code } = notes;
  const fields = {
    ...of,
    path: of.path?.slice(0, PATH_MAX) ?? null,
    requester: requester === null ? null : subjectOf(requester),
    ...(outcome !== null && { outcome }),
    ...(code !== null && { code }),
  };
  // A part of a text keeps the whole text in memory.
  if (url.length <= PATH_MAX) lastLines.set(socket, { of, notes, fields });
  return fields;
}

function isLike({ of, notes }: LastLine, now: Answered, { requester, outcome, code }: LineNotes): boolean {
  const isSame = of.path === now.path && of.method === now.method && of.status === now.status;
  const areSame = notes.requester === requester && notes.outcome === outcome && notes.code === code;
  return isSame && areSame && of.address === now.address;
}

/** Returns the name of a fixed path in the metrics. The start page, the client files and others share one name. */
export function fixedRouteOf(path: string | null): string {
  return path !== null && PROBES.has(path) ? path : 'other';
}

/** A route that neither GraphQL nor REST answers. */
export type BuiltinRoute = {
  /**
   * Who authenticates a request. `open`: nobody, and pages of any origin may call the route. `bearer`: the request
   * handler authenticates. `by-route`: the route itself does.
   */
  readonly authentication: 'open' | 'bearer' | 'by-route';
  readonly methods: readonly string[];
  /** The value of the label `handler` under which its requests are counted: `events` for site events only. */
  readonly label: 'builtin' | 'events';
  /** Answers a request. `access.requester` is set for `bearer`; a route that authenticates sets it. */
  handle(info: RequestInfo, access: AccessEntry): MaybePromise<void>;
};
