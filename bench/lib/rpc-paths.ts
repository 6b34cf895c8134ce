/**
 * Starts the paths of a call, which goes from a caller over a relay to a client and back. Each part of a path is a
 * process.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { freePort } from '../../test/kit/free-port.ts';
import { HTTP_RUN, NUMBER } from '../loads/http.ts';
import { startRelay, userToken } from './callboard.ts';
import type { Sample } from './numbers.ts';
import { costOf, startChild, type Child, type Measured } from './processes.ts';
import type { RowKind } from './report.ts';
import type { Length } from './rounds.ts';
import { ACTION, CALLS, CLIENT_IDS, type End, PAYLOAD, USER } from './rpc.ts';

/** The number of calls in flight, and how long the load runs. */
type CallLoad = Length & { readonly inFlight: number };
/** A running path: makes calls and returns its measurements. */
export type RpcPath = { drive(load: CallLoad): Promise<Sample> };

export type RpcContender = {
  readonly name: string;
  readonly kind: RowKind;
  prepare(stack: AsyncDisposableStack): Promise<RpcPath>;
};

export const RPC = {
  echo: 'ws echo, one hop',
  lines: 'ws relay, unparsed and corked',
  ws: 'ws relay, plain',
  wsHttp: 'ws relay, plain, HTTP caller',
  socketIo: 'socket.io emitWithAck',
  nats: 'NATS request and reply',
  bare: 'callboard, bare ends',
  data100: 'callboard with data, 100 ms',
  dataAlways: 'callboard with data, always',
  dataOff: 'callboard with data, off',
  library: 'callboard',
  http: 'callboard, HTTP caller',
  graphql: 'callboard, GraphQL mutation',
  sdk: 'MCP SDK, same handler',
  mcp: 'callboard, MCP caller',
} as const;

export const RPC_CONTENDERS: readonly RpcContender[] = [
  peer('limit', RPC.echo, { module: 'rpc-ws', mode: 'echo', kind: 'echo' }),
  peer('limit', RPC.lines, { module: 'rpc-ws', mode: 'lines', kind: 'lines' }),
  peer('peer', RPC.ws, { module: 'rpc-ws', mode: '', kind: 'ws' }),
  { name: RPC.wsHttp, kind: 'peer', prepare: plainHttp },
  peer('peer', RPC.socketIo, { module: 'rpc-socket-io', mode: '', kind: 'socket.io' }),
  { name: RPC.nats, kind: 'peer', prepare: nats },
  own(RPC.bare, 'bare'),
  own(RPC.data100, 'bare', '100'),
  own(RPC.dataAlways, 'bare', 'always'),
  own(RPC.dataOff, 'bare', 'off'),
  own(RPC.library, 'library'),
  { name: RPC.http, kind: 'own', prepare: (stack) => overHttp(stack) },
  { name: RPC.graphql, kind: 'own', prepare: (stack) => overHttp(stack, {}, graphqlCall) },
  { name: RPC.sdk, kind: 'peer', prepare: sdkServer },
  { name: RPC.mcp, kind: 'own', prepare: overMcp },
];

type Kind = End['kind'];

function peer(kind: RowKind, name: string, via: { module: string; mode: string; kind: Kind }): RpcContender {
  return {
    name,
    kind,
    async prepare(stack) {
      const relay = stack.use(await startChild(`servers/${via.module}.ts`, { options: { mode: via.mode } }));
      return ends(stack, { end: { kind: via.kind, port: relay.port, token: '' }, server: relay });
    },
  };
}

/** `sync`: the sync policy of the relay's data directory; absent: the relay has no data directory. */
function own(name: string, kind: Kind, sync?: string): RpcContender {
  return {
    name,
    kind: 'own',
    async prepare(stack) {
      const relay = stack.use(await startRelay(sync === undefined ? {} : dataSettings(stack, sync)));
      const token = await userToken(USER, 'connect', 'invoke');
      return ends(stack, { end: { kind, port: relay.port, token }, server: relay });
    },
  };
}

/** Returns the settings of a relay with its own data directory, which is removed with the stack. */
export function dataSettings(stack: AsyncDisposableStack, sync: string): Readonly<Record<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-bench-'));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  return { CALLBOARD_DATA_DIR: join(folder, 'data'), CALLBOARD_DATA_SYNC: sync };
}

/** Starts the client and the caller of a path, both connected by links. */
async function ends(stack: AsyncDisposableStack, { end, server }: { end: End; server: Measured }): Promise<RpcPath> {
  stack.use(await startChild('loads/rpc-client.ts', { options: end }));
  return linkCalls(stack.use(await startChild('loads/rpc-caller.ts', { options: end })), server);
}

/** Returns the path of a running caller. `server`: the process whose CPU time counts as the cost of a call. */
export function linkCalls(caller: Child, server: Measured): RpcPath {
  return driven(server, (load) => caller.ask('drive', load, CALLS));
}

/** Returns the request of a call to a client. */
type CallRequest = (client: string, token: string) => string;

const restCall: CallRequest = (client, token) => {
  const body = JSON.stringify({ params: PAYLOAD, wait_for: 'completed' });
  return post(`/connections/${USER}/${client}/actions/${ACTION}`, token, body);
};

const INVOKE = `mutation Call($input: InvokeActionInput!) {
  invokeAction(input: $input) { __typename ... on Invocation { commandId outcome result error { code message } } }
}`;

const graphqlCall: CallRequest = (clientId, token) => {
  const input = { userId: USER, clientId, action: ACTION, params: PAYLOAD };
  return post('/graphql', token, JSON.stringify({ query: INVOKE, variables: { input } }));
};

/** Starts a Callboard relay with HTTP callers, over any backend. `env`: further settings. */
export async function overHttp(
  stack: AsyncDisposableStack,
  env: Readonly<Record<string, string>> = {},
  requestOf: CallRequest = restCall,
): Promise<RpcPath> {
  const relay = stack.use(await startRelay(env));
  const token = await userToken(USER, 'connect', 'invoke');
  stack.use(await startChild('loads/rpc-client.ts', { options: { kind: 'bare', port: relay.port, token } }));
  const requests = CLIENT_IDS.map((client) => requestOf(client, token));
  return httpCalls(stack, { port: relay.port, requests, server: relay, sample: '"ok":{"text":"ppp' });
}

async function plainHttp(stack: AsyncDisposableStack): Promise<RpcPath> {
  const relay = stack.use(await startChild('servers/rpc-ws.ts', { options: { mode: '' } }));
  stack.use(await startChild('loads/rpc-client.ts', { options: { kind: 'ws', port: relay.port } }));
  const requests = [post('/call', 'none', JSON.stringify({ params: PAYLOAD }))];
  return httpCalls(stack, { port: relay.port, requests, server: relay, sample: '"ok":{"text":"ppp' });
}

/** Calls of agents. Each has its own key, because equal calls at the same time count as one command. */
async function overMcp(stack: AsyncDisposableStack): Promise<RpcPath> {
  const relay = stack.use(await startRelay({ CALLBOARD_MCP: 'on' }));
  const token = await userToken(USER, 'connect', 'invoke');
  stack.use(await startChild('loads/rpc-client.ts', { options: { kind: 'bare', port: relay.port, token } }));
  const requests = CLIENT_IDS.map((client) => toolCall(token, { ...PAYLOAD, client }));
  return httpCalls(stack, { port: relay.port, requests, server: relay, sample: 'ppp' });
}

/** The same tool on a server of the MCP SDK alone, which answers by itself. */
async function sdkServer(stack: AsyncDisposableStack): Promise<RpcPath> {
  const server = stack.use(await startChild('servers/mcp-sdk.ts'));
  const requests = [toolCall('none', PAYLOAD)];
  return httpCalls(stack, { port: server.port, requests, server, sample: 'ppp' });
}

function toolCall(token: string, args: object): string {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': MCP_VERSION,
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
    'callboard/idempotencyKey': `bench-${NUMBER}`,
  };
  const params = { name: ACTION, arguments: args, _meta: meta };
  const headers = [
    'Accept: application/json, text/event-stream',
    `Mcp-Protocol-Version: ${MCP_VERSION}`,
    'Mcp-Method: tools/call',
    `Mcp-Name: ${ACTION}`,
  ];
  return post('/mcp', token, JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }), headers);
}

const MCP_VERSION = '2026-07-28';

async function nats(stack: AsyncDisposableStack): Promise<RpcPath> {
  const server = stack.use(await natsServer());
  return ends(stack, { end: { kind: 'nats', port: server.port, token: '' }, server });
}

function post(path: string, token: string, body: string, more: readonly string[] = []): string {
  const type = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
  const headers = more.map((line) => `${line}\r\n`).join('');
  return `POST ${path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${token}\r\n${headers}${type}\r\n${body}`;
}

type HttpCalls = {
  readonly port: number;
  readonly requests: readonly string[];
  readonly server: Measured;
  readonly sample: string;
};

export async function httpCalls(stack: AsyncDisposableStack, { server, sample, ...to }: HttpCalls): Promise<RpcPath> {
  const load = stack.use(await startChild('loads/http.ts'));
  const text = await load.ask('once', to, z.string());
  if (!text.includes(sample))
    throw new Error(`A call was answered ${text.slice(text.indexOf('\r\n\r\n')).trim().slice(0, 140)}`);
  return driven(server, ({ inFlight, ...length }) =>
    load.ask('run', { ...to, connections: inFlight, ...length }, HTTP_RUN),
  );
}

function driven(server: Measured, calls: (load: CallLoad) => Promise<z.infer<typeof CALLS>>): RpcPath {
  return {
    async drive(load) {
      const { done, cpu, system } = await costOf(server, () => calls(load));
      const { count, ms, p50, p99 } = done;
      return { rate: (count * 1000) / ms, p50, p99, cpu, system, calls: count };
    },
  };
}

// Starts a NATS server to compare with, and measures its CPU time.

type NatsServer = AsyncDisposable & Measured & { readonly port: number };

/** One clock tick of /proc/<pid>/stat (100 per second on Linux), in microseconds. */
const TICK_US = 10_000;
/** The maximum number of attempts to connect, 50 ms apart, until the server has started. */
const TRIES = 100;

/** Starts the `nats-server` that is installed on this machine. Throws if there is none. */
async function natsServer(): Promise<NatsServer> {
  if (spawnSync('nats-server', ['--version'], { stdio: 'ignore' }).status !== 0)
    throw new Error('no nats-server found here');
  const port = await freePort();
  const child = spawn('nats-server', ['-a', '127.0.0.1', '-p', String(port)], { stdio: 'ignore' });
  await reachable(port);
  // The CPU time comes from the system's accounting, in steps of 10 ms, because the server does not report its own.
  const fields = (): readonly string[] =>
    readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  const ticks = (...places: readonly number[]): number => places.reduce((sum, at) => sum + Number(fields()[at]), 0);
  return {
    port,
    cpu: async () => ticks(11, 12) * TICK_US,
    system: async () => ticks(12) * TICK_US,
    async [Symbol.asyncDispose]() {
      child.kill();
    },
  };
}

async function reachable(port: number): Promise<void> {
  for (let i = 0; i < TRIES; i++) {
    const socket = connect({ port, host: '127.0.0.1' });
    const up = await new Promise<boolean>((done) => {
      socket.on('connect', () => done(true));
      socket.on('error', () => done(false));
    });
    socket.destroy();
    if (up) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error('nats-server did not start');
}
