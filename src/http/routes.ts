/**
 * The routes outside GraphQL and REST: health, metrics, OpenAPI, sign-in, pages, console and client files, and the event
 * stream of a site session as plain server-sent events. Also the OpenAPI descriptions of some of them.
 */
import { requireAdmin, type AdminPrincipal } from '../core/auth/principal.ts';
import type { Core } from '../core/core.ts';
import { CallboardError, fail, invalid, notFound } from '../core/errors.ts';
import { inOneLine } from '../core/json.ts';
import type { LiveEvent } from '../core/live.ts';
import { thenDo, type MaybePromise } from '../core/maybe-promise.ts';
import type { Log } from '../core/ports.ts';
import type { RedeemedTicket, SiteEvent } from '../core/sites/site.ts';
import type { Meter } from '../platform/metrics.ts';
import type { MetricsFormat } from '../platform/prometheus.ts';
import { named, type JsonSchema } from '../rest/forms.ts';
import { decode } from '../rest/inputs.ts';
import type { Described, OpenApiDocument } from '../rest/openapi.ts';
import { problemCodes } from '../rest/problem.ts';
import { PackedText, sendPacked, sendText, weightsOf, type PackedFile } from '../web/exchange.ts';
import { ownOrigins } from '../web/forwarded.ts';
import type { OriginRule } from '../web/origin.ts';
import { createGroups, type EventEncoder, type Groups } from '../web/sse-group.ts';
import { Chunk, eventFrame, type SseStream, type SseStreams } from '../web/sse.ts';
import { bearerOf, type AuthenticateRequest, type BearerAuthenticator, type TokenGuard } from './auth.ts';
import {
  CLIENT_FILES,
  createClientFiles,
  createConsole,
  isConsole,
  referencePage,
  welcomePage,
  type ConsoleOptions,
} from './file-reply.ts';
import type { BuiltinRoute, RequestInfo } from './request-info.ts';
import type { Sockets } from './sockets.ts';
import { createSignInRoute, isLocal, type MetricsToken, type SignInWays } from './tokens.ts';

export type BuiltinRoutesOptions = MetricsRouteOptions &
  SignInWays & {
    readonly core: Pick<Core, 'ready' | 'fullShares' | 'nodeId' | 'durability' | 'policyReport'>;
    readonly version: string;
    readonly authenticator: Pick<BearerAuthenticator, 'ready'>;
    /** Creates the OpenAPI document. Called at the first request for it. */
    readonly openapi: () => Promise<OpenApiDocument>;
    readonly basePath: string;
    /** The directory with the browser builds of the client libraries. */
    readonly clientFiles: URL;
    /** The console for operators. Absent: it is switched off. */
    readonly operatorConsole?: Omit<ConsoleOptions, 'basePath' | 'mcp'> | null;
    /** Present if the relay serves agents. */
    readonly agents?: AgentRoutes | null;
  };

/** What the routes for agents depend on. */
type AgentRoutes = {
  /** The issuers of the tokens that agents fetch themselves; empty: none is configured. */
  readonly issuers: readonly string[];
  readonly origins: OriginRule;
};

const READING = ['GET', 'HEAD'];

/** Creates the built-in routes with a fixed path. Only sign-in changes what is stored: it uses up a ticket. */
export function createBuiltinRoutes(options: BuiltinRoutesOptions): ReadonlyMap<string, BuiltinRoute> {
  const { openapi, basePath, clientFiles, signIn, tickets, operatorConsole = null } = options;
  const client = createClientFiles(clientFiles);
  const welcome = welcomePage(basePath, operatorConsole !== null);
  const reference = once(async () => referencePage(await openapi(), basePath));
  const description = once(async () => ({
    text: new PackedText(JSON.stringify(await openapi())),
    headers: { 'content-type': JSON_TYPE },
  }));
  const routes: [string, BuiltinRoute][] = [
    ['/', file(() => welcome)],
    ['/healthz', open((info) => sendHealth(info, options))],
    ['/readyz', open((info) => sendReadiness(info, options))],
    ['/reference', file(reference)],
    ['/openapi.json', file(description)],
    ['/metrics', createMetricsRoute(options)],
    ['/connect', { ...open(refuseWithoutUpgrade), authentication: 'bearer' }],
    ...(signIn || tickets
      ? [['/sign-in', createSignInRoute({ signIn, tickets })] satisfies [string, BuiltinRoute]]
      : []),
    ...(options.agents && options.agents.issuers.length > 0
      ? [[METADATA_PATH, open(metadataRoute(options.agents, basePath))] satisfies [string, BuiltinRoute]]
      : []),
    ...CLIENT_FILES.map((name): [string, BuiltinRoute] => [`/clients/${name}`, open((info) => client(info, name))]),
  ];
  return new Map(routes);
}

/** Finds the route of a path of the console; undefined for other paths, and if the console is switched off. */
export function createConsoleRoute({
  operatorConsole = null,
  basePath,
  agents = null,
}: Pick<BuiltinRoutesOptions, 'operatorConsole' | 'basePath' | 'agents'>): (path: string) => BuiltinRoute | undefined {
  const page = operatorConsole && open(createConsole({ ...operatorConsole, basePath, mcp: agents !== null }));
  return (path) => (page && isConsole(path) ? page : undefined);
}

function open(handle: BuiltinRoute['handle']): BuiltinRoute {
  return { authentication: 'open', methods: READING, label: 'builtin', handle };
}

function file(load: () => MaybePromise<PackedFile>): BuiltinRoute {
  return open(({ request, response }) => thenDo(load(), (loaded) => sendPacked(request, response, loaded)));
}

const JSON_TYPE = 'application/json';

/**
 * Returns a function that creates the value at its first call. Later calls return the value itself, not a promise, as
 * soon as it exists. A failure is not kept.
 */
function once<T extends object>(make: () => Promise<T>): () => MaybePromise<T> {
  let made: MaybePromise<T> | null = null;
  const begin = async (): Promise<T> => {
    try {
      return (made = await make());
    } catch (error) {
      made = null;
      throw error;
    }
  };
  return () => (made ??= begin());
}

/**
 * Answers that the process runs. Tells a program on this machine which relay answers, for example one that finds its
 * port taken.
 */
function sendHealth(info: RequestInfo, { core, version }: Pick<BuiltinRoutesOptions, 'core' | 'version'>): void {
  const self = isLocal(info) ? { version, node_id: core.nodeId, pid: process.pid } : {};
  sendText(info.response, 200, JSON_TYPE, JSON.stringify({ status: 'ok', ...self }));
}

/**
 * Answers with a status for load balancers: 200 while the node takes new links and commands. The body of 200 names the
 * shares that are used up, and says whether records were missing at the start and whether a changed policy file is not
 * used; the body of 503 names the error code and what an operator must repair, if that is known.
 */
async function sendReadiness(
  { response }: RequestInfo,
  { core, authenticator }: Pick<BuiltinRoutesOptions, 'core' | 'authenticator'>,
): Promise<void> {
  let full: readonly string[];
  try {
    await requireReady([core, authenticator]);
    full = await core.fullShares();
  } catch (error) {
    if (!(error instanceof CallboardError)) throw error;
    response.setHeader('retry-after', '1');
    const answer = { status: 'not_ready', code: error.code, reason: error.details.reason };
    return sendText(response, 503, JSON_TYPE, JSON.stringify(answer));
  }
  const lost = core.durability().away?.lost === true;
  // What is wrong with the policy file is for administrators: this path needs no token.
  const isFaulty = (core.policyReport()?.fault ?? null) !== null;
  const answer = {
    status: 'ready',
    ...(full.length > 0 && { full_shares: full }),
    ...(lost && { store_lost: true }),
    ...(isFaulty && { policy_fault: true }),
  };
  sendText(response, 200, JSON_TYPE, JSON.stringify(answer));
}

// The metadata by which agents find out where to get a token (RFC 9728).

/** The path of the endpoint of agents. */
export const MCP_PATH = '/mcp';
const METADATA_PATH = `/.well-known/oauth-protected-resource${MCP_PATH}`;

/** Returns the address of the metadata, as the requester reaches the relay. */
export function metadataUrl({ request }: RequestInfo, basePath: string, { trustProxy }: OriginRule): string {
  return `${ownOrigins(request, trustProxy)[0] ?? ''}${basePath}${METADATA_PATH}`;
}

/** Returns the value of `www-authenticate` that names the metadata. */
export function challenge(metadata: string): string {
  return `Bearer resource_metadata="${metadata}", scope="mcp"`;
}

function metadataRoute({ issuers, origins }: AgentRoutes, basePath: string): BuiltinRoute['handle'] {
  return ({ request, response }) => {
    const metadata = {
      resource: `${ownOrigins(request, origins.trustProxy)[0] ?? ''}${basePath}${MCP_PATH}`,
      authorization_servers: issuers,
      scopes_supported: ['mcp'],
      bearer_methods_supported: ['header'],
      resource_name: 'callboard',
    };
    sendText(response, 200, JSON_TYPE, JSON.stringify(metadata));
  };
}

function refuseWithoutUpgrade({ response }: RequestInfo): void {
  response.setHeader('upgrade', 'websocket');
  response.setHeader('connection', 'Upgrade');
  const detail = 'This path requires a WebSocket upgrade with the subprotocol callboard.v1.';
  throw new CallboardError('invalid_argument', detail, { status: 426 });
}

// The OpenAPI descriptions of the routes outside REST: health, metrics, GraphQL and the description itself.

const OPEN = { security: [] } as const;
const TEXT_SCHEMA = { type: 'string' } as const;

function object(properties: object, required?: readonly string[]): JsonSchema {
  return { type: 'object', ...(required && { required }), properties };
}

function json(schema: object, example: unknown): JsonSchema {
  return { 'application/json': { schema, example } };
}

const HERE = 'Only for a program on the machine of the relay, and not through a proxy.';
const RUNS = object(
  {
    status: { const: 'ok' },
    version: { ...TEXT_SCHEMA, description: `The version of the relay. ${HERE}` },
    node_id: { ...TEXT_SCHEMA, description: `The id of the node. ${HERE}` },
    pid: { type: 'integer', description: `The process of the relay. ${HERE}` },
  },
  ['status'],
);
const FULL_SHARES = {
  type: 'array',
  items: TEXT_SCHEMA,
  description: 'The shares whose total is used up: users who hold much of one are refused more of it.',
};
const STORE_LOST = {
  const: true,
  description: 'Records were missing when the relay started, so commands that had not ended ended as unknown.',
};
const POLICY_FAULT = {
  const: true,
  description: 'The policy file has changed and is not used: the policy before it stays in use.',
};
const READY = object(
  { status: { const: 'ready' }, full_shares: FULL_SHARES, store_lost: STORE_LOST, policy_fault: POLICY_FAULT },
  ['status'],
);
const NOT_READY = object(
  {
    status: { const: 'not_ready' },
    code: { type: 'string', enum: problemCodes(503) },
    reason: { type: 'string', description: 'What an operator must mend.' },
  },
  ['status', 'code'],
);

const CODE = { type: 'string', description: 'A code of the one table of codes.' };
const GRAPHQL_ERROR = object({ message: TEXT_SCHEMA, extensions: object({ code: CODE }) }, ['message']);
const GRAPHQL_RESULT = named(
  'GraphqlResult',
  object({
    data: { description: 'The result; null or absent if the request failed as a whole.' },
    errors: { type: 'array', items: GRAPHQL_ERROR },
  }),
);
const GRAPHQL_REQUEST = object(
  {
    query: { type: 'string', minLength: 1 },
    operationName: { type: ['string', 'null'] },
    variables: { type: ['object', 'null'] },
    extensions: { type: ['object', 'null'] },
  },
  ['query'],
);
const GRAPHQL_CONTENT = {
  ...json(GRAPHQL_RESULT, { data: { viewer: { kind: 'USER' } } }),
  'application/graphql-response+json': { schema: GRAPHQL_RESULT },
};
const GRAPHQL_REFUSALS = ['400', '401', '403', '406', '413', '415', '429', '500', '503'];

export const BUILTIN_DESCRIPTIONS: readonly Described[] = [
  {
    method: 'GET',
    path: '/healthz',
    ...OPEN,
    operationId: 'Healthz',
    summary: 'Whether the process runs.',
    description: 'Needs no token.',
    responses: {
      '200': {
        description: 'It runs.',
        content: json(RUNS, { status: 'ok' }),
      },
    },
    problems: ['400', '500'],
  },
  {
    method: 'GET',
    path: '/readyz',
    ...OPEN,
    operationId: 'Readyz',
    summary: 'Whether the node accepts new links and commands.',
    description: 'Needs no token.',
    responses: {
      '200': { description: 'It is ready.', content: json(READY, { status: 'ready' }) },
      '503': {
        description: 'It is not ready.',
        headers: { 'Retry-After': { schema: { type: 'integer' } } },
        content: json(NOT_READY, { status: 'not_ready', code: 'draining' }),
      },
    },
    problems: ['400', '500'],
  },
  {
    method: 'GET',
    path: '/metrics',
    operationId: 'Metrics',
    summary: 'Metrics for Prometheus.',
    description: 'Administrators, and the holder of the metrics token.',
    responses: {
      '200': {
        description: 'The text format of Prometheus, or OpenMetrics where the request asks for it.',
        content: { 'text/plain': { schema: TEXT_SCHEMA }, 'application/openmetrics-text': { schema: TEXT_SCHEMA } },
      },
    },
    problems: ['400', '401', '403', '429', '500'],
  },
  {
    method: 'GET',
    path: '/openapi.json',
    ...OPEN,
    operationId: 'OpenApi',
    summary: 'This document.',
    description:
      'Needs no token. It has an `ETag`, and is compressed with Brotli or gzip where the request accepts that.',
    responses: {
      '200': {
        description: 'The document.',
        headers: { ETag: { schema: TEXT_SCHEMA } },
        content: { 'application/json': { schema: { type: 'object' } } },
      },
      '304': { description: 'The `ETag` in `If-None-Match` is still that of the document.' },
    },
    problems: ['400', '500'],
  },
  {
    method: 'POST',
    path: '/graphql',
    operationId: 'GraphQL',
    summary: 'Executes one GraphQL operation.',
    description: 'Everyone with a valid token. Failures are GraphQL errors and not problem documents.',
    requestBody: { required: true, content: json(GRAPHQL_REQUEST, { query: '{ viewer { kind } }' }) },
    responses: {
      '200': { description: 'The result, which may hold errors.', content: GRAPHQL_CONTENT },
      ...Object.fromEntries(
        GRAPHQL_REFUSALS.map((code) => [code, { description: 'Refused as a whole.', content: GRAPHQL_CONTENT }]),
      ),
    },
    problems: [],
  },
];

/** Rejects with the CallboardError of the first part that is not ready. */
export async function requireReady(parts: readonly Partial<Pick<Core, 'ready'>>[]): Promise<void> {
  for (const part of parts) await part.ready?.();
}

type MetricsRouteOptions = {
  readonly meter: Pick<Meter, 'expose'>;
  readonly authenticate: AuthenticateRequest;
  readonly sockets: Pick<Sockets, 'authenticated'>;
  readonly metricsToken: Pick<MetricsToken, 'accepts'>;
};

/** The holder of the metrics token, as far as shares are concerned. */
const SCRAPER: AdminPrincipal = { kind: 'admin', name: 'metrics', expiresAt: null };

/** Creates the route `GET /metrics`, for administrators and for the holder of the metrics token. */
function createMetricsRoute(options: MetricsRouteOptions): BuiltinRoute {
  const { meter, authenticate, sockets, metricsToken } = options;
  return {
    authentication: 'by-route',
    methods: READING,
    label: 'builtin',
    handle(info, access) {
      if (metricsToken.accepts(bearerOf(info.request))) {
        sockets.authenticated(info.request.socket, SCRAPER);
        return sendMetrics(info, meter);
      }
      return thenDo(authenticate(info), (requester) => {
        access.requester = requester;
        requireAdmin(requester);
        return sendMetrics(info, meter);
      });
    },
  };
}

async function sendMetrics({ request, response }: RequestInfo, meter: Pick<Meter, 'expose'>): Promise<void> {
  const { contentType, text } = await meter.expose(formatFor(request.headers.accept));
  response.setHeader('vary', 'accept, origin');
  sendText(response, 200, contentType, text);
}

const OPENMETRICS = 'application/openmetrics-text';
const TEXT = ['text/plain', 'text/*', '*/*'];

/** Returns the format of the answer: OpenMetrics if `accept` prefers it, otherwise Prometheus' text format. */
export function formatFor(accept: string | undefined): MetricsFormat {
  const weights = weightsOf(accept ?? '');
  const wanted = weights.get(OPENMETRICS) ?? 0;
  return wanted > 0 && TEXT.every((type) => (weights.get(type) ?? 0) <= wanted) ? 'openmetrics' : 'text';
}

// The route of a site session's event stream, as plain server-sent events. It must not depend on GraphQL.

export type SiteEventsOptions = {
  readonly core: Pick<Core, 'sites' | 'loop'>;
  readonly log: Log;
  readonly streams: SseStreams;
  readonly authenticate: AuthenticateRequest;
  readonly guard: TokenGuard;
  readonly sockets: Pick<Sockets, 'authenticated'>;
  /** Whether viewers who receive the same events share a group; default true. The bytes are the same either way. */
  readonly fastPath?: boolean;
};

/** The envelope of an event, which is empty: an encoded event is already a complete frame. */
const BARE = { head: '', tail: '' };
const DRAINING = new Chunk(closedFrame('draining'));
const REPLACED = new Chunk(closedFrame('unauthenticated'));
const PATH = /^\/site-sessions\/([^/]+)\/events$/;

/** Whether a path is `/site-sessions/{session_id}/events`. */
export function isSiteEvents(path: string): boolean {
  return path.endsWith('/events') && PATH.test(path);
}

/** Answers `GET /site-sessions/{session_id}/events` with a plain event stream. Authenticates by token or by ticket. */
export function createSiteEvents(options: SiteEventsOptions): BuiltinRoute {
  const groups = createGroups<SiteEvent>({ sharing: options.fastPath ?? true, loop: options.core.loop });
  return {
    authentication: 'by-route',
    methods: ['GET'],
    label: 'events',
    async handle(info, access) {
      const sessionId = sessionOf(info.path ?? '');
      const query = new URLSearchParams(info.query);
      const holder = await holderOf(options, info, { sessionId, ticket: query.get('ticket') });
      access.requester = holder.principal;
      await answer(options, info, { holder, sessionId, names: namesOf(query) }, groups);
    },
  };
}

type EventsRequest = { readonly holder: Holder; readonly sessionId: string; readonly names: readonly string[] | null };
/** Who opens a stream. `occupy` is present only for a ticket: a ticket may have one open stream at a time. */
type Holder = Pick<RedeemedTicket, 'principal'> & Partial<Pick<RedeemedTicket, 'occupy'>>;

/** Returns the session id in the path. Throws `not_found` for malformed percent-encoding. */
function sessionOf(path: string): string {
  return decode(PATH.exec(path)?.[1] ?? '') ?? notFound();
}

/** Authenticates by the token. Without a token, redeems the ticket; an invalid ticket counts like an invalid token. */
async function holderOf(
  { core, authenticate, guard, sockets }: SiteEventsOptions,
  info: RequestInfo,
  { sessionId, ticket }: { readonly sessionId: string; readonly ticket: string | null },
): Promise<Holder> {
  const principal = await authenticate(info);
  if (principal) return { principal };
  if (ticket === null) fail('unauthenticated', 'A bearer token or a ticket is needed.');
  const redeemed = await guard.check(info.address, () => core.sites.redeem(sessionId, ticket));
  sockets.authenticated(info.request.socket, redeemed.principal);
  return redeemed;
}

/** Reads `names=a,b`. Unknown parameters are refused, because a misspelt filter must not deliver more events. */
function namesOf(query: URLSearchParams): readonly string[] | null {
  for (const name of query.keys()) {
    if (name !== 'names' && name !== 'ticket') invalid(name, 'unknown parameter');
    if (query.getAll(name).length > 1) invalid(name, 'given twice');
  }
  const names = query.get('names');
  return names === null ? null : names.split(',');
}

async function answer(
  options: SiteEventsOptions,
  info: RequestInfo,
  { holder, sessionId, names }: EventsRequest,
  groups: Groups<SiteEvent>,
): Promise<void> {
  const { streams, core } = options;
  const place = new Place();
  try {
    // `occupy` comes first: it closes the former stream of the ticket, whose reservation a reconnecting EventSource
    // needs.
    place.leave = holder.occupy?.(() => place.replaced());
    place.release = streams.reserve(holder.principal);
    const shared = (await core.sites.listen(holder.principal, sessionId, names)) ?? notFound();
    const stream = streams.open(info.response, { onClose: () => place.free(), expiresAt: null, lastChunk: DRAINING });
    stream.send(eventFrame({ event: 'callboard.ready', data: JSON.stringify({ session_id: sessionId }) }));
    groups.join({ shared, encoder: () => encoderOf(options.log) }, { stream, id: null, onEnd: nothing });
    place.opened(stream);
  } catch (error) {
    place.free();
    if (!(error instanceof CallboardError) || error.code !== 'session_inactive') throw error;
    // An EventSource does not reconnect after a 204.
    info.response.writeHead(204).end();
  }
}

/** What an open stream occupies: one stream reservation of its holder, and the ticket if a ticket opened it. */
class Place {
  release: (() => void) | undefined;
  leave: (() => void) | undefined;
  #stream: SseStream | null = null;
  #replaced = false;

  opened(stream: SseStream): void {
    this.#stream = stream;
    if (this.#replaced) this.replaced();
  }

  /** Ends this stream, because another one was opened with the same ticket. */
  replaced(): void {
    this.#replaced = true;
    this.#stream?.write(REPLACED);
    this.#stream?.end();
  }

  free(): void {
    this.release?.();
    this.leave?.();
  }
}

/** Does nothing. Shared by all streams, so that none allocates a function of its own. */
function nothing(): void {}

function encoderOf(log: Log): EventEncoder<SiteEvent> {
  return {
    encode: siteFrame,
    envelope: () => BARE,
    last(_, error) {
      const known = error instanceof CallboardError;
      if (!known) log.error({ err: error }, 'a site’s event stream failed');
      return closedFrame(known ? error.code : 'internal');
    },
  };
}

function siteFrame({ event, missed }: LiveEvent<SiteEvent>): string {
  const { name, data, messageId, publishedAt } = event;
  const rest = { message_id: messageId, published_at: new Date(publishedAt).toISOString(), missed };
  const json = `{"name":${JSON.stringify(name)},"data":${data ?? 'null'},${JSON.stringify(rest).slice(1)}`;
  return eventFrame({ event: name, id: messageId, data: inOneLine(json) });
}

function closedFrame(code: string): string {
  return eventFrame({ event: 'callboard.closed', data: JSON.stringify({ code }) });
}
