/**
 * Creates the routes outside GraphQL and REST: health, metrics, OpenAPI, sign-in, pages, and the files of the console
 * and of the client libraries.
 */
import type { Core } from '../core/core.ts';
import { CallboardError } from '../core/errors.ts';
import { thenDo, type MaybePromise } from '../core/maybe-promise.ts';
import type { OpenApiDocument } from '../rest/openapi.ts';
import { PackedText, sendPacked, type PackedFile } from '../web/packed-file.ts';
import { sendText } from '../web/reply.ts';
import { type AgentRoutes, METADATA_PATH, metadataRoute } from './agent-metadata.ts';
import type { BearerAuthenticator } from './authenticator.ts';
import { CLIENT_FILES, createClientFiles } from './built-files.ts';
import { type BuiltinRoute, JSON_TYPE, READING } from './builtin-route.ts';
import { createConsole, isConsole, type ConsoleOptions } from './console-files.ts';
import { type MetricsRouteOptions, createMetricsRoute } from './metrics-route.ts';
import { referencePage } from './reference-page.ts';
import type { RequestInfo } from './request-info.ts';
import { createSignInRoute, isLocal, type SignInWays } from './sign-in.ts';
import { welcomePage } from './welcome-page.ts';

export type BuiltinRoutesOptions = MetricsRouteOptions &
  SignInWays & {
    readonly core: Pick<Core, 'ready' | 'fullShares' | 'nodeId' | 'durability' | 'policyReport'>;
    readonly version: string;
    readonly authenticator: Pick<BearerAuthenticator, 'ready'>;
    /** Creates the OpenAPI document. Called when the document is first requested. */
    readonly openapi: () => Promise<OpenApiDocument>;
    readonly basePath: string;
    /** The folder with the browser builds of the client libraries. */
    readonly clientFiles: URL;
    /** The options of the console for operators. Absent: the console is switched off. */
    readonly operatorConsole?: Omit<ConsoleOptions, 'basePath' | 'mcp'> | null;
    /** Present if the relay serves agents. */
    readonly agents?: AgentRoutes | null;
  };

/**
 * Creates the built-in routes that have a fixed path. Only the route of sign-in changes stored data: it uses up a
 * ticket.
 */
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

/**
 * Returns a function that finds the route of the console for a path; undefined for other paths, and if the console is
 * switched off.
 */
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

/**
 * Returns a function that creates a value at its first call. Once the value exists, later calls return the value
 * itself, not a promise. A failure is not cached.
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
 * Answers that the process runs. A requester on the same machine also learns which relay answers, for example a program
 * that finds its port in use.
 */
function sendHealth(info: RequestInfo, { core, version }: Pick<BuiltinRoutesOptions, 'core' | 'version'>): void {
  const self = isLocal(info) ? { version, node_id: core.nodeId, pid: process.pid } : {};
  sendText(info.response, 200, JSON_TYPE, JSON.stringify({ status: 'ok', ...self }));
}

/**
 * Answers load balancers with a status: 200 while the node accepts new links and commands, otherwise 503. The body of
 * 200 names the shares that are used up. It also says whether records were missing at the start, and whether the latest
 * policy file has a fault and is not used. The body of 503 names the error code, and what an operator must repair if
 * that is known.
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
  // The details of the fault are only for administrators, because this path needs no token.
  const isFaulty = (core.policyReport()?.fault ?? null) !== null;
  const answer = {
    status: 'ready',
    ...(full.length > 0 && { full_shares: full }),
    ...(lost && { store_lost: true }),
    ...(isFaulty && { policy_fault: true }),
  };
  sendText(response, 200, JSON_TYPE, JSON.stringify(answer));
}

function refuseWithoutUpgrade({ response }: RequestInfo): void {
  response.setHeader('upgrade', 'websocket');
  response.setHeader('connection', 'Upgrade');
  const detail = 'This path requires a WebSocket upgrade with the subprotocol callboard.v1.';
  throw new CallboardError('invalid_argument', detail, { status: 426 });
}

/** Rejects with the CallboardError of the first given part that is not ready. */
export async function requireReady(parts: readonly Partial<Pick<Core, 'ready'>>[]): Promise<void> {
  for (const part of parts) await part.ready?.();
}
