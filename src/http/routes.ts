/** The routes outside GraphQL and REST: health, metrics, OpenAPI, pages and client files. */
import { CallboardError } from '../core/errors.ts';
import type { Core } from '../core/core.ts';
import { thenDo, type MaybePromise } from '../core/maybe-promise.ts';
import type { OpenApiDocument } from '../rest/openapi/document.ts';
import { PackedText, sendPacked } from '../web/packed-text.ts';
import type { BearerAuthenticator } from './auth.ts';
import { welcomePage } from './page.ts';
import type { BuiltinRoute } from './builtin-route.ts';
import { createConsole, isConsole, type ConsoleOptions } from './console.ts';
import { createMetricsRoute, type MetricsRouteOptions } from './metrics-route.ts';
import { createSignInRoute, type SignIn } from './sign-in.ts';
import type { TicketDesk } from './sign-in-tickets.ts';
import { CLIENT_FILES, createClientFiles } from './static.ts';
import { requireReady } from './readiness.ts';
import type { RequestInfo } from './request-info.ts';

export type BuiltinRoutesOptions = MetricsRouteOptions & {
  readonly core: Pick<Core, 'ready' | 'fullShares'>;
  readonly authenticator: Pick<BearerAuthenticator, 'ready'>;
  /** Creates the OpenAPI document. Called at the first request for it. */
  readonly openapi: () => Promise<OpenApiDocument>;
  readonly basePath: string;
  /** The directory with the browser builds of the client libraries. */
  readonly clientFiles: URL;
  /** Signs in a page on this machine by a code; absent: pages ask for a token. */
  readonly signIn?: SignIn | undefined;
  /** Signs operators in with tickets. Absent: no ticket is accepted. */
  readonly tickets?: Pick<TicketDesk, 'redeem'> | undefined;
  /** The console for operators. Absent: it is switched off. */
  readonly operatorConsole?: Omit<ConsoleOptions, 'basePath'> | null;
};

const READING = ['GET', 'HEAD'];

/** Creates the built-in routes with a fixed path. Only sign-in changes what is stored: it uses up a ticket. */
export function createBuiltinRoutes(options: BuiltinRoutesOptions): ReadonlyMap<string, BuiltinRoute> {
  const { core, authenticator, openapi, basePath, clientFiles, signIn, tickets, operatorConsole = null } = options;
  const client = createClientFiles(clientFiles);
  const welcome = welcomePage(basePath, operatorConsole !== null);
  const reference = once(async () => {
    const { referencePage } = await import('./reference-page.ts');
    const { html, policy } = referencePage(await openapi(), basePath);
    return { text: new PackedText(html), policy };
  });
  const openapiText = once(async () => new PackedText(JSON.stringify(await openapi())));
  const routes: [string, BuiltinRoute][] = [
    ['/', open((info) => sendPage(info, welcome))],
    ['/healthz', open((info) => send(info, 200, '{"status":"ok"}'))],
    ['/readyz', open((info) => sendReadiness(info, core, authenticator))],
    ['/reference', open((info) => thenDo(reference(), (page) => sendReference(info, page)))],
    ['/openapi.json', open((info) => thenDo(openapiText(), (text) => sendText(info, text, JSON_TYPE)))],
    ['/metrics', createMetricsRoute(options)],
    ['/connect', bearer(refuseWithoutUpgrade)],
    ...(signIn || tickets
      ? [['/sign-in', createSignInRoute({ signIn, tickets })] satisfies [string, BuiltinRoute]]
      : []),
    ...CLIENT_FILES.map((name): [string, BuiltinRoute] => [`/clients/${name}`, open((info) => client(info, name))]),
  ];
  return new Map(routes);
}

/** Finds the route of a path of the console; undefined for other paths, and if the console is switched off. */
export function createConsoleRoute({
  operatorConsole = null,
  basePath,
}: Pick<BuiltinRoutesOptions, 'operatorConsole' | 'basePath'>): (path: string) => BuiltinRoute | undefined {
  const page = operatorConsole && createConsole({ ...operatorConsole, basePath });
  return (path) => (page && isConsole(path) ? page : undefined);
}

function open(handle: BuiltinRoute['handle']): BuiltinRoute {
  return { authentication: 'open', methods: READING, label: 'builtin', handle };
}

function bearer(handle: BuiltinRoute['handle']): BuiltinRoute {
  return { authentication: 'bearer', methods: READING, label: 'builtin', handle };
}

const JSON_TYPE = { 'content-type': 'application/json' };

type Reference = { readonly text: PackedText; readonly policy: string };

function sendReference(info: RequestInfo, { text, policy }: Reference): MaybePromise<void> {
  return sendText(info, text, { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy });
}

function sendText({ request, response }: RequestInfo, text: PackedText, headers: Readonly<Record<string, string>>) {
  return sendPacked(request, response, { text, headers });
}

/** Creates the value at the first call, and returns it from then on. A failure is not kept. */
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

function send({ response }: RequestInfo, status: number, json: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) });
  response.end(json);
}

function sendPage({ response }: RequestInfo, { html, policy }: ReturnType<typeof welcomePage>): void {
  response.setHeader('content-security-policy', policy);
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-length': Buffer.byteLength(html) });
  response.end(html);
}

/**
 * Answers with a status for load balancers: 200 while the node takes new links and commands. The body of 200 names the
 * shares that are used up; the body of 503 names the error code and what an operator must repair, if that is known.
 */
async function sendReadiness(
  info: RequestInfo,
  core: Pick<Core, 'ready' | 'fullShares'>,
  authenticator: Pick<BearerAuthenticator, 'ready'>,
): Promise<void> {
  let full: readonly string[];
  try {
    await requireReady([core, authenticator]);
    full = await core.fullShares();
  } catch (error) {
    if (!(error instanceof CallboardError)) throw error;
    info.response.setHeader('retry-after', '1');
    return send(info, 503, JSON.stringify({ status: 'not_ready', code: error.code, reason: error.details.reason }));
  }
  send(info, 200, JSON.stringify({ status: 'ready', ...(full.length > 0 && { full_shares: full }) }));
}

function refuseWithoutUpgrade({ response }: RequestInfo): void {
  response.setHeader('upgrade', 'websocket');
  response.setHeader('connection', 'Upgrade');
  throw new CallboardError(
    'invalid_argument',
    'This path requires a WebSocket upgrade with the subprotocol callboard.v1.',
    {
      status: 426,
    },
  );
}
