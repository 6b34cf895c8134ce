import { fork, type ChildProcess } from 'node:child_process';
import { extname } from 'node:path';
import type { Log } from '../../core/log.ts';
import { readSaid, type Said, type Told } from './messages.ts';

export type AppProcess = AsyncDisposable & {
  tell(message: Told): void;
  /** Resolves with the first message of this type. Rejects if the process ends without sending one. */
  heard<T extends Said['type']>(type: T): Promise<Extract<Said, { type: T }>>;
};

/** The extension is that of this file: TypeScript in the development tree, JavaScript in the package. */
const PROGRAM = new URL(`./app${extname(import.meta.filename)}`, import.meta.url);
const LEAVE_MS = 3_000;
const LAST_WORDS = 4_000;

/** Starts the board's application in a separate process. */
export function startApp({ env, log }: { readonly env: NodeJS.ProcessEnv; readonly log: Log }): AppProcess {
  const child = fork(PROGRAM, [], { env: { ...env }, execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  const said: Said[] = [];
  const listeners = new Set<() => void>();
  child.on('message', (message) => {
    const heard = readSaid(message);
    if (heard) said.push(heard);
    for (const listener of listeners) listener();
  });
  const ended = endOf(child, log);
  const tell = (message: Told): void => {
    if (child.connected) child.send(message, () => {});
  };
  return {
    tell,
    heard(type) {
      const { promise, resolve, reject } = Promise.withResolvers<Extract<Said, { type: typeof type }>>();
      const look = (): void => {
        const found = said.find((message) => isOf(message, type));
        if (found && isOf(found, type)) resolve(found);
      };
      listeners.add(look);
      look();
      void ended.then(() => reject(new Error('The board ended.')));
      return promise.finally(() => listeners.delete(look));
    },
    async [Symbol.asyncDispose]() {
      tell({ type: 'stop' });
      const timer = setTimeout(() => child.kill('SIGKILL'), LEAVE_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}

function endOf(child: ChildProcess, log: Log): Promise<void> {
  let words = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (words = (words + text).slice(-LAST_WORDS)));
  const { promise, resolve } = Promise.withResolvers<void>();
  child.once('error', (error) => log.warn({ error }, 'the board of the demo cannot be started'));
  child.once('close', () => {
    if (words !== '') log.warn({ words }, 'the board of the demo failed');
    resolve();
  });
  return promise;
}

function isOf<T extends Said['type']>(message: Said, type: T): message is Extract<Said, { type: T }> {
  return message.type === type;
}
