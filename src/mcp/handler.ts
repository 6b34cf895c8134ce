/**
 * The MCP endpoint: loads the SDK with the first request, passes requests to it as fetch requests, sends its responses,
 * and notes which answers were delivered.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type * as Sdk from '@modelcontextprotocol/server';
import type { Principal, UserPrincipal } from '../core/auth/principal.ts';
import { REPEATABLE_PREFIX } from '../core/calls/repeats.ts';
import type { Core } from '../core/core.ts';
import { fail } from '../core/errors.ts';
import type { CommandKey } from '../core/ids.ts';
import { RawJson, isRecord, readShaped, type JsonText, type ObjectShape } from '../core/json.ts';
import { AGENT_ARRIVED_MS } from '../core/limits.ts';
import type { Cancel, Log } from '../core/ports.ts';
import { requestDone, type HttpReply, type RequestNotes } from '../web/exchange.ts';
import type * as Agents from './server.ts';

/** One POST, whose size, media type and JSON syntax have been checked. */
export type McpExchange = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requester: Principal | null;
  readonly body: JsonText | undefined;
  readonly reply: HttpReply;
  readonly notes: RequestNotes;
};

export type McpHandler = {
  /**
   * Answers one request. Resolves when the response is complete or its requester has hung up. Throws `unauthenticated`
   * and `forbidden` for requesters that are not users who may call actions.
   */
  handle(exchange: McpExchange): Promise<void>;
  /** Ends what waits. Requests must not come afterwards. */
  close(): void;
};

type McpOptions = { readonly core: Core; readonly log: Log; readonly version: string };

/** What the first request loads: the SDK, and what answers by it. */
type Loaded = {
  readonly agents: typeof Agents;
  readonly servers: Agents.AgentServers;
  readonly sdk: Sdk.McpHttpHandler;
};

export function createMcpHandler({ core, log, version }: McpOptions): McpHandler {
  const deliveries = new Deliveries(core, log);
  const sessions = new WeakMap<Request, Agents.AgentSession>();
  let loaded: Promise<Loaded> | null = null;
  const load = async (): Promise<Loaded> => {
    const [sdk, agents] = await Promise.all([import('@modelcontextprotocol/server'), import('./server.ts')]);
    const servers = agents.createAgentServers({ core, log, version });
    const factory: Sdk.McpServerFactory = ({ requestInfo }) => {
      const session = requestInfo && sessions.get(requestInfo);
      if (!session) throw new Error('a request is served that was not passed on');
      return servers.create(sdk, session);
    };
    const onerror = (error: unknown): void => log.debug({ err: error }, 'an MCP request was refused or failed');
    return { agents, servers, sdk: sdk.createMcpHandler(factory, { onerror }) };
  };
  /** Lets the next request load the package again. */
  const loadAgain = (error: unknown): never => {
    loaded = null;
    throw error;
  };
  return {
    async handle(exchange) {
      const { request, response, body, notes } = exchange;
      notes.route = '/mcp';
      const requester = agentOf(exchange.requester);
      const noted = deliveries.another(request.socket);
      // Calls are bounded by the share of waits, as calls over REST are.
      requestDone(response);
      const told: CommandKey[] = [];
      const { headers } = request;
      const web = webRequest(request, hangUpOf(response));
      const { agents, sdk } = await (loaded ??= load().catch(loadAgain));
      sessions.set(web, {
        ...{ requester, headers, notes, args: argumentsIn(body) },
        host: agents.hostOfSession(headers['mcp-session-id']),
        tells: (key) => void told.push(key),
      });
      const parsed: unknown = body === undefined ? undefined : JSON.parse(body);
      // An identical call is another run only if it finds the earlier answer noted as delivered.
      await noted;
      const answer = await sdk.fetch(web, parsed === undefined ? {} : { parsedBody: parsed });
      deliveries.expect(exchange, told);
      await send(answer, exchange, agents.sessionIdOf(parsed));
    },
    close() {
      deliveries.close();
      loaded?.then(
        ({ servers, sdk }) => {
          servers.close();
          return sdk.close();
        },
        () => {},
      );
    },
  };
}

/**
 * Returns the requester as its calls are made. They have the scope `mcp` besides, so that a policy can tell them apart.
 * Throws `unauthenticated` and `forbidden` with what is needed.
 */
function agentOf(requester: Principal | null): UserPrincipal {
  const needed = 'callboard token --mcp --user <user> prints one.';
  if (!requester) return fail('unauthenticated', `A token of a user is needed: ${needed}`);
  if (requester.kind !== 'user')
    return fail('forbidden', `Agents act for a user, so this needs the token of a user: ${needed}`);
  const { scopes } = requester;
  if (!scopes.has('invoke') && !scopes.has('mcp')) return fail('forbidden', 'The scope "invoke" or "mcp" is required.');
  const known = AGENTS.get(requester);
  if (known) return known;
  const agent: UserPrincipal = { ...requester, scopes: new Set([...scopes, 'invoke', 'mcp']) };
  AGENTS.set(requester, agent);
  return agent;
}

/** One agent for each principal, because records keep the caller that is made of it. */
const AGENTS = new WeakMap<Principal, UserPrincipal>();

// Passes requests to the SDK and sends its responses.

/** The headers of a request that the SDK reads. */
const PASSED_ON = ['accept', 'content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'mcp-session-id'];

/** Returns a signal that is aborted if the requester hangs up before it has the whole response. */
function hangUpOf(response: ServerResponse): AbortSignal {
  const hungUp = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) hungUp.abort();
  });
  return hungUp.signal;
}

function webRequest({ headers }: IncomingMessage, signal: AbortSignal): Request {
  const passed = PASSED_ON.flatMap((name): [string, string][] => {
    const value = headers[name];
    return typeof value === 'string' ? [[name, value]] : [];
  });
  return new Request('http://relay.invalid/mcp', { method: 'POST', headers: passed, signal });
}

const CALL_PARAMS: ObjectShape = { members: new Map([['arguments', 'text']]), others: 'skipped' };
const CALL: ObjectShape = {
  members: new Map<string, ObjectShape | 'plain'>([
    ['id', 'plain'],
    ['params', CALL_PARAMS],
  ]),
  others: 'skipped',
};
/** The most members that are read of the messages of a body. */
const CALL_PARTS = 10_000;

/**
 * Returns the original text of the arguments of each call in a body, because numbers lose digits when they are parsed.
 */
function argumentsIn(body: JsonText | undefined): ReadonlyMap<unknown, JsonText> {
  const read = body === undefined ? null : readShaped(body, { item: CALL }, CALL_PARTS);
  const found = new Map<unknown, JsonText>();
  for (const message of [read?.value].flat()) {
    if (!isRecord(message) || !isRecord(message['params'])) continue;
    const { arguments: args } = message['params'];
    if (args instanceof RawJson) found.set(message['id'], args.text);
  }
  return found;
}

async function send(answer: Response, { response, reply }: McpExchange, session: string | null): Promise<void> {
  if (response.destroyed) return;
  const type = answer.headers.get('content-type') ?? '';
  const headers = session !== null && answer.ok ? { 'mcp-session-id': session } : {};
  if (answer.body && type.startsWith('text/event-stream')) {
    reply.open();
    response.writeHead(answer.status, {
      'content-type': type,
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
      ...headers,
    });
    response.flushHeaders();
    return stream(answer.body, response);
  }
  const text = Buffer.from(await answer.arrayBuffer());
  if (response.destroyed || reply.refuses(text.length)) return;
  reply.open();
  const allow = answer.headers.get('allow');
  response.writeHead(answer.status === 499 ? 400 : answer.status, {
    ...(type !== '' && { 'content-type': type }),
    ...(allow !== null && { allow }),
    'content-length': text.length,
    ...headers,
  });
  response.end(text);
}

/** Copies a stream to the response, as fast as the requester reads it. */
async function stream(body: ReadableStream<Uint8Array>, response: ServerResponse): Promise<void> {
  const reader = body.getReader();
  const closed = new Promise<void>((resolve) => response.once('close', resolve));
  for (;;) {
    const { done, value } = await reader.read();
    if (response.destroyed) return void reader.cancel().catch(() => {});
    if (done) return void response.end();
    if (!response.write(value))
      await Promise.race([closed, new Promise<void>((drained) => response.once('drain', drained))]);
  }
}

// Notes which answers were delivered. An answer counts as delivered if the socket took all of it and carried a further
// request afterwards, or was not reset for ten seconds.

/** An answer that the socket took, and that may still turn out to be lost. */
type Delivery = { readonly arrived: () => Promise<void>; readonly forget: Cancel };

class Deliveries {
  readonly #core: Core;
  readonly #log: Log;
  readonly #open = new Map<Socket, Delivery>();

  constructor(core: Core, log: Log) {
    this.#core = core;
    this.#log = log;
  }

  /**
   * Called when a request arrives: the requester has read the answer that the socket took before. Resolves when that is
   * noted. Never rejects.
   */
  async another(socket: Socket): Promise<void> {
    await this.#open.get(socket)?.arrived();
  }

  /** Once the response is delivered, notes it for the commands whose ends it tells. */
  expect({ request: { socket }, response, requester }: McpExchange, told: readonly CommandKey[]): void {
    response.once('finish', () => {
      const keys = told.filter(({ commandId }) => commandId.startsWith(REPEATABLE_PREFIX));
      const delivered = async (): Promise<void> => {
        await Promise.all(keys.map((key) => this.#answered(requester, key)));
      };
      if (keys.length > 0) this.#watch(socket, delivered);
    });
  }

  close(): void {
    for (const { forget } of this.#open.values()) forget();
  }

  #watch(socket: Socket, delivered: () => Promise<void>): void {
    this.#open.get(socket)?.forget();
    const forget = (): void => {
      cancelTimer();
      socket.off('error', forget);
      this.#open.delete(socket);
    };
    const arrived = (): Promise<void> => {
      forget();
      return delivered();
    };
    const cancelTimer = this.#core.clock.after(AGENT_ARRIVED_MS, arrived);
    socket.once('error', forget);
    this.#open.set(socket, { arrived, forget });
  }

  async #answered(requester: Principal | null, key: CommandKey): Promise<void> {
    const agent = requester && AGENTS.get(requester);
    if (!agent) return;
    try {
      await this.#core.rpc.repeats.answered(agent, key);
    } catch (error) {
      // An identical call then gets the same answer again, and does not run.
      this.#log.debug({ err: error }, 'an answer was not noted as delivered');
    }
  }
}
