/** Starts an HTTP server of a benchmark on a free port. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Listens on a free port of the loopback address and returns the port. */
export async function listen(server: Server | RequestListener): Promise<number> {
  const at = typeof server === 'function' ? createServer(server) : server;
  at.listen({ port: 0, host: '127.0.0.1', backlog: 4096 });
  await once(at, 'listening');
  return (at.address() as AddressInfo).port;
}
