/** The MCP endpoint: loads the SDK, passes requests to it as fetch requests, sends its responses. */
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
import type * as Agents from './server.ts';
import { readingText, type Turn } from './turn.ts';
import type { HttpRequest, HttpResponse } from '../web/request.ts';

/** One POST, whose size, media type and JSON syntax have been checked. */
type McpExchange = {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly requester: Principal | null;
  /** The query of its address, as it was written. */
  readonly query: string;
  readonly body: JsonText | undefined;
  readonly reply: HttpReply;
  readonly notes: RequestNotes;
};

export type McpHandler = {
  /** Loads the SDK. Otherwise the first request does, and all other requests wait for it. */
  load(): Promise<void>;
  /**
   * Answers one request. Resolves when the response is complete or its requester has hung up. Throws `unauthenticated`
   * and `forbidden` for requesters that are not users who may call actions, and `invalid_argument` for a wrong choice
   * of tools in the address.
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
  /** Creates a handler whose streams of changes take their events from this bus. */
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
  /** Lets the next request load the package again. */
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
      // It counts until its answer is written, as a request does.
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
      const handler = isOf(parsed, 'subscriptions/listen')
        ? handlerOf(changesOf(exchange, (changed) => servers.watch(session, changed), core.clock))
        : sdk;
      const answer = await handler.fetch(web, parsed === undefined ? {} : { parsedBody: parsed });
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

/** Reads which tools an address chooses. Other parameters are not the relay's. */
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
/** What a step of a list or a search costs: it takes up to ten milliseconds. */
const STEP_COST = 4_000;

/** Reads a body. Its JSON was checked in this turn of the event loop, so that a large one is read in the next. */
async function read(turn: Turn, body: JsonText): Promise<AgentMessage> {
  await readingText(turn, body, () => {});
  return readingText(turn, body, () => readMessage(body));
}

// Streams of changes.

function isOf(message: unknown, method: string): boolean {
  return isRecord(message) && message['method'] === method;
}

/**
 * Returns a bus of one response alone, so that its requester hears of no other user. The response ends when its token
 * expires. `watch` calls its argument after each change of the requester's tools, until cancelled.
 */
function changesOf(
  { response, requester }: McpExchange,
  watch: (changed: () => void) => Cancel,
  clock: Core['clock'],
): Sdk.ServerEventBus {
  return {
    publish() {},
    subscribe(listener) {
      const cancels = [watch(() => listener({ kind: 'tools_list_changed' }))];
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

/** The headers of a request that the SDK reads. */
const PASSED_ON = ['content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'mcp-session-id'];

/** Returns a signal that is aborted if the requester hangs up before it has the whole response. */
function hangUpOf(response: HttpResponse): AbortSignal {
  const hungUp = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) hungUp.abort();
  });
  return hungUp.signal;
}

/** The media types of answers. The SDK refuses old requests that do not name both, whatever it answers with. */
const BOTH_TYPES = 'application/json, text/event-stream';

function webRequest({ headers }: HttpRequest, signal: AbortSignal): Request {
  const passed = PASSED_ON.flatMap((name): [string, string][] => {
    const value = headers[name];
    return typeof value === 'string' ? [[name, value]] : [];
  });
  const init = { method: 'POST', headers: [...passed, ['accept', BOTH_TYPES]] as [string, string][], signal };
  return new Request('http://relay.invalid/mcp', init);
}

/** Whether the requester takes JSON alone: it names it, and no event streams. */
function wantsJson({ headers: { accept = '' } }: HttpRequest): boolean {
  return /application\/(?:json|\*)/i.test(accept) && !/text\/(?:event-stream|\*)|\*\/\*/i.test(accept);
}

/**
 * What an answer gets besides what the SDK wrote. `listed`: once the SDK has written a list of tools, the tools as JSON;
 * null: the answer is no list.
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

/** Puts the tools into the empty list of an answer. The SDK would read and write all of them again for each request. */
function withTools(text: string, tools: string | null): string {
  return tools === null ? text : text.replace(NO_TOOLS, () => `"tools":[${tools}]`);
}

const NO_TOOLS = '"tools":[]';

/** Returns the last message of an event stream: the answer, after all progress. */
function lastMessage(events: string): string {
  return (
    events
      .split('\n')
      .findLast((line) => line.startsWith('data: '))
      ?.slice(6) ?? ''
  );
}

/** Copies a stream to the response, as fast as the requester reads it. */
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
