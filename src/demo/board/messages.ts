import { z } from 'zod';

const VIEWER = z.object({ name: z.string(), may: z.string(), sessionId: z.string(), token: z.string() });

/** What the board's process is told. `open`: where the control server is. `viewers`: who may look, and through which relay. */
const TOLD = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('open'),
    control: z.object({ url: z.string(), token: z.string() }),
    /** What whoever changes tasks from outside must bear. */
    apiToken: z.string(),
    /** How often a task comes in by itself, milliseconds; null: never. */
    everyMs: z.number().positive().nullable(),
  }),
  z.object({ type: z.literal('viewers'), relayUrl: z.string(), viewers: z.array(VIEWER) }),
  z.object({ type: z.literal('stop') }),
]);

/** What it says: that its page is served, that its site is defined, that the viewers are let in. */
const SAID = z.discriminatedUnion('type', [
  z.object({ type: z.literal('listening'), port: z.number(), key: z.string() }),
  z.object({ type: z.literal('defined') }),
  z.object({ type: z.literal('showing') }),
]);

export type Viewer = z.infer<typeof VIEWER>;
export type Told = z.infer<typeof TOLD>;
export type Said = z.infer<typeof SAID>;
export type Open = Extract<Told, { type: 'open' }>;
export type Viewers = Extract<Told, { type: 'viewers' }>;

/** Null: not a message of ours. */
export function readTold(message: unknown): Told | null {
  return TOLD.safeParse(message).data ?? null;
}

/** Null: not a message of ours. */
export function readSaid(message: unknown): Said | null {
  return SAID.safeParse(message).data ?? null;
}
