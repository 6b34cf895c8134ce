/** Defines and checks the messages between the demo and its client processes. */
import { z } from 'zod';

/** Messages from the demo to a client process. `clientId` names a member of CAST. */
const TO_CLIENT = z.discriminatedUnion('type', [
  z.object({ type: z.literal('start'), url: z.string(), clientId: z.string(), tempo: z.number().positive() }),
  z.object({ type: z.literal('token'), token: z.string() }),
  z.object({ type: z.literal('stop') }),
]);
/** Messages from a client process: it is connected, or it needs a token. */
const FROM_CLIENT = z.discriminatedUnion('type', [
  z.object({ type: z.literal('connected') }),
  z.object({ type: z.literal('token_wanted') }),
]);

export type MessageToClient = z.infer<typeof TO_CLIENT>;
export type MessageFromClient = z.infer<typeof FROM_CLIENT>;
export type Start = Extract<MessageToClient, { type: 'start' }>;

/** Checks a message and returns it; null if it is unknown. */
export function readMessageToClient(message: unknown): MessageToClient | null {
  return TO_CLIENT.safeParse(message).data ?? null;
}

/** Checks a message and returns it; null if it is unknown. */
export function readMessageFromClient(message: unknown): MessageFromClient | null {
  return FROM_CLIENT.safeParse(message).data ?? null;
}
