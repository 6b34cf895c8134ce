/** Starts and stops one client process. */
import { fork, type ChildProcess } from 'node:child_process';
import { extname } from 'node:path';
import type { Log } from '../core/log.ts';
import type { CastMember } from './cast.ts';
import type { SupervisedRun } from './keeper.ts';
import { readMessageFromClient, type MessageToClient } from './messages.ts';

export type ClientProcessOptions = {
  readonly member: CastMember;
  /** The relay's `/connect`. */
  readonly url: string;
  readonly tempo: number;
  /** The environment of the process. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Returns a token for a user. Called before each connection. */
  readonly token: (userId: string) => Promise<string>;
  readonly log: Log;
};

/** One run of a client. `connected` resolves after the client's first `welcome`; it may never resolve. */
export type ClientRun = SupervisedRun & { readonly connected: Promise<void> };

/** The program of the process. It has the extension of this file: `.ts` in a checkout, `.js` in the package. */
const PROGRAM = new URL(`./client${extname(import.meta.filename)}`, import.meta.url);
/** How long a process may take to exit before it is killed. Milliseconds. */
const EXIT_MS = 3_000;
/** The number of characters of a process's standard error that are shown when the process has ended by itself. */
const STDERR_CHARS = 4_000;

/** Starts one client of the cast in a separate process. */
export function startClient(options: ClientProcessOptions): ClientRun {
  const { member, url, tempo, env } = options;
  const child = fork(PROGRAM, [], { env: { ...env }, execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  const ended = endOf(child, options);
  const { promise: connected, resolve } = Promise.withResolvers<void>();
  child.on('message', (raw) => {
    const message = readMessageFromClient(raw);
    if (message?.type === 'connected') resolve();
    if (message?.type === 'token_wanted') void giveToken(child, options);
  });
  send(child, { type: 'start', url, clientId: member.clientId, tempo });
  return { connected, ended, end: () => endClient(child, ended) };
}

function endOf(child: ChildProcess, { member, log }: ClientProcessOptions): Promise<void> {
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-STDERR_CHARS)));
  const { promise, resolve } = Promise.withResolvers<void>();
  child.once('error', (error) =>
    log.warn({ error, client: member.clientId }, 'a client of the demo cannot be started'),
  );
  child.once('close', () => {
    if (stderr !== '') log.warn({ client: member.clientId, stderr }, 'a client of the demo failed');
    resolve();
  });
  return promise;
}

async function giveToken(child: ChildProcess, { member, token }: ClientProcessOptions): Promise<void> {
  send(child, { type: 'token', token: await token(member.userId) });
}

/** Sends a message. Errors are ignored: a process that is exiting does not need it. */
function send(child: ChildProcess, message: MessageToClient): void {
  if (child.connected) child.send(message, () => {});
}

async function endClient(child: ChildProcess, ended: Promise<void>): Promise<void> {
  send(child, { type: 'stop' });
  const timer = setTimeout(() => child.kill('SIGKILL'), EXIT_MS);
  await ended;
  clearTimeout(timer);
}
