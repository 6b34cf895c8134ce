/** Runs a part of the demo in its own process, and checks the messages in both directions. */
import { fork, type ChildProcess } from 'node:child_process';
import { extname } from 'node:path';
import { z } from 'zod';
import type { Log } from '../src/core/ports.ts';

const VIEWER = z.object({ name: z.string(), may: z.string(), sessionId: z.string(), token: z.string() });

/**
 * The messages from the demo to its parts. A client gets `start`, whose `clientId` is in CAST, and `token`. The board
 * gets `open`, with the address of the control server, and `viewers`, with the address of their relay.
 */
const TO_PART = z.discriminatedUnion('type', [
  z.object({ type: z.literal('start'), url: z.string(), clientId: z.string(), tempo: z.number().positive() }),
  z.object({ type: z.literal('token'), token: z.string() }),
  z.object({
    type: z.literal('open'),
    control: z.object({ url: z.string(), token: z.string() }),
    /** The bearer token for changing tasks from outside. */
    apiToken: z.string(),
    /** How often a task is added automatically, in milliseconds; null: never. */
    everyMs: z.number().positive().nullable(),
  }),
  z.object({ type: z.literal('viewers'), relayUrl: z.string(), viewers: z.array(VIEWER) }),
  z.object({ type: z.literal('stop') }),
]);

/**
 * The messages from the parts to the demo. A client reports that it is connected, or requests a token. The board
 * reports that it is served, that it has defined its site, and that it shows its viewers' pages.
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
  /** The name of the program's file in this folder, without extension. */
  readonly program: string;
  /** A description of the program, for the log. */
  readonly what: string;
  readonly about?: Readonly<Record<string, string>>;
  /** The environment of the process. */
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
  readonly onMessage: (message: MessageFromPart) => void;
};

/** How long a process may take to exit before it is killed, in milliseconds. */
const EXIT_MS = 3_000;
/** How many characters from the end of a process's standard error are logged when the process has ended. */
const STDERR_CHARS = 4_000;

/** Starts a program of this folder in its own process. Ignores unknown messages from it. */
export function startPart({ program, what, about, env, log, onMessage }: PartOptions) {
  // The program's file has the same extension as this file: `.ts` in a checkout, and `.js` in the package.
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
  /** Sends a message. Errors are ignored, because a process that is exiting does not need the message. */
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

/** Waits for the end of a process that was asked to stop. Kills it after EXIT_MS. */
export async function endWithin(child: ChildProcess, ended: Promise<void>): Promise<void> {
  const timer = setTimeout(() => child.kill('SIGKILL'), EXIT_MS);
  await ended;
  clearTimeout(timer);
}

/**
 * Connects this process to the demo that started it, and returns a function that sends messages to the demo. Calls
 * `stop` when the demo requests it or has ended.
 */
export function joinDemo(onMessage: (message: MessageToPart) => void, stop: () => void) {
  process.on('message', (raw) => {
    const message = TO_PART.safeParse(raw).data;
    if (message?.type === 'stop') stop();
    else if (message) onMessage(message);
  });
  process.on('disconnect', stop);
  // Ctrl-C reaches the whole process group. It is ignored here, because the demo stops each process itself.
  process.on('SIGINT', () => {});
  return (message: MessageFromPart): void => {
    if (process.connected) process.send?.(message);
  };
}
