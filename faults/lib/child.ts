/** Starts a child process of a fault or fuzz run and sends it requests. */
import { fork, type ChildProcess } from 'node:child_process';
import { z } from 'zod';

/** A child process that answers requests (see `acts.ts`). */
export interface Child extends AsyncDisposable {
  readonly pid: number;
  /** Why the process ended, with the last lines of its standard error; null while it runs. */
  readonly ended: string | null;
  /**
   * Sends a request. Rejects with the request's error, if the answer takes longer than `withinMs`, or if the process
   * ends first.
   */
  ask<T>(act: string, given: unknown, answer: z.ZodType<T>, withinMs?: number): Promise<T>;
}

export type ChildOptions = {
  readonly args?: readonly string[];
  readonly execArgv?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
};

const MESSAGE = z.object({
  id: z.number().optional(),
  ready: z.boolean().optional(),
  answer: z.unknown().optional(),
  error: z.string().optional(),
});
/** The timeout for the start of a child process, in milliseconds. */
const START_MS = 60_000;
/** The default timeout for an answer of a child process, in milliseconds. */
const ANSWER_MS = 60_000;
/** The maximum number of characters of its standard error that are shown if a process ended by itself. */
const STDERR_CHARS = 4_000;

/** The running child processes. This process kills them when it exits for any reason. */
const running = new Set<ChildProcess>();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** Runs `file` in a child process, with the same Node.js as this process. Resolves when it is ready for requests. */
export async function startChild(
  file: string,
  { args = [], execArgv = [], env = {} }: ChildOptions = {},
): Promise<Child> {
  const child = fork(file, [...args], {
    execArgv: [...execArgv],
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  const { ready, ask, reasonOfEnd } = converse(child);
  const late = setTimeout(() => child.kill('SIGKILL'), START_MS);
  try {
    await ready;
  } finally {
    clearTimeout(late);
  }
  return {
    pid: child.pid ?? -1,
    get ended() {
      return reasonOfEnd();
    },
    ask: async (act, given, answer, withinMs = ANSWER_MS) => answer.parse(await ask(act, given, withinMs)),
    [Symbol.asyncDispose]: () => end(child),
  };
}

function converse(child: ChildProcess) {
  const open = new Map<number, PromiseWithResolvers<unknown>>();
  const ready = Promise.withResolvers<void>();
  let ids = 0;
  let ended: string | null = null;
  let stderr = '';
  child.stderr?.on('data', (chunk) => (stderr = (stderr + String(chunk)).slice(-STDERR_CHARS)));
  child.on('message', (message) => {
    const { id, ready: isReady, answer, error } = MESSAGE.parse(message);
    if (isReady) return ready.resolve();
    const asked = open.get(id ?? -1);
    if (error === undefined) asked?.resolve(answer);
    else asked?.reject(new Error(error));
  });
  child.on('exit', (code, signal) => {
    ended = `the process ended (${signal ?? code}) ${stderr}`.trim();
    const error = new Error(ended);
    ready.reject(error);
    for (const { reject } of open.values()) reject(error);
  });
  const ask = async (act: string, given: unknown, withinMs: number): Promise<unknown> => {
    if (ended !== null) throw new Error(ended);
    const id = ++ids;
    const asked = Promise.withResolvers<unknown>();
    open.set(id, asked);
    const late = setTimeout(() => asked.reject(new Error(`"${act}" was not answered in ${withinMs} ms`)), withinMs);
    child.send({ id, act, given: given ?? null });
    try {
      return await asked.promise;
    } finally {
      clearTimeout(late);
      open.delete(id);
    }
  };
  return { ready: ready.promise, ask, reasonOfEnd: () => ended };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((done) => child.once('exit', done));
  child.kill('SIGKILL');
  await gone;
}
