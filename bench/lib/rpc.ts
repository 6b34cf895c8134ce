/** The call that the call suites make: an action that returns its params. */
import { WebSocket } from 'ws';
import { z } from 'zod';

export const USER = 'u1';
export const ACTION = 'echo';
/** Unfinished calls at any time: as many as two clients may have. */
export const IN_FLIGHT = 64;
/** JSON of 200 bytes. */
export const PAYLOAD = { text: 'p'.repeat(189) } as const;
export const PAYLOAD_TEXT = JSON.stringify(PAYLOAD);

/** The clients that share the calls: a link has at most 32 unfinished commands. */
export const CLIENT_IDS: readonly string[] = clientIds(2);

export function clientIds(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `c${i}`);
}

/**
 * How an endpoint speaks to its relay. `bare`: the protocol written by hand. `library`: the relay's own client library.
 */
export const END = z.object({
  kind: z.enum(['ws', 'lines', 'echo', 'socket.io', 'nats', 'bare', 'library']),
  port: z.number(),
  token: z.string().default(''),
  /** How many clients take the calls in turn, where there can be several. */
  clients: z.number().optional(),
  /** Whether bare callers choose the ids of their commands. */
  ownIds: z.boolean().optional(),
});
export type End = z.infer<typeof END>;

/** The results of the calls that returned. Times in milliseconds. */
export const CALLS = z.object({ count: z.number(), ms: z.number(), p50: z.number(), p99: z.number() });

export function openSocket(url: string, protocol?: string): Promise<WebSocket> {
  const socket = new WebSocket(url, protocol ?? [], { perMessageDeflate: false });
  return new Promise((resolve, reject) => {
    socket.on('open', () => resolve(socket));
    socket.on('error', reject);
  });
}

/** Sends frames so that all of one tick are written together. */
export function corked(socket: WebSocket): (text: string) => void {
  let armed = false;
  return (text) => {
    const raw: unknown = Reflect.get(socket, '_socket');
    if (!armed && isCorkable(raw)) {
      armed = true;
      raw.cork();
      setImmediate(() => {
        armed = false;
        raw.uncork();
      });
    }
    socket.send(text);
  };
}

type Corkable = { cork(): void; uncork(): void };

function isCorkable(value: unknown): value is Corkable {
  return typeof value === 'object' && value !== null && 'cork' in value && 'uncork' in value;
}

/** `<id>|<payload>`: the payload is never parsed. */
export function splitLine(text: string): readonly [id: string, payload: string] {
  const at = text.indexOf('|');
  return [text.slice(0, at), text.slice(at + 1)];
}

/** The header and the payload text of a frame of the relay. */
export function splitFrame(text: string): readonly [header: unknown, payload: string] {
  const at = text.indexOf('\n');
  return at < 0 ? [JSON.parse(text), ''] : [JSON.parse(text.slice(0, at)), text.slice(at + 1)];
}
