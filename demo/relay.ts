/** Defines what the parts of the demo know of the relay: its address and its tokens. */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { RuntimeOptions } from '../src/clients/runtime/index.ts';

type Scope = 'connect' | 'invoke' | 'host';

/** The relay as the parts of the demo use it: an address and credentials, as for any outside program. */
export type Relay = {
  /** The base address. */
  readonly url: string;
  readonly adminToken: string;
  /** Returns a new token of this user. Default scopes: `connect` and `invoke`. */
  token(userId: string, scopes?: readonly Scope[]): Promise<string>;
};

/** Returns the WebSocket URL for clients. */
export function connectUrl(relayUrl: string): string {
  return `${relayUrl.replace(/^http/, 'ws')}/connect`;
}

// Makes the pauses of the demo, which are shorter at a faster pace.

/** Waits `ms` milliseconds divided by the demo's tempo. Rejects with an AbortError as soon as the signal is aborted. */
export type Pause = (ms: number, signal?: AbortSignal) => Promise<void>;

/** Returns a function that makes pauses at this tempo: 1 is the default speed, and 5 is five times as fast. */
export function pauseAt(tempo: number): Pause {
  return (ms, signal) => sleep(ms / tempo, undefined, signal ? { signal } : {});
}

/** Returns a random time from 75 to 125 percent of `ms`, so that the demo is not regular. */
export function roughly(ms: number): number {
  return ms * (0.75 + Math.random() / 2);
}

// Lists the users and clients of the demo, and how each client behaves.

/**
 * How a client behaves. `deploys`: from time to time a new process replaces it while its link is still up. `drops`: its
 * socket breaks from time to time, and it resumes. `sleeps`: it disconnects and reconnects as a new instance. `falls`:
 * its process exits without closing its link.
 */
export type Habit = 'deploys' | 'drops' | 'sleeps' | 'falls';

/** One client in a separate process. */
export type CastMember = {
  readonly userId: string;
  readonly clientId: string;
  readonly clientType: RuntimeOptions['clientType'];
  readonly habit: Habit;
  /** A description for the greeting. */
  readonly about: string;
};

export const CAST: readonly CastMember[] = [
  {
    userId: 'alice',
    clientId: 'ops-console',
    clientType: 'console',
    habit: 'deploys',
    about: 'is replaced by a new instance from time to time',
  },
  {
    userId: 'alice',
    clientId: 'phone',
    clientType: 'mobile',
    habit: 'sleeps',
    about: 'sleeps from time to time, and calls wait for it; asks before it takes a photo',
  },
  {
    userId: 'bob',
    clientId: 'kiosk',
    clientType: 'web',
    habit: 'drops',
    about: 'loses its link and resumes; workers in two of its windows build reports',
  },
  {
    userId: 'bob',
    clientId: 'printer',
    clientType: 'console',
    habit: 'falls',
    about: 'prints one page at a time, crashes and is started again',
  },
];

/** The client that runs in a web page. */
export const PAGE = { userId: 'carol', clientId: 'page', clientType: 'browser' } as const;

export function memberOf(clientId: string): CastMember | undefined {
  return CAST.find((member) => member.clientId === clientId);
}

// Defines and checks the messages between the demo and its client processes.

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
