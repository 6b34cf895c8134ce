/** The MCP endpoint: loads the SDK, passes requests to it as fetch requests, and sends its responses. */
import type * as Sdk from '@modelcontextprotocol/server';
import { readToolChoice, type Principal, type ToolChoice, type UserPrincipal } from '../core/auth/principal.ts';
import type { Core } from '../core/core.ts';
import { fail, invalid } from '../core/errors.ts';
import { isRecord, type JsonText } from '../core/json.ts';
import type { Cancel, Log } from '../core/ports.ts';
import type { HttpReply } from '../web/reply.ts';
import type { RequestNotes } from '../web/request-notes.ts';
import { atTime } from '../web/sse.ts';
import { readMessage, type AgentMessage } from './message.ts';
import { AnswerDeliveries } from './call-answer.ts';
import type { ListWatch } from './list-changes.ts';
import type * as Agents from './server.ts';
import { readingText, type Turn } from './turn.ts';
import type { HttpRequest, HttpResponse } from '../web/request.ts';

/** A POST request whose size, media type and JSON syntax have been checked. */
type McpExchange = {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly requester: Principal | null;
  /** The query of the request's URL, not decoded. */
  readonly query: string;
  readonly body: JsonText | undefined;
  readonly reply: HttpReply;
  readonly notes: RequestNotes;
};

export type McpHandler = {
  /** Loads the SDK. If this is not called, the first request of an agent loads it, which delays all other requests. */
  load(): Promise<void>;
  /**
   * Answers one request. Resolves when the response is complete or the requester has hung up. Throws `unauthenticated`
   * or `forbidden` unless the requester is a user that may call actions, and `invalid_argument` if the URL's choice of
   * tools is not valid.
   */
  handle(exchange: McpExchange): Promise<void>;
  /** Ends all waits. No request may be passed to the handler afterwards. */
  close(): void;
};

type McpOptions = { readonly core: Core; readonly log: Log; readonly version: string };

/** What the first request loads: the SDK, and the modules that use it. */
type Loaded = {
  readonly agents: typeof Agents;
  readonly servers: Agents.AgentServers;
  readonly sdk: Sdk.McpHttpHandler;
  /** Creates a handler whose event streams get their events from this bus. */
  readonly handlerOf: (bus: Sdk.ServerEventBus) => Sdk.McpHttpHandler;
};

export function createMcpHandler({ core, log, version }: McpOptions): McpHandler {
  const deliveries = new AnswerDeliveries(core.clock);
  const sessions = new WeakMap<Request, Agents.AgentSession>();
  let loaded: Promise<Loaded> | null = null;
  const onerror = (error: unknown): void => log.debug({ err: error }, 'an MCP request was refused or failed');
  const load = async (): Promise<Loaded> => {
    const [sdk, agents] = await Promise.all([import('@modelcontextprotocol/server'), import('./server.ts')]);
    const servers = agents.createAgentServers({ core, log, version });
    const factory: Sdk.McpServerFactory = ({ requestInfo }) => {
      const session = requestInfo && sessions.get(requestInfo);
      if (!session) throw new Error('a request is served that was not passed on');
      return servers.create(sdk, session);
    };
    const handlerOf = (bus: Sdk.ServerEventBus): Sdk.McpHttpHandler => sdk.createMcpHandler(factory, { onerror, bus });
    return { agents, servers, handlerOf, sdk: sdk.createMcpHandler(factory, { onerror }) };
  };
  /** After a failure, lets the next request load the package again. */
  const loadAgain = (error: unknown): never => {
    loaded = null;
    throw error;
  };
  const whole = (): Promise<Loaded> => (loaded ??= load().catch(loadAgain));
  return {
    async load() {
      await whole();
    },
    async handle(exchange) {
      const { request, response, body, notes } = exchange;
      notes.route = '/mcp';
      const requester = agentOf(exchange.requester);
      const choice = choiceIn(exchange.query);
      const { socket, headers } = request;
      deliveries.another(socket);
      // The request counts in the share `documents` until its answer is written.
      const document = core.documents.open(requester);
      response.once('close', () => document.end());
      const turn: Turn = (work, cost = STEP_COST) => document.step(cost, work);
      const { parsed, args } = body === undefined ? NO_MESSAGE : await read(turn, body);
      const web = webRequest(request, hangUpOf(response));
      const { agents, servers, sdk, handlerOf } = await whole();
      const name = agents.sessionOf(headers['mcp-session-id']);
      const listed: string[] = [];
      const session: Agents.AgentSession = {
        requester,
        choice,
        headers,
        notes,
        args,
        turn,
        session: name,
        runs: deliveries.expect({ socket, response, closingCancels: agents.isModern(parsed) }),
        lists: (tools) => void listed.push(tools),
      };
      sessions.set(web, session);
      const cancelled = agents.cancelledIn(parsed);
      if (cancelled !== undefined)
        await core.rpc.repeats.cancel(requester, { session: name?.id ?? null, requestId: cancelled });
      const changes = isOf(parsed, 'subscriptions/listen')
        ? changesOf(exchange, (changed) => servers.watch(session, changed), core)
        : null;
      const handler = changes ? handlerOf(changes) : sdk;
      const answer = await handler.fetch(web, parsed === undefined ? {} : { parsedBody: parsed });
      // What changes once the agent knows that it listens is a change of the list as it was read before.
      await changes?.known();
      await send(answer, exchange, {
        session: agents.newSessionId(parsed, core.crypto),
        listed: isOf(parsed, 'tools/list') ? listed : null,
      });
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
 * Returns the requester as the caller of its actions. It has the scope `mcp` in addition, so that a policy can
 * distinguish agents. Throws `unauthenticated` or `forbidden` with a message that states what is needed.
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

/** The caller for each principal. There is one object for each, because records refer to the caller. */
const AGENTS = new WeakMap<Principal, UserPrincipal>();

/** Reads the choice of tools from the query of a URL. Ignores other parameters. */
function choiceIn(query: string): ToolChoice | undefined {
  if (query === '') return undefined;
  const given = new URLSearchParams(query);
  const [tools, prefix] = ['tools', 'prefix'].map((name) => {
    const all = given.getAll(name);
    return all.length > 1 ? invalid(name, 'It is given more than once.') : all[0];
  });
  const choice = readToolChoice(tools, prefix);
  if (typeof choice === 'object') return choice;
  const [name = '', fault = ''] = choice.split(': ');
  return invalid(name, fault);
}

const NO_MESSAGE = { parsed: undefined, args: new Map<unknown, JsonText>() };
/** The cost of one step of a list or a search, which takes up to ten milliseconds. */
const STEP_COST = 4_000;

/** Reads a body. Its JSON was checked in this turn of the event loop, so a large body is read in a later turn. */
async function read(turn: Turn, body: JsonText): Promise<AgentMessage> {
  await readingText(turn, body, () => {});
  return readingText(turn, body, () => readMessage(body));
}

// Event streams that notify agents of changed tools.

function isOf(message: unknown, method: string): boolean {
  return isRecord(message) && message['method'] === method;
}

/**
 * The events of one response. `known`: resolves when all its lists were read, with which later ones are compared, and
 * when changes at other nodes are told.
 */
type Changes = Sdk.ServerEventBus & { readonly known: () => Promise<unknown> };

/**
 * Returns an event bus for one response, so that its requester never receives events of another user. The response ends
 * when the requester's token expires. `watch` calls its argument after each change of the requester's tools, until it is
 * ended.
 */
function changesOf(
  { response, requester }: McpExchange,
  watch: (changed: () => void) => ListWatch,
  { clock, subscribed }: Pick<Core, 'clock' | 'subscribed'>,
): Changes {
  const reads: Promise<void>[] = [];
  return {
    known: () => Promise.all([...reads, subscribed()]),
    publish() {},
    subscribe(listener) {
      const { known, end } = watch(() => listener({ kind: 'tools_list_changed' }));
      reads.push(known);
      const cancels: Cancel[] = [end];
      const expiresAt = requester?.expiresAt ?? null;
      if (expiresAt !== null) cancels.push(atTime(clock, expiresAt, () => response.end()));
      const stop = (): void => {
        for (const cancel of cancels.splice(0)) cancel();
      };
      response.once('close', stop);
      return stop;
    },
  };
}

// Passes requests to the SDK and sends its responses.

/** The request headers that the SDK reads. */
const PASSED_ON = ['content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'mcp-session-id'];

/** Returns a signal that is aborted if the requester hangs up before the response is completely written. */
function hangUpOf(response: HttpResponse): AbortSignal {
  const hungUp = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) hungUp.abort();
  });
  return hungUp.signal;
}

/**
 * The value of `accept` that the SDK gets. It refuses requests of older protocol versions that do not accept both
 * types.
 */
const BOTH_TYPES = 'application/json, text/event-stream';

function webRequest({ headers }: HttpRequest, signal: AbortSignal): Request {
  const passed = PASSED_ON.flatMap((name): [string, string][] => {
    const value = headers[name];
    return typeof value === 'string' ? [[name, value]] : [];
  });
  const init = { method: 'POST', headers: [...passed, ['accept', BOTH_TYPES]] as [string, string][], signal };
  return new Request('http://relay.invalid/mcp', init);
}

/** Whether the requester accepts JSON but no event streams. */
function wantsJson({ headers: { accept = '' } }: HttpRequest): boolean {
  return /application\/(?:json|\*)/i.test(accept) && !/text\/(?:event-stream|\*)|\*\/\*/i.test(accept);
}

/**
 * What the relay adds to the SDK's answer. `session`: the id of a new session; null: none. `listed`: if the answer is a
 * list of tools, their JSON, as soon as the SDK has written the answer; null if it is no list.
 */
type Besides = { readonly session: string | null; readonly listed: readonly string[] | null };

async function send(answer: Response, exchange: McpExchange, { session, listed }: Besides): Promise<void> {
  const { request, response, reply } = exchange;
  if (response.destroyed) return;
  const type = answer.headers.get('content-type') ?? '';
  const headers = session !== null && answer.ok ? { 'mcp-session-id': session } : {};
  const isStream = answer.body !== null && type.startsWith('text/event-stream');
  if (answer.body && isStream && listed === null && !wantsJson(request)) {
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
  const written = await answer.text();
  const asJson = isStream && wantsJson(request);
  const text = Buffer.from(withTools(asJson ? lastMessage(written) : written, listed?.[0] ?? null));
  if (response.destroyed || reply.refuses(text.length)) return;
  reply.open();
  const allow = answer.headers.get('allow');
  response.writeHead(answer.status === 499 ? 400 : answer.status, {
    ...(type !== '' && { 'content-type': asJson ? 'application/json' : type }),
    ...(allow !== null && { allow }),
    'content-length': text.length,
    ...headers,
  });
  response.end(text);
}

/**
 * Inserts the tools into an answer with an empty list. The SDK would otherwise parse and serialize all tools for each
 * request.
 */
function withTools(text: string, tools: string | null): string {
  return tools === null ? text : text.replace(NO_TOOLS, () => `"tools":[${tools}]`);
}

const NO_TOOLS = '"tools":[]';

/** Returns the last message of an event stream, which is the answer; progress comes before it. */
function lastMessage(events: string): string {
  return (
    events
      .split('\n')
      .findLast((line) => line.startsWith('data: '))
      ?.slice(6) ?? ''
  );
}

/** Copies a stream to the response, not faster than the requester reads it. */
async function stream(body: ReadableStream<Uint8Array>, response: HttpResponse): Promise<void> {
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
