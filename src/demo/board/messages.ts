/** Defines and checks the messages between the demo and the process of its task board. */
import { z } from 'zod';

const VIEWER = z.object({ name: z.string(), may: z.string(), sessionId: z.string(), token: z.string() });

/**
 * The messages to the board's process. `open` contains the address of the control server. `viewers` contains the
 * viewers and the address of their relay.
 */
const TO_BOARD = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('open'),
    control: z.object({ url: z.string(), token: z.string() }),
    /** The bearer token required for changing tasks from outside. */
    apiToken: z.string(),
    /** How often a task is added automatically, in milliseconds; null: never. */
    everyMs: z.number().positive().nullable(),
  }),
  z.object({ type: z.literal('viewers'), relayUrl: z.string(), viewers: z.array(VIEWER) }),
  z.object({ type: z.literal('stop') }),
]);

/**
 * The messages from the board's process. `listening`: its page is served. `defined`: its site is defined. `showing`: it
 * shows the pages of its viewers.
 */
const FROM_BOARD = z.discriminatedUnion('type', [
  z.object({ type: z.literal('listening'), port: z.number(), key: z.string() }),
  z.object({ type: z.literal('defined') }),
  z.object({ type: z.literal('showing') }),
]);

export type Viewer = z.infer<typeof VIEWER>;
export type MessageToBoard = z.infer<typeof TO_BOARD>;
export type MessageFromBoard = z.infer<typeof FROM_BOARD>;
export type Open = Extract<MessageToBoard, { type: 'open' }>;
export type Viewers = Extract<MessageToBoard, { type: 'viewers' }>;

/** Checks a message and returns it; null if it is unknown. */
export function readMessageToBoard(message: unknown): MessageToBoard | null {
  return TO_BOARD.safeParse(message).data ?? null;
}

/** Checks a message and returns it; null if it is unknown. */
export function readMessageFromBoard(message: unknown): MessageFromBoard | null {
  return FROM_BOARD.safeParse(message).data ?? null;
}
