/**
 * Runs one server or one load of a benchmark in a child process, which answers requests over its IPC channel. The
 * parent's side is `processes.ts`.
 */
import { pathToFileURL } from 'node:url';

/** The requests that a process answers, by name. Arguments and answers are JSON. */
export type Acts = Readonly<Record<string, (given: unknown) => unknown>>;

/** The type of the function `start` that each module in `servers/` and `loads/` exports. */
export type Start = (options: unknown) => Promise<Started>;

export type Started = {
  /** The port on which the process listens, if it does. */
  readonly port?: number;
  /** A remark for the report, such as the version of a peer. */
  readonly note?: string;
  readonly acts?: Acts;
};

type RequestMessage = { readonly id: number; readonly act: string; readonly given: unknown };

const OWN: Acts = {
  /** Returns the CPU time, user and system, since the process started, in microseconds. */
  cpu() {
    const { user, system } = process.cpuUsage();
    return user + system;
  },
  /** Returns the part of `cpu` that was spent in the kernel (system time). */
  system: () => process.cpuUsage().system,
  /** Returns the memory in bytes, after garbage collection if the process was started with `--expose-gc`. */
  async memory() {
    for (let i = 0; i < 4 && globalThis.gc; i++) {
      await globalThis.gc({ type: 'major', execution: 'async' });
      await new Promise((done) => setTimeout(done, 60));
    }
    const { rss, heapUsed, external } = process.memoryUsage();
    return { rss, heap: heapUsed, external };
  },
};

async function run(file: string): Promise<void> {
  let acts: Acts = OWN;
  const begin = async (given: unknown): Promise<unknown> => {
    const { start } = (await import(pathToFileURL(file).href)) as { readonly start: Start };
    const { acts: own = {}, ...said } = await start(given);
    acts = { ...OWN, ...own };
    return said;
  };
  const answer = async ({ id, act, given }: RequestMessage): Promise<void> => {
    try {
      const does = act === 'start' ? begin : acts[act];
      if (!does) throw new Error(`There is no act "${act}".`);
      process.send?.({ id, answer: await does(given) });
    } catch (error) {
      process.send?.({ id, error: error instanceof Error ? error.message : String(error) });
    }
  };
  process.on('message', (asked: RequestMessage) => void answer(asked));
  // Without the parent process, nothing else would end this process.
  process.on('disconnect', () => process.exit());
}

const [file] = process.argv.slice(2);
if (file !== undefined) await run(file);
