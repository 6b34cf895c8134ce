/**
 * Defines the call that the call suites make (an action that returns its params) and the frames for it. All compared
 * paths use them.
 */
import { WebSocket } from 'ws';
import { z } from 'zod';

export const USER = 'u1';
export const ACTION = 'echo';
/** The number of calls in flight: the maximum for two clients. */
export const IN_FLIGHT = 64;
/** The params of a call: JSON of 200 bytes. */
export const PAYLOAD = { text: 'p'.repeat(189) } as const;
export const PAYLOAD_TEXT = JSON.stringify(PAYLOAD);

/**
 * The ids of the clients that share the calls. There are two, because a link may have at most 32 unfinished commands.
 */
export const CLIENT_IDS: readonly string[] = clientIds(2);

export function clientIds(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `c${i}`);
}

/**
 * The form of the options of a caller or client. `bare`: it writes the relay's frames by hand. `library`: it uses the
 * relay's client library.
 */
export const END = z.object({
  kind: z.enum(['ws', 'lines', 'echo', 'socket.io', 'nats', 'bare', 'library']),
  port: z.number(),
  token: z.string().default(''),
  /** The user who owns the called clients. */
  user: z.string().optional(),
  /** The number of clients among which calls are distributed, for kinds that support several. */
  clients: z.number().optional(),
  /** Whether bare callers choose the ids of their commands. */
  ownIds: z.boolean().optional(),
});
export type End = z.infer<typeof END>;

/** The form of the results: the number of calls that returned, and times in milliseconds. */
export const CALLS = z.object({ count: z.number(), ms: z.number(), p50: z.number(), p99: z.number() });

export function openSocket(url: string, protocol?: string): Promise<WebSocket> {
  const socket = new WebSocket(url, protocol ?? [], { perMessageDeflate: false });
  return new Promise((resolve, reject) => {
    socket.on('open', () => resolve(socket));
    socket.on('error', reject);
  });
}

/** Returns a function that sends frames. All frames of one turn of the event loop are written together. */
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

/** Splits a message of the form `<id>|<payload>`. The payload is never parsed. */
export function splitLine(text: string): readonly [id: string, payload: string] {
  const at = text.indexOf('|');
  return [text.slice(0, at), text.slice(at + 1)];
}

/** Splits a frame of the relay into its parsed header and the text of its payload. */
export function splitFrame(text: string): readonly [header: unknown, payload: string] {
  const at = text.indexOf('\n');
  return at < 0 ? [JSON.parse(text), ''] : [JSON.parse(text.slice(0, at)), text.slice(at + 1)];
}
