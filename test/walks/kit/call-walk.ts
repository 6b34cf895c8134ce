/** Makes REST calls to a client of a relay in this process, and lists the source files that one call passes through. */
import { once } from 'node:events';
import { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { createCallboard } from '../../../src/callboard.ts';
import { signToken } from '../../../src/http/token.ts';
import { CausalChain } from './causal-chain.ts';

const SECRET = 'the secret of a traced relay, longer than 32 bytes';
/** The number of calls before the traced one. They cause everything that happens once per token, route or link. */
const WARM_UP = 3;

/** The files below `src` through which a call passes, in the order in which it first reaches them. */
export type CallWalk = {
  /** The files from the HTTP request to the write of the command to the client's socket. */
  readonly inbound: readonly string[];
  /** The files from the client's result to the write of the HTTP response. */
  readonly outbound: readonly string[];
};

/** Makes one call over REST to a relay in direct mode with the fast path. */
export async function walkCall(): Promise<CallWalk> {
  const auth = { adminTokens: [], secret: SECRET, jwksUrl: null, issuer: null, audience: null };
  await using relay = createCallboard({ config: { auth } });
  const url = await relay.listen();
  const scopes = ['connect', 'invoke'];
  const token = await signToken({ secret: SECRET, user: 'alice', scopes, ttlSeconds: 60, now: Date.now() });
  const client = await openClient(url, token);
  try {
    for (let call = 0; call < WARM_UP; call++) await callOnce(client, () => post(url, token), settled);
    return await tracedCall(client, () => post(url, token));
  } finally {
    client.terminate();
  }
}

async function tracedCall(client: WebSocket, call: () => Promise<void>): Promise<CallWalk> {
  using chain = new CausalChain();
  const requested = chain.mark();
  const inbound = atWrite('"type":"command"', () => chain.since(requested));
  let outbound: Promise<readonly string[]> = Promise.resolve([]);
  await callOnce(client, call, async () => {
    await settled();
    const reported = chain.mark();
    outbound = atWrite('HTTP/1.1 200', () => chain.since(reported));
  });
  return { inbound: await inbound, outbound: await outbound };
}

/**
 * Makes one call. `beforeResult` is awaited after the command has reached the client and before the client sends its
 * result.
 */
async function callOnce(
  client: WebSocket,
  call: () => Promise<void>,
  beforeResult: () => Promise<void>,
): Promise<void> {
  const command = nextCommand(client);
  const answered = call();
  const command_id = await command;
  await beforeResult();
  client.send(`${JSON.stringify({ type: 'result', command_id })}\n{"done":true}`);
  await answered;
}

/** Waits until the relay has finished the work that follows the write of the command. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await setImmediate();
}

async function openClient(url: string, token: string): Promise<WebSocket> {
  const client = new WebSocket(`${url.replace('http', 'ws')}/connect`, ['callboard.v1']);
  await once(client, 'open');
  const hello = { type: 'hello', token, client_id: 'tab', instance_id: 'i1', client_type: 'browser' };
  client.send(`${JSON.stringify(hello)}\n{"actions":[{"name":"open"}]}`);
  await once(client, 'message');
  return client;
}

async function nextCommand(client: WebSocket): Promise<string> {
  for (;;) {
    const [data] = await once(client, 'message');
    const header = JSON.parse(String(data).split('\n')[0] ?? '');
    if (header.type === 'command') return header.command_id;
  }
}

async function post(url: string, token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ params: { page: 1 } });
  const response = await fetch(`${url}/connections/alice/tab/actions/open`, { method: 'POST', headers, body });
  const text = await response.text();
  if (response.status !== 200) throw new Error(text);
}

/** Resolves with what `look` returns at the moment when a socket of this process is about to write this text. */
function atWrite<T>(text: string, look: () => T): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<T>();
  const own = Socket.prototype.write;
  Socket.prototype.write = function write(this: Socket, chunk: string | Uint8Array, ...rest: never[]): boolean {
    if (Buffer.from(chunk).includes(text)) {
      Socket.prototype.write = own;
      resolve(look());
    }
    return own.call(this, chunk, ...rest);
  };
  return promise;
}

if (import.meta.main) {
  const { inbound, outbound } = await walkCall();
  const print = (way: string, files: readonly string[]): void =>
    void process.stdout.write(`${way}: ${files.length} files\n${files.join('\n')}\n\n`);
  print('request to socket', inbound);
  print('result to response', outbound);
}
