import { z } from 'zod';

/** What a client's process is told by the demo. `act` names a row of the cast. */
const TOLD = z.discriminatedUnion('type', [
  z.object({ type: z.literal('start'), url: z.string(), clientId: z.string(), tempo: z.number().positive() }),
  z.object({ type: z.literal('token'), token: z.string() }),
  z.object({ type: z.literal('stop') }),
]);
/** What a client's process says: that it is connected, that it needs a token. */
const SAID = z.discriminatedUnion('type', [
  z.object({ type: z.literal('connected') }),
  z.object({ type: z.literal('token_wanted') }),
]);

export type Told = z.infer<typeof TOLD>;
export type Said = z.infer<typeof SAID>;
export type Start = Extract<Told, { type: 'start' }>;

/** Null: not a message of ours. */
export function readTold(message: unknown): Told | null {
  return TOLD.safeParse(message).data ?? null;
}

/** Null: not a message of ours. */
export function readSaid(message: unknown): Said | null {
  return SAID.safeParse(message).data ?? null;
}
