/** The routes outside GraphQL and REST: health, metrics, OpenAPI, pages and client files. */
import { requireAdmin, type Principal } from '../core/auth/principal.ts';
import { CallboardError } from '../core/errors.ts';
import type { Core } from '../core/core.ts';
import type { Meter } from '../platform/metrics.ts';
import type { BearerAuthenticator } from './auth.ts';
import { welcomePage } from './page.ts';
import type { BuiltinRoute } from './builtin-route.ts';
import { createSignInRoute, type SignIn } from './sign-in.ts';
import { CLIENT_FILES, createClientFiles } from './static.ts';
import type { RequestInfo } from './request-info.ts';

export type BuiltinRoutesOptions = {
  readonly core: Pick<Core, 'ready'>;
  readonly authenticator: Pick<BearerAuthenticator, 'ready'>;
  readonly meter: Pick<Meter, 'expose'>;
  /** Returns the OpenAPI document. Called at the first request for it. */
  readonly openapi: () => unknown;
  readonly basePath: string;
  /** The directory with the browser builds of the client libraries. */
  readonly clientFiles: URL;
  /** Signs one page on this machine in. Absent: pages ask for a token. */
  readonly signIn?: SignIn | undefined;
};

const READING = ['GET', 'HEAD'];

/** The built-in routes with a fixed path. None of them changes what is stored. */
export function createBuiltinRoutes(options: BuiltinRoutesOptions): ReadonlyMap<string, BuiltinRoute> {
  const { core, authenticator, meter, openapi, basePath, clientFiles, signIn } = options;
  const client = createClientFiles(clientFiles);
  const page = welcomePage(basePath);
  let document: string | null = null;
  const routes: [string, BuiltinRoute][] = [
    ['/', open((info) => sendPage(info, page))],
    ['/healthz', open((info) => send(info, 200, '{"status":"ok"}'))],
    ['/readyz', open((info) => sendReadiness(info, [core, authenticator]))],
    ['/openapi.json', open((info) => send(info, 200, (document ??= JSON.stringify(openapi()))))],
    ['/metrics', bearer((info, { requester }) => sendMetrics(info, requester, meter))],
    ['/connect', bearer(refuseWithoutUpgrade)],
    ...(signIn ? [['/sign-in', createSignInRoute(signIn)] satisfies [string, BuiltinRoute]] : []),
    ...CLIENT_FILES.map((name): [string, BuiltinRoute] => [`/clients/${name}`, open((info) => client(info, name))]),
  ];
  return new Map(routes);
}

function open(handle: BuiltinRoute['handle']): BuiltinRoute {
  return { authentication: 'open', methods: READING, label: 'house', handle };
}

function bearer(handle: BuiltinRoute['handle']): BuiltinRoute {
  return { authentication: 'bearer', methods: READING, label: 'house', handle };
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
 * Load balancers read the status; the body names the error code, the exhausted share and what an operator must mend, if
 * known.
 */
async function sendReadiness(info: RequestInfo, parts: readonly Partial<Pick<Core, 'ready'>>[]): Promise<void> {
  try {
    for (const part of parts) await part.ready?.();
  } catch (error) {
    if (!(error instanceof CallboardError)) throw error;
    info.response.setHeader('retry-after', '1');
    const { share, reason } = error.details;
    return send(info, 503, JSON.stringify({ status: 'not_ready', code: error.code, share, reason }));
  }
  send(info, 200, '{"status":"ready"}');
}

async function sendMetrics(
  info: RequestInfo,
  requester: Principal | null,
  meter: Pick<Meter, 'expose'>,
): Promise<void> {
  requireAdmin(requester);
  const { contentType, text } = await meter.expose();
  info.response.writeHead(200, { 'content-type': contentType, 'content-length': Buffer.byteLength(text) });
  info.response.end(text);
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
