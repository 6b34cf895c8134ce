/**
 * Serves the relay over HTTP: in its own Node server (timeouts, keep-alive, TLS and shutdown), or below a base path in
 * the server of a host program. It knows no routes.
 */
import { IncomingMessage, ServerResponse, createServer, type Server, type ServerOptions } from 'node:http';
import {
  Server as HttpsServer,
  createServer as createHttpsServer,
  type ServerOptions as HttpsOptions,
} from 'node:https';
import { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { fail } from '../core/errors.ts';
import { KEEP_ALIVE_MS } from '../core/limits.ts';
import type { RequestHandler } from './request-handler.ts';
import { pathOf } from './request-info.ts';

const HEADERS_MS = 10_000;
/** The timeout for receiving a whole request, in milliseconds. Responses and streams may take longer. */
const REQUEST_MS = 30_000;
const KEEP_ALIVE_BUFFER_MS = 1_000;
const CHECK_MS = 5_000;
/** The maximum number of headers of a request. Node.js ignores the rest. */
const HEADERS_MAX = 100;
/** How long responses in progress may take after closing begins, in milliseconds. */
const CLOSE_MS = 1_000;

export type HttpServer = {
  /**
   * Resolves with the address when the server accepts connections. Rejects if it cannot, for example because the port
   * is in use.
   */
  listen(at: {
    readonly host: string;
    readonly port: number;
    /**
     * A file descriptor of a socket that is already listening, to use instead of opening one. `host` then only appears
     * in the URL.
     */
    readonly fd?: number | undefined;
  }): Promise<{ readonly url: string; readonly port: number }>;
  /**
   * Stops accepting connections, gives responses in progress one second, and then closes all connections. Idempotent.
   */
  close(): Promise<void>;
  /**
   * Stops accepting connections and destroys all that have not been upgraded, including those with a response in
   * progress.
   */
  abort(): void;
  /**
   * Uses this certificate for new connections. Throws if the server has no TLS, or if certificate and key do not fit
   * together.
   */
  replaceCertificate(certificate: Certificate): void;
};

type HttpServerOptions = {
  readonly keepAliveMs?: number | undefined;
  readonly bufferMs?: number;
  /** The certificate; null (the default): the server does not use TLS. */
  readonly tls?: Certificate | null;
  /**
   * See `Backend.onRecord`. If it is set, all writes to the server's sockets wait for it: those of responses, event
   * streams and links.
   */
  readonly onRecord?: OnRecord | undefined;
};

/** See `Backend.onRecord`. */
type OnRecord = (run: () => void, holder?: { destroy(): void }) => void;

/**
 * Creates the HTTP server. A connection may stay open without a request for `keepAliveMs`, which `Keep-Alive`
 * announces, and for a further `bufferMs`, which is not announced. Both are in milliseconds; the defaults are 10 s and
 * 1 s.
 */
export function createHttpServer(
  handler: RequestHandler,
  { keepAliveMs = KEEP_ALIVE_MS, bufferMs = KEEP_ALIVE_BUFFER_MS, tls = null, onRecord }: HttpServerOptions = {},
): HttpServer {
  const options: ServerOptions = {
    headersTimeout: HEADERS_MS,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: keepAliveMs,
    keepAliveTimeoutBuffer: bufferMs,
    connectionsCheckingInterval: CHECK_MS,
    shouldUpgradeCallback: handler.shouldUpgrade,
    // Node need not check the header: `requireHost` does, and its refusal has a body.
    requireHostHeader: false,
  };
  const server = tls ? createTlsServer(handler, tls, options) : createServer(options, handler.request);
  server.maxHeadersCount = HEADERS_MAX;
  if (onRecord) server.on(tls ? 'secureConnection' : 'connection', holdingBack(onRecord));
  server.on('connection', handler.connection);
  server.on('upgrade', handler.upgrade);
  server.on('checkContinue', handler.continuing);
  server.on('checkExpectation', handler.expectation);
  server.on('connect', handler.tunnel);
  server.on('clientError', handler.broken);
  server.on('timeout', closeUnlessUsed);
  return {
    listen: (at) => listen(server, at, tls ? 'https' : 'http'),
    close: () => close(server, onRecord),
    abort() {
      server.close();
      server.closeAllConnections();
    },
    replaceCertificate: (certificate) => replaceCertificate(server, certificate),
  };
}

/**
 * Returns a function that makes a socket delay all writes until `onRecord` allows them. The function replaces `_write`
 * and `_writev`, through which all bytes of a stream pass, because Node has no option or event for this. Delayed bytes
 * count as unread, like others. The function may be called more than once for a socket.
 */
export function holdingBack(onRecord: OnRecord): (socket: Socket) => void {
  function write(this: Socket, chunk: unknown, encoding: BufferEncoding, done: Written): void {
    onRecord(() => Socket.prototype._write.call(this, chunk, encoding, done), this);
  }
  function writeMany(this: Socket, chunks: Chunks, done: Written): void {
    onRecord(() => Socket.prototype._writev?.call(this, chunks, done), this);
  }
  return (socket) => void Object.assign(socket, { _write: write, _writev: writeMany });
}

type Written = (error?: Error | null) => void;
type Chunks = { chunk: unknown; encoding: BufferEncoding }[];

/**
 * Closes a connection whose keep-alive time is over, unless its next request has arrived. Node runs timers before it
 * reads sockets. After the process has stalled, a request may therefore wait unread, and closing its connection would
 * reset it.
 */
function closeUnlessUsed(socket: Socket): void {
  const { bytesRead } = socket;
  setImmediate(() => {
    if (socket.bytesRead === bytesRead) socket.destroy();
  });
}

async function listen(server: Server, { host, port, fd }: Parameters<HttpServer['listen']>[0], scheme: string) {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    const at = fd === undefined ? { port, host: host.replace(/^\[(.*)\]$/, '$1') } : { fd };
    server.listen(at, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const address = server.address();
  const bound = typeof address === 'object' && address !== null ? address.port : port;
  const name = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
  return { url: `${scheme}://${name}:${bound}`, port: bound };
}

async function close(server: Server, onRecord?: OnRecord): Promise<void> {
  // A server that closes destroys each connection whose response has ended, even if some of the response's bytes are
  // still delayed.
  if (onRecord) await recorded(onRecord);
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
  await closed;
  clearTimeout(cut);
}

/** Resolves when every write that is delayed now was made or its socket destroyed, and after CLOSE_MS at the latest. */
async function recorded(onRecord: OnRecord): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const late = setTimeout(resolve, CLOSE_MS);
  onRecord(resolve, { destroy: resolve });
  await promise;
  clearTimeout(late);
}

// The HTTP server with TLS. Requests are handled in the same way as without TLS.

/** A certificate and its key as PEM texts. The certificate may be followed by its chain. */
export type Certificate = { readonly cert: string; readonly key: string };

/** The timeout of the TLS handshake in milliseconds, after which the peer is disconnected. */
const HANDSHAKE_MS = 10_000;
const TLS = { minVersion: 'TLSv1.2', handshakeTimeout: HANDSHAKE_MS, ALPNProtocols: ['http/1.1'] } as const;

/**
 * Creates the HTTP server with TLS. A socket counts as accepted before its handshake, so the number of peers that never
 * complete theirs is bounded too. After the handshake, the handler learns which socket replaces the accepted one.
 */
function createTlsServer(handler: RequestHandler, certificate: Certificate, options: ServerOptions): HttpsServer {
  const merged: HttpsOptions = { ...options, ...TLS, ...certificate };
  const server = createHttpsServer(merged, handler.request);
  const handshakes = new Map<string, Socket>();
  server.on('connection', (socket: Socket) => {
    const peer = peerOf(socket);
    handshakes.set(peer, socket);
    socket.once('close', () => {
      if (handshakes.get(peer) === socket) handshakes.delete(peer);
    });
  });
  server.on('secureConnection', (secured: TLSSocket) => {
    const peer = peerOf(secured);
    const socket = handshakes.get(peer);
    handshakes.delete(peer);
    if (socket) handler.secured(socket, secured);
  });
  // A failed handshake closes only its own connection.
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  return server;
}

/** Throws, and changes nothing, if the server has no TLS or if certificate and key do not fit together. */
function replaceCertificate(server: unknown, certificate: Certificate): void {
  if (!(server instanceof HttpsServer)) throw new Error('The relay was opened without TLS.');
  server.setSecureContext({ ...certificate, minVersion: TLS.minVersion });
}

/** Returns the remote address and port, which identify an open connection of one listening socket. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

// Serves the relay in the HTTP server of a host program. The events of requests below the base path go to the relay and
// not to the program's listeners. All other events reach the program unchanged.

/** A server of `node:http` or `node:https`, listening or not. */
export type HostServer = Server | HttpsServer;

export type Attachment = {
  /** The URL of the base path; null while the server does not listen on a port. */
  readonly url: string | null;
  /** Stops taking requests, and gives responses in progress one second. The server keeps running without the relay. */
  close(): Promise<void>;
  /** Stops taking requests, and destroys the sockets of those in progress. */
  abort(): void;
};

/** Node 24.9 and later call this member of a server to decide whether to accept an upgrade. Node's types lack it. */
type AskedToUpgrade = { shouldUpgradeCallback?: (request: IncomingMessage) => boolean };

type AttachHandlerOptions = {
  readonly handler: RequestHandler;
  /** The path below which requests and upgrades belong to the relay. */
  readonly basePath: string;
  /**
   * See `Backend.onRecord`. If it is set, all writes to a socket wait for it after the first request to the relay over
   * that socket. This includes later responses of the host program over the same socket.
   */
  readonly onRecord?: OnRecord | undefined;
};

/**
 * Passes the requests and upgrades below `basePath` to the handler. Throws `invalid_argument` if `basePath` is the root
 * or not a path, or if this version of Node.js cannot leave the program's own upgrades alone.
 */
export function attachHandler(server: HostServer, { handler, basePath, onRecord }: AttachHandlerOptions): Attachment {
  if (!/^(\/[^/?#\s]+)+$/.test(basePath)) fail('invalid_argument', 'basePath: expected a path such as /relay.');
  const own = createOwnRequests(handler);
  const holdBack = onRecord && holdingBack(onRecord);
  const isOwn = (request: IncomingMessage): boolean => pathOf(request, basePath) !== null;
  const stopUpgrades = takeUpgrades(server, (request) => isOwn(request) && handler.shouldUpgrade(request));
  const stopRequests = interceptEvents(server, (event, [request, ...rest]) => {
    if (!(request instanceof IncomingMessage) || !isOwn(request)) return false;
    holdBack?.(request.socket);
    return own.take(event, request, rest);
  });
  const detach = (): void => {
    stopRequests();
    stopUpgrades();
  };
  return {
    get url() {
      const origin = originOf(server);
      return origin === null ? null : origin + basePath;
    },
    async close() {
      detach();
      await own.end(CLOSE_MS);
    },
    abort() {
      detach();
      own.destroy();
    },
  };
}

/**
 * Handles requests to the relay over sockets that the host program owns. A socket counts for the relay only while a
 * request to the relay is in progress over it. The relay therefore never closes a socket that serves only the program.
 */
function createOwnRequests(handler: RequestHandler) {
  const inProgress = new Map<ServerResponse, Socket>();
  const sockets = new Map<Socket, number>();

  const handle = (request: IncomingMessage, response: ServerResponse, run: RequestHandler['request']): void => {
    const { socket } = request;
    const before = sockets.get(socket) ?? 0;
    if (before === 0) handler.connection(socket);
    sockets.set(socket, before + 1);
    inProgress.set(response, socket);
    response.once('close', () => {
      inProgress.delete(response);
      const left = (sockets.get(socket) ?? 1) - 1;
      if (left > 0) return void sockets.set(socket, left);
      sockets.delete(socket);
      handler.released(socket);
    });
    run(request, response);
  };

  return {
    /** Handles an event of a request to the relay. Returns false for an event that the relay does not handle. */
    take(event: string, request: IncomingMessage, [second, head]: readonly unknown[]): boolean {
      if (event === 'upgrade' && second instanceof Socket && Buffer.isBuffer(head)) {
        handler.connection(second);
        handler.upgrade(request, second, head);
        return true;
      }
      if (!(second instanceof ServerResponse)) return false;
      if (event === 'checkExpectation') handle(request, second, handler.expectation);
      else if (event === 'request') handle(request, second, handler.request);
      else if (event === 'checkContinue') handle(request, second, handler.continuing);
      else return false;
      return true;
    },
    /**
     * Resolves when no request is in progress. After `withinMs` milliseconds, destroys the sockets of the remaining
     * requests.
     */
    async end(withinMs: number): Promise<void> {
      const closed = [...inProgress.keys()].map(
        (response) => new Promise<void>((resolve) => response.once('close', () => resolve())),
      );
      const cut = setTimeout(() => this.destroy(), withinMs);
      await Promise.all(closed);
      clearTimeout(cut);
    },
    destroy(): void {
      for (const socket of inProgress.values()) socket.destroy();
    },
  };
}

/**
 * Calls `take` for each event of the server before all listeners, including those added later. If `take` returns true,
 * the listeners do not receive the event. Returns a function that removes the interception.
 */
function interceptEvents(server: HostServer, take: (event: string, values: readonly unknown[]) => boolean): () => void {
  const emit = server.emit;
  let active = true;
  const intercepted = function (this: HostServer, event: string, ...values: readonly unknown[]): boolean {
    if (active && take(event, values)) return true;
    return Reflect.apply(emit, this, [event, ...values]);
  };
  Object.assign(server, { emit: intercepted });
  return () => {
    active = false;
    // Another library may have replaced `emit` since then and call this function from its own. In that case `emit`
    // stays, and `active` makes this function pass all events on.
    if (Object.is(server.emit, intercepted)) Object.assign(server, { emit });
  };
}

/**
 * Makes the server accept upgrades for the relay, and decide about others as before. Returns a function that undoes
 * this.
 */
function takeUpgrades(server: HostServer & AskedToUpgrade, isOwn: (request: IncomingMessage) => boolean): () => void {
  const asked = server.shouldUpgradeCallback;
  if (!asked) fail('invalid_argument', 'Use Node 24.9 or newer to attach a relay to a server.');
  // Node.js drops an upgrade for which the server has no listener.
  const listener = (): void => undefined;
  let active = true;
  const shouldUpgrade = (request: IncomingMessage): boolean => {
    if (active && isOwn(request)) return true;
    // By default, a server accepts upgrades if it has a listener for them. The listener above is removed for a moment,
    // because it must not count as one of the program's.
    server.off('upgrade', listener);
    const accepted = asked.call(server, request);
    if (active) server.on('upgrade', listener);
    return accepted;
  };
  server.on('upgrade', listener);
  server.shouldUpgradeCallback = shouldUpgrade;
  return () => {
    active = false;
    server.off('upgrade', listener);
    if (server.shouldUpgradeCallback === shouldUpgrade) server.shouldUpgradeCallback = asked;
  };
}

function originOf(server: HostServer): string | null {
  const address = server.address();
  if (typeof address !== 'object' || address === null) return null;
  const everywhere = address.address === '::' || address.address === '0.0.0.0';
  const host = everywhere ? '127.0.0.1' : address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `${server instanceof HttpsServer ? 'https' : 'http'}://${host}:${address.port}`;
}
