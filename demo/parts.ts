/**
 * Defines what the parts of the demo share: the relay's address, pauses and the cast of clients. Runs parts in
 * processes of their own, and starts them again when they end.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { extname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { RuntimeOptions } from '../src/clients/runtime/index.ts';
import type { Log } from '../src/core/ports.ts';

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
 * How a client behaves. `deploys`: from time to time its process leaves, and a new process follows it. `drops`: its
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

// Runs a part of the demo in a process, with checked messages in both directions.

const VIEWER = z.object({ name: z.string(), may: z.string(), sessionId: z.string(), token: z.string() });

/**
 * The messages from the demo to its parts. A client gets `start`, whose `clientId` names a member of CAST, and `token`.
 * The board gets `open`, with the address of the control server, and `viewers`, with the address of their relay.
 */
const TO_PART = z.discriminatedUnion('type', [
  z.object({ type: z.literal('start'), url: z.string(), clientId: z.string(), tempo: z.number().positive() }),
  z.object({ type: z.literal('token'), token: z.string() }),
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
 * The messages from the parts. A client is connected, or needs a token. The board is served, has defined its site, or
 * shows the pages of its viewers.
 */
const FROM_PART = z.discriminatedUnion('type', [
  z.object({ type: z.literal('connected') }),
  z.object({ type: z.literal('token_wanted') }),
  z.object({ type: z.literal('listening'), origin: z.string(), key: z.string() }),
  z.object({ type: z.literal('defined') }),
  z.object({ type: z.literal('showing') }),
]);

type MessageToPart = z.infer<typeof TO_PART>;
type MessageFromPart = z.infer<typeof FROM_PART>;
export type Start = Extract<MessageToPart, { type: 'start' }>;
export type Open = Extract<MessageToPart, { type: 'open' }>;
export type Viewer = z.infer<typeof VIEWER>;
export type Viewers = Extract<MessageToPart, { type: 'viewers' }>;

type PartOptions = {
  /** The name of the program in this folder, without its extension. */
  readonly program: string;
  /** What the program is, for the log. */
  readonly what: string;
  readonly about?: Readonly<Record<string, string>>;
  /** The environment of the process. */
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
  readonly onMessage: (message: MessageFromPart) => void;
};

/** How long a process may take to exit before it is killed, in milliseconds. */
const EXIT_MS = 3_000;
/** The number of characters at the end of a process's standard error that are logged when the process has ended. */
const STDERR_CHARS = 4_000;

/** Starts a program of this folder in a separate process. Unknown messages of the process are ignored. */
export function startPart({ program, what, about, env, log, onMessage }: PartOptions) {
  // The program has the extension of this file: `.ts` in a checkout, `.js` in the package.
  const file = new URL(`./${program}${extname(import.meta.filename)}`, import.meta.url);
  const child = fork(file, [], { env: { ...env }, execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-STDERR_CHARS)));
  child.once('error', (error) => log.warn({ ...about, error }, `${what} cannot be started`));
  child.once('close', () => {
    if (stderr !== '') log.warn({ ...about, stderr }, `${what} failed`);
    resolve();
  });
  child.on('message', (raw) => {
    const message = FROM_PART.safeParse(raw).data;
    if (message) onMessage(message);
  });
  /** Sends a message. Errors are ignored: a process that is exiting does not need it. */
  const send = (message: MessageToPart): void => {
    if (child.connected) child.send(message, () => {});
  };
  return {
    ended,
    send,
    end(): Promise<void> {
      send({ type: 'stop' });
      return endWithin(child, ended);
    },
  };
}

/** Waits for the end of a process that was asked to stop, and kills it if that takes too long. */
export async function endWithin(child: ChildProcess, ended: Promise<void>): Promise<void> {
  const timer = setTimeout(() => child.kill('SIGKILL'), EXIT_MS);
  await ended;
  clearTimeout(timer);
}

/**
 * Joins this process to the demo that started it, and returns a function that sends messages to the demo. Calls `stop`
 * when the demo asks for it, or has ended.
 */
export function joinDemo(onMessage: (message: MessageToPart) => void, stop: () => void) {
  process.on('message', (raw) => {
    const message = TO_PART.safeParse(raw).data;
    if (message?.type === 'stop') stop();
    else if (message) onMessage(message);
  });
  process.on('disconnect', stop);
  // Ctrl-C reaches the whole process group. This process ignores it, because the demo stops each process itself.
  process.on('SIGINT', () => {});
  return (message: MessageFromPart): void => {
    if (process.connected) process.send?.(message);
  };
}

// Supervises a program: starts it again when it ends.

/** One run of a supervised program. `end` asks the program to stop, kills it if necessary, and never rejects. */
export type SupervisedRun = { readonly ended: Promise<void>; end(): Promise<void> };

/** The clock of a Keeper. Times are milliseconds. `sleep` rejects when the signal is aborted. */
export type KeeperClock = { now(): number; sleep(ms: number, signal: AbortSignal): Promise<void> };

const systemClock: KeeperClock = {
  now: () => Date.now(),
  sleep: (ms, signal) => sleep(ms, undefined, { signal }),
};

/** The pause before the restart after a long run, in milliseconds. Each short run in a row doubles it. */
const BACKOFF_BASE_MS = 500;
/** The longest pause before a restart, in milliseconds. */
const BACKOFF_CAP_MS = 30_000;
/** The time, in milliseconds, after which a run resets the backoff. */
const STABLE_MS = 10_000;

/** Keeps one run going. A run that ends by itself is started again, with exponential backoff while runs stay short. */
export class Keeper<R extends SupervisedRun> implements AsyncDisposable {
  readonly #start: () => R;
  readonly #clock: KeeperClock;
  readonly #live = new Set<R>();
  readonly #closing = new AbortController();
  /** The run that `replace` is ending. Its end does not trigger a restart, because `replace` starts the next run. */
  #leaving: R | null = null;
  #short = 0;
  #current: R;

  constructor(start: () => R, clock: KeeperClock = systemClock) {
    this.#start = start;
    this.#clock = clock;
    this.#current = this.#launch();
  }

  get current(): R {
    return this.#current;
  }

  /** A signal that is aborted when the keeper is closed and starts no more runs. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /**
   * Ends the current run and starts another one when it has ended. A run that shuts down gracefully leaves its queued
   * commands to the next one. Resolves when the new run has started. Does nothing if no run is live, or after disposal.
   */
  async replace(): Promise<void> {
    const old = this.#current;
    if (this.#closing.signal.aborted || !this.#live.has(old)) return;
    this.#leaving = old;
    await old.end();
    await old.ended;
    if (!this.#closing.signal.aborted) this.#current = this.#launch();
  }

  /** Ends every run and starts no more. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#live].map((run) => run.end()));
  }

  #launch(): R {
    const run = this.#start();
    const began = this.#clock.now();
    this.#live.add(run);
    void run.ended.then(() => {
      this.#live.delete(run);
      if (run === this.#current && run !== this.#leaving && !this.closing.aborted)
        void this.#again(this.#clock.now() - began);
    });
    return run;
  }

  async #again(lastedMs: number): Promise<void> {
    this.#short = lastedMs < STABLE_MS ? this.#short + 1 : 0;
    const waitMs = Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** this.#short);
    const { signal } = this.#closing;
    await this.#clock.sleep(waitMs, signal).catch(() => {});
    if (!signal.aborted) this.#current = this.#launch();
  }
}
