/**
 * Runs the verb `mcp`: an MCP server on standard input and output, for hosts that start one as a program. It passes
 * each message to the relay's endpoint and prints the answers. The relay does everything else.
 */
import { createInterface } from 'node:readline';
import { createSseParser } from '../../clients/site/sse.ts';
import { trimUrl } from '../../clients/link/relay-request.ts';
import { inOneLine, isRecord } from '../../protocol/json.ts';
import { EXIT, OperatorFailure, messageOf } from '../io.ts';
import type { RunVerb } from '../output.ts';

/** The largest message of an answer, in characters. */
const MESSAGE_CHARS = 4 * 1024 * 1024;
/** The error code of JSON-RPC for a message that was not answered. */
const NOT_ANSWERED = -32_000;
/** The error code of JSON-RPC for a line that is no message. */
const NO_MESSAGE = -32_700;
const VERSION_META = 'io.modelcontextprotocol/protocolVersion';

type Message = Readonly<Record<string, unknown>>;

export const mcp: RunVerb = async ({ io, relay, stopped }) => {
  const { url, token } = await relay.settings();
  // A host shows what a program prints on standard error, so a missing token is complained about before it begins.
  await token();
  const pump = createPump({ url: `${trimUrl(url)}/mcp`, token, print: io.print, stopped });
  const lines = createInterface({ input: process.stdin });
  stopped.addEventListener('abort', () => lines.close(), { once: true });
  for await (const line of lines) pump.take(line);
  await pump.done();
};

type PumpOptions = {
  readonly url: string;
  readonly token: () => Promise<string>;
  readonly print: (text: string) => void;
  readonly stopped: AbortSignal;
};

/** Passes messages on, each as it arrives. A host that cancels a request closes the request to the relay. */
function createPump({ url, token, print, stopped }: PumpOptions) {
  const running = new Map<unknown, AbortController>();
  const pending = new Set<Promise<void>>();
  let version: string | null = null;
  let session: string | null = null;

  /** Prints a message as it arrived, so that numbers keep their digits. */
  const answered = (text: string): void => {
    const message = parsed(text);
    if (!isRecord(message)) return;
    const { result } = message;
    // The answer to `initialize` says which version later messages are of.
    if (isRecord(result) && typeof result['protocolVersion'] === 'string') version = result['protocolVersion'];
    print(`${inOneLine(text)}\n`);
  };

  const post = async (message: Message, body: string, signal: AbortSignal): Promise<void> => {
    const response = await fetch(url, {
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

  const pass = async (message: Message, line: string): Promise<void> => {
    const { id } = message;
    const cancel = new AbortController();
    if (id !== undefined) running.set(id, cancel);
    try {
      await post(message, line, cancel.signal);
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
      if (method === 'notifications/cancelled' && isRecord(params)) running.get(params['requestId'])?.abort();
      const passed = pass(message, line).finally(() => pending.delete(passed));
      pending.add(passed);
    },
    done: async (): Promise<void> => void (await Promise.all(pending)),
  };
}

/** Returns the headers that repeat parts of a message, for proxies. Old messages name no version. */
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

/** Returns a message that says that a request has failed. `id`: null if the request could not be read. */
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

/** Returns the failure for an answer that is a problem document of the relay. */
function problemOf(status: number, { code, detail }: Message): OperatorFailure {
  const words = typeof detail === 'string' ? detail : `HTTP ${status}`;
  return new OperatorFailure(EXIT.failed, String(code), `${typeof code === 'string' ? `${code}: ` : ''}${words}`);
}

function faultOf(error: unknown): string {
  if (error instanceof OperatorFailure) return error.message;
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return `The relay was not reached, or its answer broke off: ${messageOf(cause)}`;
}
