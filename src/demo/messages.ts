import { z } from 'zod';

/** Messages from the demo to a client process. `clientId` names a member of CAST. */
const TOLD = z.discriminatedUnion('type', [
  z.object({ type: z.literal('start'), url: z.string(), clientId: z.string(), tempo: z.number().positive() }),
  z.object({ type: z.literal('token'), token: z.string() }),
  z.object({ type: z.literal('stop') }),
]);
/** Messages from a client process: it is connected, or it needs a token. */
const SAID = z.discriminatedUnion('type', [
  z.object({ type: z.literal('connected') }),
  z.object({ type: z.literal('token_wanted') }),
]);

export type Told = z.infer<typeof TOLD>;
export type Said = z.infer<typeof SAID>;
export type Start = Extract<Told, { type: 'start' }>;

/** Null for an unknown message. */
export function readTold(message: unknown): Told | null {
  return TOLD.safeParse(message).data ?? null;
}

/** Null for an unknown message. */
export function readSaid(message: unknown): Said | null {
  return SAID.safeParse(message).data ?? null;
}
