/** Starts and stops the process of the task board. */
import { fork, type ChildProcess } from 'node:child_process';
import { extname } from 'node:path';
import type { Log } from '../../core/log.ts';
import { readMessageFromBoard, type MessageFromBoard, type MessageToBoard } from './messages.ts';

export type AppProcess = AsyncDisposable & {
  send(message: MessageToBoard): void;
  /** Resolves with the first message of this type. Rejects if the process ends without sending one. */
  firstMessage<T extends MessageFromBoard['type']>(type: T): Promise<Extract<MessageFromBoard, { type: T }>>;
};

/** The program of the process. It has the extension of this file: `.ts` in a checkout, `.js` in the package. */
const PROGRAM = new URL(`./app${extname(import.meta.filename)}`, import.meta.url);
/** How long the process may take to end before it is killed, in milliseconds. */
const EXIT_MS = 3_000;
/** The number of characters of a process's standard error that are shown when the process has ended by itself. */
const STDERR_CHARS = 4_000;

/** Starts the board's application in a separate process. */
export function startApp({ env, log }: { readonly env: NodeJS.ProcessEnv; readonly log: Log }): AppProcess {
  const child = fork(PROGRAM, [], { env: { ...env }, execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  const received: MessageFromBoard[] = [];
  const listeners = new Set<() => void>();
  child.on('message', (raw) => {
    const message = readMessageFromBoard(raw);
    if (message) received.push(message);
    for (const listener of listeners) listener();
  });
  const ended = endOf(child, log);
  const send = (message: MessageToBoard): void => {
    if (child.connected) child.send(message, () => {});
  };
  return {
    send,
    firstMessage(type) {
      const { promise, resolve, reject } = Promise.withResolvers<Extract<MessageFromBoard, { type: typeof type }>>();
      const look = (): void => {
        const found = received.find((message) => isOf(message, type));
        if (found && isOf(found, type)) resolve(found);
      };
      listeners.add(look);
      look();
      void ended.then(() => reject(new Error('The board ended.')));
      return promise.finally(() => listeners.delete(look));
    },
    async [Symbol.asyncDispose]() {
      send({ type: 'stop' });
      const timer = setTimeout(() => child.kill('SIGKILL'), EXIT_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}

function endOf(child: ChildProcess, log: Log): Promise<void> {
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-STDERR_CHARS)));
  const { promise, resolve } = Promise.withResolvers<void>();
  child.once('error', (error) => log.warn({ error }, 'the board of the demo cannot be started'));
  child.once('close', () => {
    if (stderr !== '') log.warn({ stderr }, 'the board of the demo failed');
    resolve();
  });
  return promise;
}

function isOf<T extends MessageFromBoard['type']>(
  message: MessageFromBoard,
  type: T,
): message is Extract<MessageFromBoard, { type: T }> {
  return message.type === type;
}
