/**
 * Runs a minimal relay for comparison in the call suites. It is nearly the fastest relay that Node allows: it has only
 * `ws` and a map, without checks, records or limits. Without a `mode`, it parses and serializes each message. In
 * `lines`, it forwards the payload's text and corks the writes of a turn of the event loop. In `echo`, it answers the
 * caller itself, without a client.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { WebSocketServer, type WebSocket } from 'ws';
import { z } from 'zod';
import type { Started } from '../lib/child.ts';
import { listen } from '../lib/listen.ts';
import { corked, splitLine } from '../lib/rpc.ts';

const OPTIONS = z.object({ mode: z.enum(['', 'lines', 'echo']).default('') });

/** The functions that handle each new socket of a client and of a caller. */
type Relay = {
  client(socket: WebSocket): void;
  caller(socket: WebSocket): void;
  request?(request: IncomingMessage, response: ServerResponse): void;
};

export async function start(given: unknown): Promise<Started> {
  const { mode } = OPTIONS.parse(given);
  const relay = mode === 'echo' ? echo() : mode === 'lines' ? lines() : plain();
  const server = createServer((request, response) => relay.request?.(request, response));
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: 1 << 20 });
  server.on('upgrade', (request, socket, head) =>
    sockets.handleUpgrade(request, socket, head, (link) =>
      request.url === '/client' ? relay.client(link) : relay.caller(link),
    ),
  );
  return { port: await listen(server) };
}

function echo(): Relay {
  const caller = (socket: WebSocket): void =>
    void socket.on('message', (data: Buffer) => socket.send(data, { binary: false }));
  return { client: caller, caller };
}

function lines(): Relay {
  const open = new Map<string, (payload: string) => void>();
  let toClient: (text: string) => void = () => {};
  let ids = 0;
  return {
    client(socket) {
      toClient = corked(socket);
      socket.on('message', (data: Buffer) => {
        const [id, payload] = splitLine(data.toString());
        open.get(id)?.(payload);
        open.delete(id);
      });
    },
    caller(socket) {
      const answer = corked(socket);
      socket.on('message', (data: Buffer) => {
        const [n, payload] = splitLine(data.toString());
        const id = (ids++).toString(36);
        open.set(id, (result) => answer(`${n}|${result}`));
        toClient(`${id}|${payload}`);
      });
    },
  };
}

type Call = { readonly n: number; readonly params: unknown };
type Done = { readonly id: string; readonly result: unknown };

function plain(): Relay {
  const open = new Map<string, (result: unknown) => void>();
  let client: WebSocket | null = null;
  let ids = 0;
  const call = (params: unknown, then: (result: unknown) => void): void => {
    const id = (ids++).toString(36);
    open.set(id, then);
    client?.send(JSON.stringify({ id, params }));
  };
  return {
    client(socket) {
      client = socket;
      socket.on('message', (data: Buffer) => {
        const { id, result } = JSON.parse(data.toString()) as Done;
        open.get(id)?.(result);
        open.delete(id);
      });
    },
    caller(socket) {
      socket.on('message', (data: Buffer) => {
        const { n, params } = JSON.parse(data.toString()) as Call;
        call(params, (result) => socket.send(JSON.stringify({ n, result })));
      });
    },
    request(request, response) {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        const { params } = JSON.parse(Buffer.concat(parts).toString()) as Call;
        call(params, (result) => {
          const text = JSON.stringify({ result });
          const length = Buffer.byteLength(text);
          response.writeHead(200, { 'content-type': 'application/json', 'content-length': length }).end(text);
        });
      });
    },
  };
}
