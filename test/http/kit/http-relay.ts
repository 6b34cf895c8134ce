/** Starts a whole relay over HTTP, and sends it requests. */
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import type { Callboard, CallboardOptions, Settings } from '../../../src/callboard.ts';
import { signToken } from '../../../src/http/tokens.ts';
import { createLog } from '../../../src/platform/log.ts';
import { openRelays, type OpenedRelays } from '../../kit/topology.ts';
import { TOKEN_SECONDS } from '../../kit/patience.ts';

export const ADMIN = 'planted-admin-token-of-this-test';
export const SECRET = 'planted secret of more than thirty-two bytes';

export type Answer = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The parsed body; undefined when the text is not JSON. */
  readonly json: Record<string, unknown> | undefined;
};

export type Ask = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body of the request. A list is sent in chunks, without a length. */
  readonly body?: string | Buffer | readonly (string | Buffer)[];
  readonly token?: string | null;
};

export type HttpRelay = AsyncDisposable & {
  /** The relay that is called. With two relays, its `core.links` are those of the other relay. */
  readonly callboard: Callboard;
  /** The address for calls. */
  readonly url: string;
  /** The address for clients. With two relays, it is that of the other relay. */
  readonly linkUrl: string;
  readonly backend: OpenedRelays['backend'];
  /** All lines of the log so far. */
  readonly lines: readonly string[];
  ask(path: string, options?: Ask): Promise<Answer>;
};

/** Starts as many real relays as the run's topology has, on free ports and with the most verbose log. */
export async function startHttpRelay(
  config: Partial<Settings> = {},
  options: Partial<CallboardOptions> = {},
): Promise<HttpRelay> {
  const lines: string[] = [];
  const secrets = [ADMIN, SECRET];
  const log = createLog({ level: 'debug', secrets, sink: { write: (line) => void lines.push(line) } });
  const auth = { adminTokens: [ADMIN], secret: SECRET };
  const { callboard, url, linkUrl, backend } = await openRelays({ log, ...options, config: { auth, ...config } });
  return {
    callboard,
    url,
    linkUrl,
    backend,
    lines,
    ask: (path, requested) => ask(new URL(url).origin + path, requested),
    [Symbol.asyncDispose]: () => callboard.close(),
  };
}

export function tokenOf(user: string, ...scopes: string[]): Promise<string> {
  return signToken({ secret: SECRET, user, scopes, ttlSeconds: TOKEN_SECONDS, now: Date.now() });
}

/** Sends one request with exactly these headers, as an administrator by default. */
export function ask(url: string, { method = 'GET', headers = {}, body, token = ADMIN }: Ask = {}): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
  const whole =
    typeof body === 'string' || Buffer.isBuffer(body) ? { 'content-length': String(Buffer.byteLength(body)) } : {};
  const request = httpRequest(url, { method, agent: false, headers: { ...authorization, ...whole, ...headers } });
  request.on('response', (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('error', reject);
    response.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: parse(text) });
    });
  });
  request.on('error', reject);
  for (const chunk of body === undefined ? [] : [body].flat()) request.write(chunk);
  request.end();
  return promise;
}

export function postJson(value: unknown, more: Ask = {}): Ask {
  const headers = { 'content-type': 'application/json', ...more.headers };
  return { method: 'POST', body: JSON.stringify(value), ...more, headers };
}

/** Sends these bytes and returns everything that was received until the relay closed the connection. */
export function raw(url: string, bytes: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(bytes));
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString('utf8')));
  socket.on('error', reject);
  socket.on('close', () => resolve(text));
  return promise;
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
