/** Runs Node's HTTP server: timeouts, keep-alive, TLS and shutdown. It knows no route. */
import { createServer, type Server, type ServerOptions } from 'node:http';
import {
  Server as HttpsServer,
  createServer as createHttpsServer,
  type ServerOptions as HttpsOptions,
} from 'node:https';
import { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { RequestHandler } from './request-handler.ts';

const HEADERS_MS = 10_000;
/** The timeout for receiving a whole request, in milliseconds; responses and streams may take longer. */
const REQUEST_MS = 30_000;
const KEEP_ALIVE_MS = 10_000;
const KEEP_ALIVE_BUFFER_MS = 1_000;
const CHECK_MS = 5_000;
/** The greatest number of headers of a request. Node.js ignores the rest. */
const HEADERS_MAX = 100;
/** How long responses in progress may take after the server starts to close, in milliseconds. */
const CLOSE_MS = 1_000;

export type HttpServer = {
  /** Resolves with the address when connections are accepted; rejects, for example, if the port is in use. */
  listen(at: {
    readonly host: string;
    readonly port: number;
    /** A file descriptor of a listening socket to use instead; `host` then only appears in the URL. */
    readonly fd?: number | undefined;
  }): Promise<{ readonly url: string; readonly port: number }>;
  /** Accepts no more connections, gives responses in progress one second, then closes their connections. Idempotent. */
  close(): Promise<void>;
  /** Accepts no more connections and destroys all that have not been upgraded, with the responses in progress. */
  abort(): void;
  /** Serves this certificate to new connections. Throws if the server has no TLS or the texts do not fit together. */
  replaceCertificate(certificate: Certificate): void;
};

export type HttpServerOptions = {
  readonly keepAliveMs?: number;
  readonly bufferMs?: number;
  /** The certificate; null (the default): the server does not use TLS. */
  readonly tls?: Certificate | null;
  /**
   * See `Backend.onRecord`. If it is set, no byte is written to a socket before. Responses, event streams and links all
   * write to these sockets.
   */
  readonly onRecord?: OnRecord | undefined;
};

/** Calls its argument once everything that was decided so far is recorded. */
export type OnRecord = (run: () => void) => void;

/**
 * Creates the HTTP server. Connections may stay open for `keepAliveMs` between two requests, which is announced in
 * `Keep-Alive`, and for `bufferMs` more, which is not announced. Milliseconds; defaults 10 s and 1 s.
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
    // `requireHost` checks the header instead, so the refusal has a body.
    requireHostHeader: false,
  };
  const server = tls ? createTlsServer(handler, tls, options) : createServer(options, handler.request);
  server.maxHeadersCount = HEADERS_MAX;
  if (onRecord) server.on(tls ? 'secureConnection' : 'connection', holdingBack(onRecord));
  server.on('connection', handler.connection);
  server.on('upgrade', handler.upgrade);
  server.on('checkExpectation', handler.expectation);
  server.on('connect', handler.tunnel);
  server.on('clientError', handler.broken);
  server.on('timeout', closeUnlessUsed);
  return {
    listen: (at) => listen(server, at, tls ? 'https' : 'http'),
    close: () => close(server),
    abort() {
      server.close();
      server.closeAllConnections();
    },
    replaceCertificate: (certificate) => replaceCertificate(server, certificate),
  };
}

/**
 * Returns a function that makes a socket write nothing before `onRecord` allows it. It replaces the methods with which
 * every writable stream hands its bytes on, so that no way to write passes by. What waits counts as unread, as usual.
 * The function may be called more than once for a socket.
 */
export function holdingBack(onRecord: OnRecord): (socket: Socket) => void {
  function write(this: Socket, chunk: unknown, encoding: BufferEncoding, done: Written): void {
    onRecord(() => Socket.prototype._write.call(this, chunk, encoding, done));
  }
  function writeMany(this: Socket, chunks: Chunks, done: Written): void {
    onRecord(() => Socket.prototype._writev?.call(this, chunks, done));
  }
  return (socket) => void Object.assign(socket, { _write: write, _writev: writeMany });
}

type Written = (error?: Error | null) => void;
type Chunks = { chunk: unknown; encoding: BufferEncoding }[];

/**
 * Closes a connection whose keep-alive time is over, unless its next request has arrived. Timers run before sockets are
 * read, so after the process has stalled the request may wait unread, and closing the connection would reset it.
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

async function close(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
  await closed;
  clearTimeout(cut);
}

// The HTTP server with TLS. It only adds TLS: requests are handled as without it.

/** A certificate and its key as PEM texts. The certificate may be followed by its chain. */
export type Certificate = { readonly cert: string; readonly key: string };

/** How long a peer may take to complete the TLS handshake before it is disconnected. Milliseconds. */
const HANDSHAKE_MS = 10_000;
const TLS = { minVersion: 'TLSv1.2', handshakeTimeout: HANDSHAKE_MS, ALPNProtocols: ['http/1.1'] } as const;

/**
 * Creates the HTTP server with TLS. Sockets count as accepted before their handshake, so peers that never complete it
 * are bounded like others. After the handshake the handler learns which socket replaces the accepted one.
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
  // A failed handshake ends its own connection only.
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  return server;
}

/** Throws if the server has no TLS or the texts do not fit together; then nothing changes. */
function replaceCertificate(server: unknown, certificate: Certificate): void {
  if (!(server instanceof HttpsServer)) throw new Error('The relay was opened without TLS.');
  server.setSecureContext({ ...certificate, minVersion: TLS.minVersion });
}

/** Returns the remote address and port, which tell the open connections of a listening socket apart. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
