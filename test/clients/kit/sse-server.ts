/** Starts an HTTP server whose event streams a test writes itself. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

export type SseConnection = {
  readonly request: IncomingMessage;
  /** The response of the connection: an event stream, or a complete answer. */
  readonly response: ServerResponse;
  /** Opens the event stream and writes these frames. */
  open(...frames: readonly string[]): void;
  /** Resolves when the client disconnected. */
  readonly gone: Promise<void>;
};

export type ScriptedServer = AsyncDisposable & {
  readonly url: string;
  /** Resolves with the next connection. */
  connection(): Promise<SseConnection>;
  /** The number of connections so far. */
  readonly connections: number;
  /** The JSON bodies of the POSTs so far. */
  readonly bodies: unknown[];
};

/** Starts an HTTP server that answers only what the test writes. */
export async function startScriptedServer(): Promise<ScriptedServer> {
  const queue: SseConnection[] = [];
  const waiting: ((connection: SseConnection) => void)[] = [];
  const bodies: unknown[] = [];
  let connections = 0;
  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    connections += 1;
    if (request.method === 'POST') bodies.push(JSON.parse(await text(request)));
    const connection = connectionOf(request, response);
    const next = waiting.shift();
    if (next) next(connection);
    else queue.push(connection);
  }
  const server = createServer((request, response) => void take(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  return {
    url: `http://127.0.0.1:${address.port}`,
    bodies,
    get connections() {
      return connections;
    },
    connection() {
      const connection = queue.shift();
      return connection ? Promise.resolve(connection) : new Promise((resolve) => waiting.push(resolve));
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

function connectionOf(request: IncomingMessage, response: ServerResponse): SseConnection {
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  response.on('close', resolve);
  response.on('error', () => {});
  return {
    request,
    response,
    gone,
    open(...frames) {
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
      response.flushHeaders();
      for (const frame of frames) response.write(frame);
    },
  };
}

export const READY = 'event: callboard.ready\ndata: {}\n\n';

export function eventFrame(name: string, data: unknown, missed = 0): string {
  const text = { name, data, message_id: `m-${name}`, published_at: '2026-01-01T00:00:00.000Z', missed };
  return `event: ${name}\nid: m-${name}\ndata: ${JSON.stringify(text)}\n\n`;
}

export function closedFrame(code: string): string {
  return `event: callboard.closed\ndata: ${JSON.stringify({ code })}\n\n`;
}
