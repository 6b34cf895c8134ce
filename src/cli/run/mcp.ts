/**
 * Runs the verb `mcp`: an MCP server on standard input and output that passes all messages to the relay's endpoint
 * `/mcp`. While the relay cannot be reached, messages wait. Only a host's first message is answered here after a while,
 * because hosts give up servers that do not answer.
 */
import { createInterface } from 'node:readline';
import { createSseParser } from '../../clients/site/sse.ts';
import { backoffMs } from '../../clients/link/reconnect.ts';
import { elapsed, sleep, type Clock } from '../../clients/link/platform.ts';
import { trimUrl } from '../../clients/link/request-with-retries.ts';
import { readToolChoice } from '../../core/auth/principal.ts';
import { inOneLine, isRecord } from '../../protocol/json.ts';
import { VERSION } from '../../version.ts';
import { EXIT, OperatorFailure, usageFailure } from '../exit-codes.ts';
import { messageOf } from '../io.ts';
import type { RunVerb } from '../verb.ts';
import { withinTime } from '../relay.ts';

/** The longest message in an answer, in characters. */
const MESSAGE_CHARS = 4 * 1024 * 1024;
/** The JSON-RPC error code for a message that got no answer. */
const NOT_ANSWERED = -32_000;
/** The JSON-RPC error code for a line that is not a message. */
const NO_MESSAGE = -32_700;
const VERSION_META = 'io.modelcontextprotocol/protocolVersion';
const INFO_META = 'io.modelcontextprotocol/serverInfo';

/**
 * How long a message waits for a relay that cannot be reached, in milliseconds, unless its call has a time limit of its
 * own.
 */
const AWAY_MS = 30_000;
/** The longest such wait, in milliseconds. It is shorter than common hosts wait. */
const AWAY_MAX_MS = 45_000;
/** How long a host's first message waits for the relay before it is answered here, in milliseconds. */
const BEGIN_MS = 3_000;
const PAUSE = { baseMs: 200, capMs: 2_000, random: () => 1 };
/** The error codes of connections over which nothing was sent. */
const UNREACHED: ReadonlySet<unknown> = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'],
]);
/**
 * The protocol versions with a handshake that the relay supports, newest first, and the version without one (MODERN).
 */
const HANDSHAKES = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'];
const MODERN = '2026-07-28';

type Message = Readonly<Record<string, unknown>>;

export const mcp: RunVerb = async ({ io, clock, relay, flags, stopped }) => {
  const { tools, prefix } = flags;
  const choice = readToolChoice(tools, prefix);
  if (typeof choice === 'string') throw usageFailure(`--${choice}`);
  const { url, token } = await relay.settings();
  // The token is checked first, so that an error about it is printed before the host begins. Hosts show what a program
  // prints to standard error.
  await token();
  const query = new URLSearchParams({ ...(tools !== undefined && { tools }), ...(prefix !== undefined && { prefix }) });
  const at = `${trimUrl(url)}/mcp${query.size > 0 ? `?${query}` : ''}`;
  const pump = createPump({ url: at, token, clock, print: io.print, stopped });
  const lines = createInterface({ input: process.stdin });
  stopped.addEventListener('abort', () => lines.close(), { once: true });
  for await (const line of lines) pump.take(line);
  await pump.done();
};

type PumpOptions = {
  readonly url: string;
  readonly token: () => Promise<string>;
  readonly clock: Clock;
  readonly print: (text: string) => void;
  readonly stopped: AbortSignal;
};

/**
 * Creates the function that passes messages to the relay, each as it arrives. If the host cancels a request, its HTTP
 * request to the relay is closed.
 */
export function createPump({ url, token, clock, print, stopped }: PumpOptions) {
  const send = withinTime(clock);
  const running = new Map<unknown, AbortController>();
  const pending = new Set<Promise<void>>();
  let version: string | null = null;
  let session: string | null = null;
  /**
   * The handshake that was answered here. The relay must get it before any other message, because it begins the
   * session.
   */
  let owed: string | null = null;
  let paying: Promise<void> | null = null;

  /** Prints a message with its original text, so that numbers keep their digits. */
  const answered = (text: string): void => {
    const message = parsed(text);
    if (!isRecord(message)) return;
    const { result } = message;
    // The answer to `initialize` contains the protocol version of all later messages.
    if (isRecord(result) && typeof result['protocolVersion'] === 'string') version = result['protocolVersion'];
    print(`${inOneLine(text)}\n`);
  };

  const post = async (message: Message, body: string, { signal, answered }: Posting): Promise<void> => {
    const response = await send(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${await token()}`,
        ...headersOf(message, version),
        ...(session !== null && { 'mcp-session-id': session }),
      },
      body,
      signal: AbortSignal.any([signal, stopped]),
    });
    session = response.headers.get('mcp-session-id') ?? session;
    const type = response.headers.get('content-type') ?? '';
    if (response.body && type.startsWith('text/event-stream')) return printEvents(response.body, answered);
    const text = await response.text();
    if (text === '') return;
    const answer: unknown = JSON.parse(text);
    if (isRecord(answer) && answer['jsonrpc'] !== '2.0') throw problemOf(response.status, answer);
    answered(text);
  };

  /** Calls `reach` again while the relay cannot be reached, for at most `withinMs`. */
  const reaching = async (withinMs: number, signal: AbortSignal, reach: () => Promise<void>): Promise<void> => {
    const end = elapsed(clock) + withinMs;
    for (let attempt = 0; ; attempt++) {
      try {
        return await reach();
      } catch (error) {
        const left = end - elapsed(clock);
        if (left <= 0 || !isUnreached(error)) throw error;
        await sleep(clock, Math.min(left, backoffMs(attempt, PAUSE)), AbortSignal.any([signal, stopped]));
      }
    }
  };

  /** Sends the relay the handshake that was answered here. All messages that wait for this share one request. */
  const pay = (line: string): Promise<void> => {
    const message = parsed(line);
    paying ??= post(isRecord(message) ? message : {}, line, { signal: stopped, answered: () => {} })
      .then(() => void (owed = null))
      .finally(() => void (paying = null));
    return paying;
  };

  const reachRelay = (message: Message, line: string, signal: AbortSignal): Promise<void> => {
    const begins = beginning(message);
    return reaching(begins === null ? patienceOf(message) : BEGIN_MS, signal, async () => {
      if (owed !== null && begins === null) await pay(owed);
      await post(message, line, { signal, answered });
    }).catch((error: unknown) => {
      if (begins === null || !isUnreached(error)) throw error;
      if (message['method'] === 'initialize') owed = line;
      answered(JSON.stringify({ jsonrpc: '2.0', id: message['id'], result: begins }));
    });
  };

  const pass = async (message: Message, line: string): Promise<void> => {
    const { id } = message;
    const cancel = new AbortController();
    if (id !== undefined) running.set(id, cancel);
    try {
      await reachRelay(message, line, cancel.signal);
    } catch (error) {
      if (cancel.signal.aborted || id === undefined || !('method' in message)) return;
      answered(failed(id, NOT_ANSWERED, faultOf(error)));
    } finally {
      running.delete(id);
    }
  };

  return {
    take(line: string): void {
      const message = parsed(line);
      if (!isRecord(message)) {
        if (line.trim() !== '') answered(failed(null, NO_MESSAGE, 'Each line must be one JSON-RPC message.'));
        return;
      }
      const { method, params } = message;
      const cancelled = method === 'notifications/cancelled' && isRecord(params) ? params['requestId'] : undefined;
      // The relay gets the cancellation before the request is closed, because a closed request alone could be a network
      // failure.
      const passed = pass(message, line)
        .then(() => running.get(cancelled)?.abort())
        .finally(() => pending.delete(passed));
      pending.add(passed);
    },
    done: async (): Promise<void> => void (await Promise.all(pending)),
  };
}

type Posting = { readonly signal: AbortSignal; readonly answered: (text: string) => void };

/** Returns the answer to a host's first message while the relay cannot be reached; null for any other message. */
function beginning({ method, params }: Message): object | null {
  const capabilities = { tools: { listChanged: true } };
  const serverInfo = { name: 'callboard', version: VERSION };
  if (method === 'server/discover') {
    const kept = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
    return { supportedVersions: [MODERN], capabilities, ...kept, _meta: { [INFO_META]: serverInfo } };
  }
  if (method !== 'initialize') return null;
  const asked = isRecord(params) ? params['protocolVersion'] : undefined;
  return { protocolVersion: HANDSHAKES.find((one) => one === asked) ?? HANDSHAKES[0], capabilities, serverInfo };
}

/** Returns how long a message waits for the relay. A call waits no longer than its own time limit. */
function patienceOf({ params }: Message): number {
  const args = isRecord(params) ? params['arguments'] : undefined;
  const given = isRecord(args) ? (args['callboard_respond_within_ms'] ?? args['respond_within_ms']) : undefined;
  return typeof given === 'number' && given > 0 ? Math.min(given, AWAY_MAX_MS) : AWAY_MS;
}

/** Whether a request failed before any of it was sent, so that the relay has done nothing. */
function isUnreached(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : null;
  return isRecord(cause) && UNREACHED.has(cause['code']);
}

/**
 * Returns the headers that repeat parts of a message, which proxies may use. Messages of older versions do not contain
 * the version.
 */
function headersOf({ method, params }: Message, version: string | null): Record<string, string> {
  const { _meta: meta, name, uri } = isRecord(params) ? params : {};
  const own = isRecord(meta) ? meta[VERSION_META] : undefined;
  if (typeof own !== 'string') return version === null ? {} : { 'mcp-protocol-version': version };
  const subject = name ?? uri;
  return {
    'mcp-protocol-version': own,
    ...(typeof method === 'string' && { 'mcp-method': method }),
    ...(typeof subject === 'string' && { 'mcp-name': subject }),
  };
}

async function printEvents(body: ReadableStream<Uint8Array>, answered: (text: string) => void): Promise<void> {
  const parser = createSseParser(MESSAGE_CHARS);
  for await (const chunk of body) for (const { data } of parser.push(chunk)) answered(data);
}

/** Returns a message that says that a request failed. `id`: null if the request could not be parsed. */
function failed(id: unknown, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Makes the error for an answer that is a problem document of the relay. */
function problemOf(status: number, { code, detail }: Message): OperatorFailure {
  const words = typeof detail === 'string' ? detail : `HTTP ${status}`;
  return new OperatorFailure(EXIT.failed, String(code), `${typeof code === 'string' ? `${code}: ` : ''}${words}`);
}

function faultOf(error: unknown): string {
  if (error instanceof OperatorFailure) return error.message;
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (isUnreached(error)) return `The relay was not reached, and nothing ran. It was waited for: ${messageOf(cause)}`;
  return `The relay was not reached, or its answer broke off: ${messageOf(cause)}`;
}
