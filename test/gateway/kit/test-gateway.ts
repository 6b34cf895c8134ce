/** Starts a gateway over a core in memory, for tests of links. */
import { createServer, type Server } from 'node:http';
import { connect as connectTcp, type AddressInfo, type Socket } from 'node:net';
import { WebSocket, type ClientOptions } from 'ws';
import type { Authenticator, Principal, Scope } from '../../../src/core/auth/principal.ts';
import type { Core, Invocation, InvokeRequest } from '../../../src/core/core.ts';
import { CallboardError } from '../../../src/core/errors.ts';
import type { Log } from '../../../src/core/ports.ts';
import { silentMetrics } from '../../../src/core/metrics.ts';
import { createShares, type Shares } from '../../../src/core/shares/shares.ts';
import { createGateway, type Gateway, type GatewayOptions } from '../../../src/gateway/gateway.ts';
import { joinFrame, parseDown } from '../../../src/protocol/frame-codec.ts';
import { SUBPROTOCOL, type DownFrame, type UpHeader } from '../../../src/protocol/frames.ts';
import { createRefusalLog } from '../../../src/web/origin.ts';
import { settle, type FakeClock } from '../../kit/clock.ts';
import { user } from '../../kit/core.ts';
import { openCore } from '../../kit/topology-core.ts';

/** Accepts tokens of the form `user:<id>:<scopes>[:<expiresAt>]`, and `admin`. Any other text is a bad token. */
export const authenticator: Authenticator = {
  async authenticate(token) {
    if (token === null) return null;
    if (token === 'admin') return { kind: 'admin', name: 'ops', expiresAt: null };
    const [kind, userId, scopes, expiresAt] = token.split(':');
    if (kind !== 'user' || !userId) throw new CallboardError('unauthenticated', 'The token is not valid.');
    return {
      kind: 'user',
      userId,
      scopes: new Set((scopes ?? '').split(',') as Scope[]),
      expiresAt: expiresAt === undefined ? null : Number(expiresAt),
    } satisfies Principal;
  },
};

export type Logged = { readonly level: string; readonly fields: Record<string, unknown>; readonly message: string };

export type Duration = { readonly name: string; readonly ms: number };

export type TestGateway = {
  readonly core: Core;
  readonly clock: FakeClock;
  readonly gateway: Gateway;
  readonly server: Server;
  readonly port: number;
  readonly counts: ReadonlyMap<string, number>;
  readonly logged: readonly Logged[];
  /** The durations that the gateway measured. */
  readonly durations: readonly Duration[];
  readonly peers: Peer[];
  readonly sockets: Socket[];
};

export type TestGatewayOptions = Partial<Omit<GatewayOptions, 'core'>> & {
  readonly wrap?: (core: Core) => Core;
  /** The shares, which are common to all cores of the deployment. */
  readonly shares?: Shares;
};

/** Starts a gateway on a real port, with a FakeClock. Behind it is a real core, or two cores of one deployment. */
export async function startGateway({ wrap, shares = createShares(), ...over }: TestGatewayOptions = {}): Promise<
  TestGateway & AsyncDisposable
> {
  const { core, clock, counts, [Symbol.asyncDispose]: stop } = await openCore({ shares });
  const logged: Logged[] = [];
  const durations: Duration[] = [];
  const at = (level: string) => (fields: Record<string, unknown>, message: string) =>
    void logged.push({ level, fields, message });
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  const metrics = {
    ...silentMetrics,
    observe(name: string, ms: number) {
      durations.push({ name, ms });
    },
    count(name: string, label?: string) {
      const key = label === undefined ? name : `${name}:${label}`;
      (counts as Map<string, number>).set(key, (counts.get(key) ?? 0) + 1);
    },
    snapshot: () => counts,
  };
  const gateway = createGateway({
    core: wrap ? wrap(core) : core,
    authenticator,
    log,
    metrics,
    clock,
    allowedOrigins: null,
    trustProxy: false,
    refused: createRefusalLog({ clock, log }),
    ...over,
  });
  const server = createServer((_request, response) => void response.writeHead(404).end());
  server.on('upgrade', (request, socket, head) => gateway.upgrade(request, socket, head));
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  const peers: Peer[] = [];
  const sockets: Socket[] = [];
  return {
    core,
    clock,
    gateway,
    server,
    port,
    counts,
    logged,
    durations,
    peers,
    sockets,
    async [Symbol.asyncDispose]() {
      for (const peer of peers) peer.ws.terminate();
      for (const socket of sockets) socket.destroy();
      await gateway.closeAll('draining');
      await stop();
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

/** The port to which peers connect, and the stack that closes the peers at the end of the test. */
export type GatewayAddress = Pick<TestGateway, 'port' | 'peers'>;
export type DownOf<T extends DownFrame['type']> = Extract<DownFrame, { type: T }>;
export type Closed = { readonly code: number; readonly reason: string };

/** A WebSocket that the test controls. Each received frame can be awaited once. */
export class Peer {
  readonly ws: WebSocket;
  readonly opened: Promise<void>;
  readonly closed: Promise<Closed>;
  /** All frames that were received, in order. */
  readonly all: DownFrame[] = [];
  #unread: DownFrame[] = [];
  #wake: () => void = () => {};
  #over = false;

  constructor({ port, peers }: GatewayAddress, options: ClientOptions & { readonly protocols?: string[] } = {}) {
    const { protocols = [SUBPROTOCOL], ...rest } = options;
    this.ws = new WebSocket(`ws://127.0.0.1:${port}/connect`, protocols, rest);
    peers.push(this);
    this.opened = new Promise((resolve, reject) => {
      this.ws.once('open', resolve);
      this.ws.once('error', reject);
    });
    this.opened.catch(() => {});
    this.ws.on('error', () => {});
    this.ws.on('message', (data) => {
      const frame = parseDown(String(data));
      if (!frame) throw new Error(`the relay sent what the protocol does not know: ${String(data)}`);
      this.all.push(frame);
      this.#unread.push(frame);
      this.#wake();
    });
    this.closed = new Promise((resolve) => {
      this.ws.once('close', (code, reason) => {
        this.#over = true;
        resolve({ code, reason: reason.toString() });
        this.#wake();
      });
    });
  }

  send(header: UpHeader, payload: unknown = undefined): void {
    this.raw(joinFrame(header, payload === undefined ? null : JSON.stringify(payload)));
  }

  raw(text: string | Buffer): void {
    this.ws.send(text);
  }

  /**
   * Resolves with the next unread frame of this type; frames of other types stay unread. Rejects when the socket closes
   * first.
   */
  async next<T extends DownFrame['type']>(type: T): Promise<DownOf<T>> {
    for (;;) {
      const index = this.#unread.findIndex((frame) => frame.type === type);
      const [found] = index < 0 ? [] : this.#unread.splice(index, 1);
      if (found) return found as DownOf<T>;
      if (this.#over) throw new Error(`closed without ${type}; got ${this.all.map((frame) => frame.type).join(' ')}`);
      await new Promise<void>((wake) => (this.#wake = wake));
    }
  }

  /** Returns the frames of this type that were received so far. */
  seen<T extends DownFrame['type']>(type: T): DownOf<T>[] {
    return this.all.filter((frame): frame is DownOf<T> => frame.type === type);
  }

  /** Waits for `bye` and for the close that follows it. */
  async end(): Promise<Closed & { readonly bye: DownOf<'bye'> | undefined }> {
    const closed = await this.closed;
    return { ...closed, bye: this.seen('bye')[0] };
  }

  /**
   * Resolves when the relay has handled everything that was sent before. It sends a frame that the relay refuses, and
   * then waits for the stores, because what earlier frames write may take longer than that refusal.
   */
  async sync(): Promise<void> {
    const ref = `sync-${this.all.length}-${Math.random().toString(36).slice(2)}`;
    this.send({ type: 'await', ref, client_id: 'nobody', command_id: 'nothing', within_ms: 0 });
    while ((await this.next('refused')).ref !== ref);
    await settle();
  }
}

export const ALICE = 'user:alice:connect,invoke,host';

/** Invokes an action of alice's client `tab` directly in core. */
export function invoke(
  { core }: TestGateway,
  commandId: string,
  over: Partial<InvokeRequest> = {},
): Promise<Invocation> {
  const request = { userId: 'alice', clientId: 'tab', action: 'open', params: null, commandId, ...over };
  return core.rpc.invoke(user('alice'), request);
}

export type HelloOver = {
  token?: string;
  client_id?: string;
  instance_id?: string;
  client_type?: 'browser' | 'console' | 'mobile' | 'web';
  link_attempt?: number;
  payload?: unknown;
};

/** Connects a client with one action, and resolves when it is welcomed. */
export async function client(at: GatewayAddress, over: HelloOver = {}): Promise<Peer & { welcome: DownOf<'welcome'> }> {
  const { payload = { actions: [{ name: 'open' }] }, ...header } = over;
  const peer = new Peer(at);
  await peer.opened;
  peer.send(
    { type: 'hello', token: ALICE, client_id: 'tab', instance_id: 'i1', client_type: 'browser', ...header },
    payload,
  );
  return Object.assign(peer, { welcome: await peer.next('welcome') });
}

/** Connects a caller, and resolves when it is welcomed. */
export async function caller(
  at: GatewayAddress,
  token = 'user:alice:invoke',
): Promise<Peer & { welcome: DownOf<'welcome'> }> {
  const peer = new Peer(at);
  await peer.opened;
  peer.send({ type: 'hello', token });
  return Object.assign(peer, { welcome: await peer.next('welcome') });
}

/** Sends a hand-written upgrade request and returns the answer, or `101` with the open socket. */
export async function upgrade(
  { port, sockets }: TestGateway,
  headers: Record<string, string>,
): Promise<{ readonly status: number; readonly body: string; readonly socket: Socket }> {
  const socket = connectTcp(port, '127.0.0.1');
  sockets.push(socket);
  const all = {
    Host: `127.0.0.1:${port}`,
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Protocol': SUBPROTOCOL,
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  socket.write(`GET /connect HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
  let text = '';
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    text += String(chunk);
    if (text.includes('\r\n\r\n') && text.startsWith('HTTP/1.1 101')) break;
  }
  return { status: Number(text.split(' ')[1]), body: text.split('\r\n\r\n')[1] ?? '', socket };
}
