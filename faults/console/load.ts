/** Starts the process that holds clients and makes calls, and sends it requests. */
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { startChild } from '../lib/child.ts';
import { ADMIN_TOKEN, SECRET, type Relay } from '../lib/relay.ts';

export const CONNECT = z.object({
  ...{ link: z.string(), url: z.string(), secret: z.string(), token: z.string() },
  ...{ clients: z.number(), perUser: z.number() },
});
export type Connecting = z.infer<typeof CONNECT>;
export const RATE = z.object({
  ...{ url: z.string(), token: z.string(), perSecond: z.number() },
  ...{ clients: z.number(), perUser: z.number() },
});
const STATE = z.object({ made: z.number(), connected: z.number(), wrong: z.string().nullable() });

/** A client that was connected and called before the load began, and is no longer connected. */
export const GONE = { userId: 'user-gone', clientId: 'client-gone' };
/** The command id of the first call to GONE. */
export const GONE_CALL = 'first-call';

interface ConsoleLoad extends AsyncDisposable {
  /** Sets the number of calls per second from now on; 0 stops them. */
  rate(perSecond: number): Promise<void>;
  /** Returns the number of ended calls, the number of connected clients, and the first problem. */
  state(): Promise<z.infer<typeof STATE>>;
}

const ENTRY = fileURLToPath(new URL('load-process.ts', import.meta.url));
const PER_USER = 10;
/**
 * The timeout for connecting all clients, in milliseconds. Ten thousand connections take longer than other requests.
 */
const CONNECT_MS = 300_000;

/**
 * Connects this many clients, ten of each user, and the client GONE, which then disconnects. Each of the clients fails
 * a part of its calls.
 */
export async function openConsoleLoad(relay: Relay, clients: number): Promise<ConsoleLoad> {
  const child = await startChild(ENTRY);
  const { url, linkUrl: link } = relay;
  const connecting: Connecting = { link, url, secret: SECRET, token: ADMIN_TOKEN, clients, perUser: PER_USER };
  await child.ask('connect', connecting, z.number(), CONNECT_MS);
  return {
    async rate(perSecond) {
      await child.ask('rate', { url, token: ADMIN_TOKEN, perSecond, clients, perUser: PER_USER }, z.null());
    },
    state: () => child.ask('state', null, STATE),
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}
