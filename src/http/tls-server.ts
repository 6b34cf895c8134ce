/** The HTTP server with TLS. It only adds TLS: requests are handled as without it. */
import { createServer, Server, type ServerOptions } from 'node:https';
import type { ServerOptions as HttpOptions } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { RequestHandler } from './request-handler.ts';

/** A certificate and its key as PEM texts. The certificate may be followed by its chain. */
export type Certificate = { readonly cert: string; readonly key: string };

/** How long a peer may take to complete the TLS handshake before it is disconnected. Milliseconds. */
const HANDSHAKE_MS = 10_000;
const TLS = { minVersion: 'TLSv1.2', handshakeTimeout: HANDSHAKE_MS, ALPNProtocols: ['http/1.1'] } as const;

/**
 * Creates the HTTP server with TLS. Sockets count as accepted before their handshake, so peers that never complete it
 * are bounded like others. After the handshake the handler learns which socket replaces the accepted one.
 */
export function createTlsServer(handler: RequestHandler, certificate: Certificate, options: HttpOptions): Server {
  const merged: ServerOptions = { ...options, ...TLS, ...certificate };
  const server = createServer(merged, handler.request);
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
export function replaceCertificate(server: unknown, certificate: Certificate): void {
  if (!(server instanceof Server)) throw new Error('The relay was opened without TLS.');
  server.setSecureContext({ ...certificate, minVersion: TLS.minVersion });
}

/** Returns the remote address and port, which tell the open connections of a listening socket apart. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
