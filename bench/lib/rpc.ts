/** What is called in the suites of calls: an action that gives back what it is given. */
import { WebSocket } from 'ws';
import { z } from 'zod';

export const USER = 'u1';
export const ACTION = 'echo';
export const IN_FLIGHT = 64;
/** JSON of 200 bytes. */
export const PAYLOAD = { text: 'p'.repeat(189) } as const;
export const PAYLOAD_TEXT = JSON.stringify(PAYLOAD);

/** Clients of a relay that take the calls in turn: a link has at most 32 unfinished. */
export const CLIENT_IDS: readonly string[] = clientIds(2);

export function clientIds(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `c${i}`);
}

/** How an end speaks to its relay. `bare`: the relay's protocol by hand; `library`: by its own client. */
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

/** Calls that came back. Milliseconds. */
export const CALLS = z.object({ count: z.number(), ms: z.number(), p50: z.number(), p99: z.number() });

export function openSocket(url: string, protocol?: string): Promise<WebSocket> {
  const socket = new WebSocket(url, protocol ?? [], { perMessageDeflate: false });
  return new Promise((resolve, reject) => {
    socket.on('open', () => resolve(socket));
    socket.on('error', reject);
  });
}

/** Sends so that all messages of one tick leave in one write. */
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

/** `<id>|<payload>`: the payload's text is never looked into. */
export function splitLine(text: string): readonly [id: string, payload: string] {
  const at = text.indexOf('|');
  return [text.slice(0, at), text.slice(at + 1)];
}

/** The header and the payload's text of a frame of the relay's. */
export function splitFrame(text: string): readonly [header: unknown, payload: string] {
  const at = text.indexOf('\n');
  return at < 0 ? [JSON.parse(text), ''] : [JSON.parse(text.slice(0, at)), text.slice(at + 1)];
}
