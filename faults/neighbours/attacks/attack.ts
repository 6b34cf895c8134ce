/** Defines the type of an attack by a hostile user, and the functions that all attacks use. */
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { json as jsonIn } from 'node:stream/consumers';
import { WebSocket } from 'ws';
import { openBareLink } from '../../lib/link.ts';
import { freshToken, HOSTILE, linkUrl, relayUrl, type Site } from '../site.ts';
import type { Mode } from '../verdict.ts';

/**
 * The context of an attack. The attack runs until `signal` is aborted, counts its operations by name, and holds its
 * resources until its process ends.
 */
export type AttackContext = {
  readonly site: Site;
  readonly signal: AbortSignal;
  count(name: string, by?: number): void;
};

export type Attack = {
  readonly name: string;
  readonly says: string;
  /**
   * Stores the data that the attack needs, before the honest user is measured during the attack. It may take a minute
   * at most.
   */
  readonly prepare?: (context: AttackContext) => Promise<void>;
  readonly run: (context: AttackContext) => Promise<void>;
  /**
   * The modes in which the store refuses all operations of the attack, so that the attack would prove nothing. Absent:
   * none.
   */
  readonly notIn?: readonly Mode[];
  /** The limit of open files with which each relay starts, for attacks that use up all file descriptors. */
  readonly descriptors?: number;
  /** Settings of the relays that differ from the defaults, as environment variables. */
  readonly env?: Readonly<Record<string, string>>;
};

/** Repeats `act` in this many parallel loops until the attack is over. Failures are counted, and the loops go on. */
export async function inLanes(
  { signal, count }: AttackContext,
  lanes: number,
  act: (n: number) => Promise<void>,
): Promise<void> {
  let n = 0;
  const lane = async (): Promise<void> => {
    while (!signal.aborted) {
      await act(n++).catch(async () => {
        count('failed');
        await pause(20);
      });
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

export function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}

/** Waits until the attack is over. The attack's resources stay held until then. */
export function held({ signal }: AttackContext): Promise<void> {
  return new Promise((done) => (signal.aborted ? done() : signal.addEventListener('abort', () => done())));
}

// Opens links for attacks, and floods them with frames.

type HostileHello = {
  readonly clientId?: string;
  readonly payload?: string;
  readonly token?: string;
};

/**
 * Opens a link of the hostile user to the relay with number n, without the client library. Rejects if the relay refuses
 * the link.
 */
export async function openLink(site: Site, n: number, hello: HostileHello = {}): Promise<WebSocket> {
  const { clientId, token = await freshToken(HOSTILE) } = hello;
  const instance = clientId !== undefined && { instanceId: `${clientId}-${n}` };
  return openBareLink(linkUrl(site, n), { ...hello, token, ...instance });
}

/** Sends a frame and resolves when the frame has left this process. */
async function sendPaced(socket: WebSocket, text: string): Promise<void> {
  if (socket.readyState !== WebSocket.OPEN) throw new Error('closed');
  await new Promise<void>((done, failed) => socket.send(text, (error) => (error ? failed(error) : done())));
}

/**
 * Opens a link and sends `frames` over it, one after the other. If the relay closes the link, opens a link of another
 * client.
 */
export async function flood(
  { site, signal, count }: AttackContext,
  {
    lane,
    payload,
    frames,
  }: { readonly lane: number; readonly payload?: string; readonly frames: (n: number) => string },
): Promise<void> {
  for (let n = 0; !signal.aborted; n++) {
    try {
      const socket = await openLink(site, lane, {
        clientId: `flood-${lane}-${n}`,
        ...(payload !== undefined && { payload }),
      });
      count('links');
      for (let i = 0; !signal.aborted && socket.readyState === WebSocket.OPEN; i++) {
        await sendPaced(socket, frames(i));
        count('frames');
        await new Promise((done) => setTimeout(done, 10));
      }
    } catch {
      count('links refused');
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}

// Sends HTTP requests for attacks.

/**
 * A request of the hostile user. `token`: absent: a token of the hostile user; null: none. `withinMs`: the timeout of
 * the request, in milliseconds.
 */
export type Post = {
  readonly path: string;
  readonly body: string;
  readonly token?: string | null;
  readonly withinMs?: number;
};

/** The timeout for an answer of the relay, in milliseconds. */
const ANSWER_MS = 30_000;
/**
 * The address of the hostile user's raw sockets. It differs from that of the honest user, so that limits by address do
 * not affect the honest user.
 */
const HOSTILE_ADDRESS = '127.0.0.2';
/** The address of the honest user and of the operator. Tokens from this address must always be accepted. */
export const SHARED_ADDRESS = '127.0.0.1';

/** Sends a request of the hostile user and returns the status. Rejects if there is no answer. */
export async function post(site: Site, n: number, { path, body, token, withinMs }: Post): Promise<number> {
  const bearer = token === undefined ? await freshToken(HOSTILE) : token;
  const response = await fetch(relayUrl(site, n) + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(bearer !== null && { authorization: `Bearer ${bearer}` }) },
    body,
    signal: AbortSignal.timeout(withinMs ?? ANSWER_MS),
  });
  await response.arrayBuffer();
  return response.status;
}

/** Opens a socket that sends `text` and reads no answer. It stays open until the relay closes it. */
export function openRaw(site: Site, n: number, text: string, from = HOSTILE_ADDRESS): Promise<Socket> {
  const { hostname, port } = new URL(relayUrl(site, n));
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({ host: hostname, port: Number(port), localAddress: from, allowHalfOpen: true });
  socket.pause();
  socket.on('connect', () => {
    socket.write(text);
    resolve(socket);
  });
  socket.on('error', reject);
  return promise;
}

const AGENTS = new Map<string, Agent>();

/** Sends a request from an address of this machine over a kept-alive connection. Returns the status and the answer. */
export function postFrom(
  from: string,
  site: Site,
  n: number,
  { path, body, token = null }: Post,
): Promise<{ readonly status: number; readonly answer: unknown }> {
  const agent = AGENTS.get(from) ?? new Agent({ keepAlive: true, localAddress: from, maxSockets: 4 });
  AGENTS.set(from, agent);
  const headers = { 'content-type': 'application/json', ...(token !== null && { authorization: `Bearer ${token}` }) };
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; answer: unknown }>();
  const sent = request(relayUrl(site, n) + path, { agent, method: 'POST', headers, timeout: ANSWER_MS }, (response) => {
    jsonIn(response).then((answer) => resolve({ status: response.statusCode ?? 0, answer }), reject);
  });
  sent.on('error', reject).on('timeout', () => sent.destroy(new Error('no answer')));
  sent.end(body);
  return promise;
}

/**
 * The numbers of operations per event stream, and of event streams, with which one user requests all feeds of a node.
 */
const OPERATIONS = 100;
const STREAMS = 4;

/**
 * Opens event streams to each relay, and requests as many different feeds over each stream as it may carry. `document`:
 * returns the subscription of this name.
 */
export async function takeFeeds(context: AttackContext, document: (name: string) => string): Promise<void> {
  for (const [n] of context.site.urls.entries())
    for (let stream = 0; stream < STREAMS; stream++)
      await takeStream(context, n, (i) => document(`a${stream}x${i}`)).catch(() => context.count('streams refused'));
}

async function takeStream(
  { site, count, signal }: AttackContext,
  n: number,
  document: (i: number) => string,
): Promise<void> {
  const url = `${relayUrl(site, n)}/graphql/stream`;
  const authorization = `Bearer ${await freshToken(HOSTILE)}`;
  const reserved = await fetch(url, { method: 'PUT', headers: { authorization } });
  const token = await reserved.text();
  const headers = { authorization, 'x-graphql-event-stream-token': token };
  const events = await fetch(url, { headers: { ...headers, accept: 'text/event-stream' }, signal });
  void events.body?.pipeTo(new WritableStream()).catch(() => {});
  for (let i = 0; i < OPERATIONS; i++) {
    const operation = JSON.stringify({ query: document(i), extensions: { operationId: `o${i}` } });
    const asked = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: operation,
    });
    await asked.arrayBuffer();
    count(`feeds: ${asked.status}`);
  }
}
