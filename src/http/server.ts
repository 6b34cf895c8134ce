/** The HTTP server of Node: timeouts, keep-alive and shutdown. It knows no route. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { RequestHandler } from './request-handler.ts';

const HEADERS_MS = 10_000;
/** The timeout for receiving a whole request, in milliseconds; responses and streams may take longer. */
const REQUEST_MS = 30_000;
const KEEP_ALIVE_MS = 10_000;
const KEEP_ALIVE_BUFFER_MS = 1_000;
const CHECK_MS = 5_000;
const HEADERS_MAX = 100;
/** How long responses in progress may take after the server starts to close, in milliseconds. */
const CLOSE_MS = 1_000;

export type HttpServer = {
  /**
   * Resolves with the address when the server accepts connections; rejects if it cannot listen, for example on a port
   * in use.
   */
  listen(at: {
    readonly host: string;
    readonly port: number;
    /** A listening socket that the process was started with; host and port then only name it in the URL. */
    readonly fd?: number | undefined;
  }): Promise<{ readonly url: string; readonly port: number }>;
  /** Accepts no more connections, gives responses in progress one second, then closes their connections. Idempotent. */
  close(): Promise<void>;
};

/**
 * Connections may stay open for `keepAliveMs` between two requests, which is announced in `Keep-Alive`, and for
 * `bufferMs` more, which is not announced. Milliseconds; defaults 10 s and 1 s.
 */
export function createHttpServer(
  front: RequestHandler,
  { keepAliveMs = KEEP_ALIVE_MS, bufferMs = KEEP_ALIVE_BUFFER_MS } = {},
): HttpServer {
  const server = createServer(
    {
      headersTimeout: HEADERS_MS,
      requestTimeout: REQUEST_MS,
      keepAliveTimeout: keepAliveMs,
      keepAliveTimeoutBuffer: bufferMs,
      connectionsCheckingInterval: CHECK_MS,
      shouldUpgradeCallback: front.shouldUpgrade,
      // `requireHost` checks the header instead, so the refusal has a body.
      requireHostHeader: false,
    },
    front.request,
  );
  server.maxHeadersCount = HEADERS_MAX;
  server.on('connection', front.connection);
  server.on('upgrade', front.upgrade);
  server.on('checkExpectation', front.expectation);
  server.on('connect', front.tunnel);
  server.on('clientError', front.broken);
  server.on('timeout', closeUnlessUsed);
  return { listen: (at) => listen(server, at), close: () => close(server) };
}

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

async function listen(server: Server, { host, port, fd }: Parameters<HttpServer['listen']>[0]) {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    const at = fd === undefined ? { port, host: host.replace(/^\[(.*)\]$/, '$1') } : { fd };
    server.listen(at, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const address = server.address();
  const bound = isAddress(address) ? address.port : port;
  return { url: `http://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${bound}`, port: bound };
}

function isAddress(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === 'object' && address !== null;
}

async function close(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
  await closed;
  clearTimeout(cut);
}
