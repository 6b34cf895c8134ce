/**
 * Compares two states of the relay in one process: `node --expose-gc bench/pairs.ts --before <checkout>`. Three relays
 * take turns in slices of a fraction of a second, each round in another order: one of the checkout, one of a copy of
 * the checkout (the null test), and one of this folder. Their sockets are in memory, so the kernel costs nothing. For
 * each operation it prints the CPU time of the process and the median, over all rounds, of the ratio to the checkout. A
 * deviation of the null test from 1 is noise, or the price of being loaded later: V8 optimises code that all relays
 * share, such as Node's, for the relay that was loaded first. Therefore compare a relay with the null test in the same
 * row.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { Duplex } from 'node:stream';
import { parseArgs } from 'node:util';
import { WebSocket } from 'ws';
import { ADMIN_TOKEN, userToken, RELAY_ENV } from './lib/callboard.ts';
import { EVENT_NAME, fanEvent, FAN_QUERY, ingested, MARKER } from './lib/fan-event.ts';
import { ACTION, PAYLOAD, splitFrame } from './lib/rpc.ts';
import { SUMMARY } from './lib/summary.ts';

const { values } = parseArgs({
  options: {
    before: { type: 'string' },
    rounds: { type: 'string', default: '15' },
    ms: { type: 'string', default: '400' },
    only: { type: 'string', default: '' },
  },
});
const [rounds, sliceMs] = [Number(values.rounds), Number(values.ms)];
const after = resolve(import.meta.dirname, '..');
const before = resolve(values.before ?? after);
const STREAMS = 200;
const IN_FLIGHT = 12;
/** The number of other users who are paused in the row that measures calls beside pauses. */
const PAUSED_USERS = 100;

/**
 * One end of a connection in memory. Data that one end writes in a turn of the event loop arrives at the other end in
 * the next turn.
 */
class MemorySocket extends Duplex {
  peer: MemorySocket | null = null;
  readonly remoteAddress = '127.0.0.1';
  bytesRead = 0;
  bytesWritten = 0;
  #waiting: Buffer[] = [];

  override _read(): void {}
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    if (this.#waiting.push(chunk) === 1) setImmediate(() => this.#deliver());
    done();
  }
  override _final(done: () => void): void {
    setImmediate(() => this.peer?.push(null));
    done();
  }
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    setImmediate(() => this.peer?.destroy());
    done(error);
  }
  #deliver(): void {
    const chunk = this.#waiting.length === 1 ? this.#waiting[0] : Buffer.concat(this.#waiting);
    this.#waiting = [];
    if (!chunk || !this.peer || this.peer.destroyed) return;
    this.peer.bytesRead += chunk.length;
    this.bytesWritten += chunk.length;
    this.peer.push(chunk);
  }
  setNoDelay = (): this => this;
  setKeepAlive = (): this => this;
  setTimeout = (): this => this;
  ref = (): this => this;
  unref = (): this => this;
}

/** A relay of one folder, which accepts connections in memory. */
type Relay = {
  readonly connect: () => MemorySocket;
  /** The port of 127.0.0.1 that the relay listens on. */
  readonly port: number;
  readonly close: () => Promise<void>;
};

async function openRelay(folder: string): Promise<Relay> {
  const { openCallboard } = (await import(`${folder}/src/callboard.ts`)) as typeof import('../src/callboard.ts');
  const { readConfig } = (await import(`${folder}/src/config.ts`)) as typeof import('../src/config.ts');
  const callboard = await openCallboard({
    config: readConfig({ ...RELAY_ENV, CALLBOARD_PORT: '0', CALLBOARD_MCP: 'on' }, []),
  });
  let server: Server | null = null;
  const found = (message: unknown): void => void ({ server } = message as { server: Server });
  subscribe('tracing:net.server.listen:asyncStart', found);
  const url = await callboard.listen();
  unsubscribe('tracing:net.server.listen:asyncStart', found);
  return {
    connect() {
      const [near, far] = [new MemorySocket(), new MemorySocket()];
      [near.peer, far.peer] = [far, near];
      server?.emit('connection', far);
      return near;
    },
    port: Number(new URL(url).port),
    close: () => callboard.close(),
  };
}

type Frames = { readonly socket: WebSocket; readonly send: (text: string) => void };

/** Opens a link and resolves when the relay has welcomed it. */
async function openLink(
  relay: Relay,
  hello: string,
  onFrame: (header: Record<string, string>, payload: string, frames: Frames) => void,
): Promise<Frames> {
  const socket = new WebSocket('ws://bench/connect', 'callboard.v1', {
    perMessageDeflate: false,
    createConnection: () => relay.connect(),
  } as never);
  const welcome = Promise.withResolvers<void>();
  const frames = { socket, send: (text: string) => socket.send(text) };
  socket.on('error', welcome.reject);
  socket.on('close', (code) => welcome.reject(new Error(`A link was closed with ${code}.`)));
  socket.on('message', (data: Buffer) => {
    const [header, payload] = splitFrame(data.toString()) as [Record<string, string>, string];
    if (header['type'] === 'welcome') welcome.resolve();
    else if (header['type'] === 'ping') socket.send('{"type":"pong"}');
    else onFrame(header, payload, frames);
  });
  await new Promise((opened) => socket.once('open', opened));
  socket.send(hello);
  await welcome.promise;
  return frames;
}

function helloOf(token: string, clientId: string): string {
  const hello = { type: 'hello', token, client_id: clientId, instance_id: `i-${clientId}`, client_type: 'console' };
  return `${JSON.stringify(hello)}\n{"actions":[{"name":"${ACTION}"}]}`;
}

/** Opens a kept-alive HTTP connection. The returned function sends a request and resolves with the whole answer. */
function openHttp(relay: Relay): (request: string) => Promise<string> {
  const socket = relay.connect();
  let text = '';
  let answered: ((answer: string) => void) | null = null;
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
    const head = text.indexOf('\r\n\r\n');
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
    if (head < 0 || text.length < head + 4 + length) return;
    const answer = text;
    text = '';
    answered?.(answer);
  });
  return (request) => {
    const { promise, resolve: done } = Promise.withResolvers<string>();
    answered = done;
    socket.write(request);
    return promise;
  };
}

function requestOf(method: string, path: string, token: string, body: object, headers: readonly string[] = []): string {
  const text = JSON.stringify(body);
  const lines = ['Host: bench', `Authorization: Bearer ${token}`, 'Content-Type: application/json', ...headers];
  const head = lines.map((line) => `${line}\r\n`).join('');
  return `${method} ${path} HTTP/1.1\r\n${head}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
}

async function askFor(ask: (request: string) => Promise<string>, request: string): Promise<unknown> {
  const answer = await ask(request);
  if (!/^HTTP\/1\.1 2/.test(answer)) throw new Error(answer.slice(0, 400));
  return JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4) || 'null');
}

/** Runs `one` repeatedly in `count` parallel loops for some milliseconds. Returns the number of operations. */
async function lanes(count: number, ms: number, one: () => Promise<unknown>): Promise<number> {
  const end = performance.now() + ms;
  let operations = 0;
  const lane = async (): Promise<void> => {
    for (; performance.now() < end; operations++) await one();
  };
  await Promise.all(Array.from({ length: count }, lane));
  return operations;
}

/**
 * A row's measurement: prepares a relay, and returns a function that works for some milliseconds and returns the number
 * of operations.
 */
type Row = (relay: Relay) => Promise<(ms: number) => Promise<number>>;

/** Opens clients that return their params. `reports`: whether they report progress once before that. */
async function echoClients(relay: Relay, token: string, ids: readonly string[], reports = false): Promise<void> {
  for (const id of ids)
    await openLink(relay, helloOf(token, id), ({ type, command_id }, params, { send }) => {
      if (type !== 'command') return;
      if (reports) send(`{"type":"progress","command_id":"${command_id}","number":1}\n{"done":1}`);
      send(`{"type":"result","command_id":"${command_id}"}\n{"ok":${params}}`);
    });
}

async function summary(relay: Relay, user: string, connections: number): Promise<(ms: number) => Promise<number>> {
  await echoClients(
    relay,
    await userToken(user, 'connect'),
    Array.from({ length: connections }, (_, i) => `c${i}`),
  );
  const request = requestOf('POST', '/graphql', ADMIN_TOKEN, { query: SUMMARY, variables: { id: user } });
  const asks = Array.from({ length: 4 }, () => openHttp(relay));
  if (/"errors"/.test(await (asks[0] ?? openHttp(relay))(request))) throw new Error('The query was refused.');
  let turn = 0;
  return async (ms) => {
    const counts = await Promise.all(asks.map((ask) => lanes(1, ms, () => (turn++, ask(request)))));
    return counts.reduce((sum, count) => sum + count, 0);
  };
}

const INVOKE = `mutation Call($input: InvokeActionInput!) {
  invokeAction(input: $input) { __typename ... on Invocation { commandId outcome result error { code message } } }
}`;

/** Calls actions of two clients over HTTP. `ask`: returns the path and the body of a call to a client. */
async function calls(
  relay: Relay,
  user: string,
  ask: (id: string) => readonly [path: string, body: object],
): Promise<(ms: number) => Promise<number>> {
  const token = await userToken(user, 'connect', 'invoke');
  await echoClients(relay, token, ['c0', 'c1']);
  const connections = Array.from({ length: IN_FLIGHT }, () => openHttp(relay));
  const requests = ['c0', 'c1'].map((id) => requestOf('POST', ask(id)[0], token, ask(id)[1]));
  await askFor(connections[0] ?? openHttp(relay), requests[0] ?? '');
  return async (ms) => {
    const counts = await Promise.all(connections.map((one, i) => lanes(1, ms, () => one(requests[i % 2] ?? ''))));
    return counts.reduce((sum, count) => sum + count, 0);
  };
}

const MCP_VERSION = '2026-07-28';

/**
 * Calls an action of two clients as an agent. Each call has its own key, because equal calls at the same time count as
 * one.
 */
async function toolCalls(relay: Relay): Promise<(ms: number) => Promise<number>> {
  const token = await userToken('u4', 'connect', 'invoke');
  await echoClients(relay, token, ['c0', 'c1']);
  let n = 0;
  const headers = [
    'Accept: application/json, text/event-stream',
    `Mcp-Protocol-Version: ${MCP_VERSION}`,
    'Mcp-Method: tools/call',
    `Mcp-Name: ${ACTION}`,
  ];
  const request = (): string => {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': MCP_VERSION,
      'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
      'callboard/idempotencyKey': `pairs-${++n}`,
    };
    const params = { name: ACTION, arguments: { ...PAYLOAD, client: `c${n % 2}` }, _meta };
    return requestOf('POST', '/mcp', token, { jsonrpc: '2.0', id: n, method: 'tools/call', params }, headers);
  };
  const connections = Array.from({ length: IN_FLIGHT }, () => openHttp(relay));
  const first = JSON.stringify(await askFor(connections[0] ?? openHttp(relay), request()));
  if (!first.includes('ppp')) throw new Error(`A call was answered ${first.slice(0, 300)}`);
  return async (ms) => {
    const counts = await Promise.all(connections.map((one) => lanes(1, ms, () => one(request()))));
    return counts.reduce((sum, count) => sum + count, 0);
  };
}

type LinkCalls = { readonly clients?: number; readonly reports?: boolean; readonly asksProgress?: boolean };

/** Calls actions of some clients over one link. */
async function linkCalls(
  relay: Relay,
  { clients = 2, reports = false, asksProgress = false }: LinkCalls,
): Promise<(ms: number) => Promise<number>> {
  const token = await userToken('u1', 'connect', 'invoke');
  const ids = Array.from({ length: clients }, (_, i) => `c${i}`);
  await echoClients(relay, token, ids, reports);
  const open = new Map<string, () => void>();
  const caller = await openLink(relay, JSON.stringify({ type: 'hello', token }), ({ type, ref, outcome }) => {
    if (type === 'outcome' && outcome !== 'completed') throw new Error(`A command ended ${outcome}.`);
    if (type === 'refused') throw new Error('A command was refused.');
    if (type === 'outcome') open.get(ref ?? '')?.();
    if (type === 'outcome') open.delete(ref ?? '');
  });
  let n = 0;
  const params = JSON.stringify(PAYLOAD);
  const more = asksProgress ? ',"progress":true' : '';
  return (ms) =>
    lanes(IN_FLIGHT, ms, () => {
      const { promise, resolve: done } = Promise.withResolvers<void>();
      open.set(String(++n), done);
      caller.send(
        `{"type":"invoke","ref":"${n}","client_id":"c${n % clients}","action":"${ACTION}"${more}}\n${params}`,
      );
      return promise;
    });
}

/**
 * Makes the same calls as `linkCalls` while the calls of other users are paused. In a checkout without pauses, the
 * requests that set pauses fail and have no effect.
 */
async function callsBesidePauses(relay: Relay): Promise<(ms: number) => Promise<number>> {
  const ask = openHttp(relay);
  for (let i = 0; i < PAUSED_USERS; i++)
    await ask(requestOf('POST', '/pauses', ADMIN_TOKEN, { user_id: `paused-${i}`, reason: 'bench' }));
  return linkCalls(relay, {});
}

const ROWS: Readonly<Record<string, Row>> = {
  'call, bare ends': (relay) => linkCalls(relay, {}),
  'call, bare ends, others are paused': callsBesidePauses,
  'call, progress requested, none reported': (relay) => linkCalls(relay, { asksProgress: true }),
  // A link may report progress at most 3200 times a second, so these calls need more clients.
  'call with one report': (relay) => linkCalls(relay, { clients: 16, reports: true }),
  'call with one report, progress requested': (relay) =>
    linkCalls(relay, { clients: 16, reports: true, asksProgress: true }),
  'call over REST': (relay) =>
    calls(relay, 'u2', (id) => [`/connections/u2/${id}/actions/${ACTION}`, { params: PAYLOAD }]),
  'call over GraphQL': (relay) =>
    calls(relay, 'u3', (clientId) => {
      const input = { userId: 'u3', clientId, action: ACTION, params: PAYLOAD };
      return ['/graphql', { query: INVOKE, variables: { input } }];
    }),
  'call over MCP': toolCalls,
  'query, 10 connections': (relay) => summary(relay, 'u10', 10),
  'query, 100 connections': (relay) => summary(relay, 'u100', 100),
  async [`event to ${STREAMS} streams`](relay) {
    const token = await userToken('owner', 'connect', 'host', 'invoke');
    await openLink(relay, helloOf(token, 'host').replace('i-host', 'host-1'), () => {});
    const ask = openHttp(relay);
    await askFor(ask, requestOf('PUT', '/sites/board', token, { client_id: 'host', event_names: [EVENT_NAME] }));
    let read = 0;
    let wake: (() => void) | null = null;
    for (let i = 0; i < STREAMS; i++) {
      const session = (await askFor(ask, requestOf('POST', '/sites/board/sessions', token, {}))) as Record<
        string,
        string
      >;
      const body = { query: FAN_QUERY, variables: { id: session['session_id'] } };
      // Over a real socket, because for the streams of a group the relay writes to the socket directly and bypasses a
      // Duplex in memory.
      const stream = connect({ port: relay.port, host: '127.0.0.1' });
      stream.on('data', (chunk: Buffer) => {
        for (let at = chunk.indexOf(MARKER); at >= 0; at = chunk.indexOf(MARKER, at + 1)) read++;
        wake?.();
      });
      stream.write(
        requestOf('POST', '/graphql', session['token'] ?? '', body).replace(
          'Host:',
          'Accept: text/event-stream\r\nHost:',
        ),
      );
    }
    await new Promise((done) => setTimeout(done, 300));
    let n = 0;
    return (ms) =>
      lanes(1, ms, async () => {
        const wanted = read + STREAMS;
        const event = fanEvent(n++, 200);
        await askFor(ask, requestOf('POST', '/ingest', token, [ingested(event)]));
        while (read < wanted) await new Promise<void>((done) => (wake = done));
      });
  },
};

type Slice = { readonly cpu: number; readonly count: number };

/** Returns the CPU time of the process per operation, in microseconds. Collects garbage of earlier slices first. */
async function slice(work: (ms: number) => Promise<number>): Promise<Slice> {
  globalThis.gc?.();
  const started = process.cpuUsage();
  const count = await work(sliceMs);
  const { user, system } = process.cpuUsage(started);
  return { cpu: (user + system) / count, count };
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? NaN;
}

/** A copy of the folder, because relays of one folder share modules, which V8 would optimise for both. */
const copy = mkdtempSync(join(tmpdir(), 'callboard-pairs-'));
const isCopied = (path: string): boolean => !['node_modules', '.git'].includes(basename(path));
cpSync(before, copy, { recursive: true, filter: isCopied });
symlinkSync(join(before, 'node_modules'), join(copy, 'node_modules'));
process.on('exit', () => rmSync(copy, { recursive: true, force: true }));

const STATES = { before, null: copy, after } as const;
type State = keyof typeof STATES;
const NAMES: readonly State[] = ['before', 'after', 'null'];

/** Measures one row: all states take turns, and each round begins with another one. The first two rounds warm up. */
async function measure(row: Row): Promise<Readonly<Record<State, readonly number[]>>> {
  const works = [];
  const relays: Relay[] = [];
  for (const state of NAMES) {
    const relay = await openRelay(STATES[state]);
    relays.push(relay);
    works.push({ state, work: await row(relay) });
  }
  const cpu: Record<State, number[]> = { before: [], null: [], after: [] };
  for (let round = -2; round < rounds; round++) {
    for (let i = 0; i < works.length; i++) {
      const one = works[(i + round + 3) % works.length];
      if (!one) continue;
      const { cpu: each } = await slice(one.work);
      if (round >= 0) cpu[one.state].push(each);
    }
  }
  for (const relay of relays) await relay.close();
  return cpu;
}

function ratio(of: readonly number[], to: readonly number[]): number {
  return median(of.map((each, i) => each / (to[i] ?? NaN)));
}

process.stdout.write(
  '| row | before, us | after, us | after to before | null test |\n| --- | --: | --: | --: | --: |\n',
);
for (const [name, row] of Object.entries(ROWS)) {
  if (!name.includes(values.only)) continue;
  const cpu = await measure(row);
  const cells = [median(cpu.before).toFixed(1), median(cpu.after).toFixed(1)];
  const ratios = [ratio(cpu.after, cpu.before), ratio(cpu.null, cpu.before)].map((each) => each.toFixed(3));
  process.stdout.write(`| ${[name, ...cells, ...ratios].join(' | ')} |\n`);
}
process.exit(0);
