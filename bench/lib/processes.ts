/**
 * Starts the processes of a benchmark and sends them requests over IPC. Each server and each load is a separate
 * process.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

export type Memory = { readonly rss: number; readonly heap: number; readonly external: number };

/** A process that runs a module of `servers/` or `loads/`. */
export interface Child extends AsyncDisposable {
  readonly pid: number;
  /** The port on which the process listens; 0 if it does not listen. */
  readonly port: number;
  readonly note: string;
  /**
   * Sends a request and resolves with its answer. Rejects with the request's error, if the answer takes too long, or if
   * the process ends first.
   */
  ask<T>(act: string, given: unknown, answer: z.ZodType<T>): Promise<T>;
  /**
   * Returns the CPU time (user and system) since the process started, as the process itself accounts it, in
   * microseconds.
   */
  cpu(): Promise<number>;
  /** Returns the part of `cpu` that was spent in the kernel. This includes waking a sleeping process. */
  system(): Promise<number>;
  memory(): Promise<Memory>;
}

/** A process whose CPU time is measured. */
export type Measured = Pick<Child, 'cpu' | 'system'>;

/** Returns the CPU time per operation of `work`, in microseconds: the whole time and the system's part. */
export async function costOf<T extends { readonly count: number }>(server: Measured, work: () => Promise<T>) {
  const before = { cpu: await server.cpu(), system: await server.system() };
  const done = await work();
  const each = (after: number, since: number): number => (after - since) / done.count;
  return { done, cpu: each(await server.cpu(), before.cpu), system: each(await server.system(), before.system) };
}

export type ChildOptions = {
  /** The options that are passed to the module's `start`. */
  readonly options?: unknown;
  readonly execArgv?: readonly string[];
};

const ENTRY = fileURLToPath(new URL('child.ts', import.meta.url));
const SAID = z.object({ port: z.number().default(0), note: z.string().default('') });
const MEMORY = z.object({ rss: z.number(), heap: z.number(), external: z.number() });
/** The form of a message from the process: the result or the error of a request. */
const ANSWER = z.object({ id: z.number(), answer: z.unknown().optional(), error: z.string().optional() });
/** The timeout for the start of a process, in milliseconds. */
const START_MS = 60_000;
/**
 * The timeout for an answer, in milliseconds. It is longer than any request takes. A process that hangs then fails only
 * its row instead of the whole run.
 */
const ANSWER_MS = 90_000;

/**
 * Starts `module` (a path relative to `bench/`) in its own process, and resolves when it is ready. Its standard output
 * is ignored.
 */
export async function startChild(module: string, { options, execArgv = [] }: ChildOptions = {}): Promise<Child> {
  const file = fileURLToPath(new URL(`../${module}`, import.meta.url));
  const process = fork(ENTRY, [file], { execArgv: [...execArgv], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const asking = conversation(process);
  const late = setTimeout(() => process.kill('SIGKILL'), START_MS);
  try {
    const said = SAID.parse(await asking('start', options));
    return { ...said, pid: process.pid ?? 0, ...acts(asking), [Symbol.asyncDispose]: () => end(process) };
  } catch (error) {
    await end(process);
    throw error;
  } finally {
    clearTimeout(late);
  }
}

type Ask = (act: string, given: unknown) => Promise<unknown>;

function acts(asking: Ask): Pick<Child, 'ask' | 'memory'> & Measured {
  return {
    ask: async (act, given, answer) => answer.parse(await asking(act, given)),
    cpu: async () => z.number().parse(await asking('cpu', null)),
    system: async () => z.number().parse(await asking('system', null)),
    memory: async () => MEMORY.parse(await asking('memory', null)),
  };
}

function conversation(process: ChildProcess): Ask {
  const open = new Map<number, PromiseWithResolvers<unknown>>();
  let ids = 0;
  let ended: Error | null = null;
  process.on('message', (message) => {
    const { id, answer, error } = ANSWER.parse(message);
    const asked = open.get(id);
    open.delete(id);
    if (error === undefined) asked?.resolve(answer);
    else asked?.reject(new Error(error));
  });
  process.on('exit', (code, signal) => {
    ended = new Error(`its process ended (${signal ?? code})`);
    for (const { reject } of open.values()) reject(ended);
    open.clear();
  });
  return (act, given) => {
    if (ended) return Promise.reject(ended);
    const asked = Promise.withResolvers<unknown>();
    open.set(++ids, asked);
    process.send({ id: ids, act, given: given ?? null });
    const late = setTimeout(() => asked.reject(new Error(`"${act}" was not answered in time`)), ANSWER_MS);
    return asked.promise.finally(() => clearTimeout(late));
  };
}

async function end(process: ChildProcess): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return;
  const gone = new Promise((done) => process.once('exit', done));
  process.kill('SIGKILL');
  await gone;
}
