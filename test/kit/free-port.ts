/** Finds ports for servers that are started later, and that keep their port through restarts. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** The lowest port that is returned. It is above all ports to which `fetch` and browsers refuse to connect (10,080). */
const FIRST = 11_000;
/**
 * The end of the range. Systems give higher ports to outgoing connections and to servers on port 0: Linux from 32,768,
 * others from 49,152. So none of these takes a returned port before its server listens.
 */
const END = 32_000;

/** Returns a random loopback port on which nothing listens now. A server with a fixed port may still take it. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, END);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false;
    throw error;
  }
  server.close();
  await once(server, 'close');
  return true;
}
