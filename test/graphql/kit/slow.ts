/** Reads an HTTP response slowly, for tests of buffers. */
import { request, type IncomingMessage } from 'node:http';
import type { GraphqlServer } from './graphql-server.ts';

/** A reader that receives nothing until it is resumed. */
export type SlowReader = {
  /** Resolves when no more bytes arrive, because the sockets between the relay and the reader are full. */
  blocked(): Promise<void>;
  resume(): void;
  until(part: string): Promise<void>;
  /** Returns the numbers before the colons of `text`, in order. */
  numbers(): number[];
  pings(): number;
  destroy(): void;
};

export async function openPaused(
  server: GraphqlServer,
  body: { query: string; variables?: unknown },
): Promise<SlowReader> {
  const response = await openResponse(server, JSON.stringify(body));
  const { socket } = response;
  let text = '';
  let wake = (): void => {};
  response.on('data', (chunk: Buffer) => {
    // Padding is long, and no test looks at it.
    text += chunk.toString('latin1').replace(/x{2,}/g, '');
    wake();
  });
  response.on('error', () => {});
  response.pause();
  return {
    async blocked() {
      for (let same = 0, before = -1; same < 50;) {
        await new Promise((done) => setImmediate(done));
        same = socket.bytesRead === before ? same + 1 : 0;
        before = socket.bytesRead;
      }
    },
    resume: () => void response.resume(),
    async until(part) {
      while (!text.includes(part)) await new Promise<void>((done) => (wake = done));
    },
    numbers: () => [...text.matchAll(/"text":"(\d+):/g)].map(([, n]) => Number(n)),
    pings: () => text.split(':\n\n').length - 1,
    destroy: () => void response.destroy(),
  };
}

function openResponse(server: GraphqlServer, body: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { accept: 'text/event-stream', 'content-type': 'application/json', authorization: 'Bearer alice' };
    request(server.url, { method: 'POST', headers, agent: false }, resolve).on('error', reject).end(body);
  });
}
