/** Runs a part of the demo in a process, with checked messages in both directions. */
import { fork, type ChildProcess } from 'node:child_process';
import { extname } from 'node:path';
import { z } from 'zod';
import type { Log } from '../src/core/ports.ts';

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
