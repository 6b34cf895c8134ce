/**
 * Runs a minimal relay for HTTP callers, as a peer of the durable suite. It records each call in Redis in the simplest
 * way: in a history stream, a hash with the state, and the client's mailbox. In the `mode` `naive`, it awaits each
 * Redis command. In `auto`, ioredis pipelines the commands of one step.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Redis } from 'ioredis';
import { WebSocketServer, type WebSocket } from 'ws';
import { z } from 'zod';
import type { Started } from '../lib/child.ts';
import { listen } from '../lib/listen.ts';

const OPTIONS = z.object({ mode: z.enum(['naive', 'auto']), redis: z.string() });
/** The time after which Redis removes the rows of a call, in seconds. It is longer than a measurement. */
const KEPT_SECONDS = 60;

type Step = readonly [command: string, ...args: (string | number)[]];
type Done = { readonly id: string; readonly result: unknown };

export async function start(given: unknown): Promise<Started> {
  const { mode, redis: url } = OPTIONS.parse(given);
  const redis = new Redis(url, { enableAutoPipelining: mode === 'auto' });
  const run = async (steps: readonly Step[]): Promise<readonly unknown[]> => {
    if (mode === 'auto') return Promise.all(steps.map(([command, ...args]) => redis.call(command, ...args)));
    const answers: unknown[] = [];
    for (const [command, ...args] of steps) answers.push(await redis.call(command, ...args));
    return answers;
  };
  const open = new Map<string, { readonly mail: string; answer(result: unknown): void }>();
  let client: WebSocket | null = null;
  let ids = 0;
  const server = createServer((request, response) => {
    body(request, async (text) => {
      const id = (ids++).toString(36);
      const { params } = JSON.parse(text) as { readonly params: unknown };
      const [, , mail] = await run(begun(id, JSON.stringify(params)));
      open.set(id, { mail: String(mail), answer: (result) => answered(response, result) });
      client?.send(JSON.stringify({ id, params }));
    });
  });
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  server.on('upgrade', (request, socket, head) =>
    sockets.handleUpgrade(request, socket, head, (link) => {
      client = link;
      link.on('message', async (data: Buffer) => {
        const { id, result } = JSON.parse(data.toString()) as Done;
        const call = open.get(id);
        open.delete(id);
        await run(finished(id, call?.mail ?? '', JSON.stringify(result)));
        call?.answer(result);
      });
    }),
  );
  return { port: await listen(server) };
}

function begun(id: string, params: string): Step[] {
  return [
    ['XADD', `history:${id}`, '*', 'event', 'created', 'at', Date.now()],
    ['HSET', `call:${id}`, 'status', 'pending', 'params', params],
    ['XADD', 'mail:c0', '*', 'id', id],
  ];
}

function finished(id: string, mail: string, result: string): Step[] {
  return [
    ['XADD', `history:${id}`, '*', 'event', 'delivered', 'at', Date.now()],
    ['XADD', `history:${id}`, '*', 'event', 'completed', 'at', Date.now()],
    ['HSET', `call:${id}`, 'status', 'completed', 'result', result],
    ['XDEL', 'mail:c0', mail],
    ['EXPIRE', `history:${id}`, KEPT_SECONDS],
    ['EXPIRE', `call:${id}`, KEPT_SECONDS],
  ];
}

function body(request: IncomingMessage, then: (text: string) => Promise<void>): void {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => void then(Buffer.concat(parts).toString()));
}

function answered(response: ServerResponse, result: unknown): void {
  const text = JSON.stringify({ result });
  const length = Buffer.byteLength(text);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': length }).end(text);
}
