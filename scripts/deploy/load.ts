/**
 * Puts a steady load of commands on the relays behind one URL: clients that run commands, and callers that repeat
 * refused commands.
 */
import { createHttpCaller, CallerError, type Caller, type Invocation } from '../../src/clients/caller/index.ts';
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';

const USER = 'alice';

export type LoadOptions = {
  /** The URL of the relays, such as `https://localhost:8443`. */
  readonly url: string;
  readonly token: () => Promise<string>;
  readonly clients: number;
  /** The number of callers. Each has one command at a time. */
  readonly callers: number;
};

export type LoadFigures = {
  /** The number of commands with each outcome. */
  readonly outcomes: Readonly<Record<string, number>>;
  /**
   * The number of refusals by a relay or by the proxy, for each code. The caller then repeated the command with the
   * same id.
   */
  readonly refusals: Readonly<Record<string, number>>;
  /** The number of commands that a client ran more than once. */
  readonly ranTwice: number;
};

export type Load = AsyncDisposable & {
  /** The number of commands that have ended. */
  readonly ended: number;
  /** Resolves when this many more commands have ended. */
  more(count: number): Promise<void>;
  /** Starts a command on each client, which runs until `release` is called. Resolves when all of them run. */
  hold(): Promise<{ readonly release: () => void; readonly ended: Promise<void> }>;
  /** Lets the callers finish their commands, and resolves with the results of all commands. */
  finish(): Promise<LoadFigures>;
};

/** Starts clients and callers. Resolves when the clients are connected. */
export async function startLoad({ url, token, clients, callers }: LoadOptions): Promise<Load> {
  const load = new RunningLoad(createHttpCaller({ url, token }));
  await load.connect({ url: `${url.replace(/^http/, 'ws')}/connect`, token, clients });
  load.call(callers);
  return load;
}

class RunningLoad implements Load {
  readonly #caller: Caller;
  readonly #runtimes: Runtime[] = [];
  readonly #outcomes: Record<string, number> = {};
  readonly #refusals: Record<string, number> = {};
  readonly #runs = new Map<string, number>();
  readonly #listeners = new Set<() => void>();
  #held: { readonly started: () => void; readonly released: Promise<void> } | null = null;
  #calling: Promise<unknown> = Promise.resolve();
  #ended = 0;
  #stopping = false;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  get ended(): number {
    return this.#ended;
  }

  async connect({ url, token, clients }: Pick<LoadOptions, 'url' | 'token' | 'clients'>): Promise<void> {
    for (let i = 0; i < clients; i++) {
      const runtime = createRuntime({ url, token, clientId: `client-${i}`, clientType: 'console' });
      runtime.handle('work', {}, (_, { commandId }) => this.#ran(commandId));
      runtime.handle('hold', {}, async (_, { commandId }) => {
        this.#held?.started();
        await this.#held?.released;
        return this.#ran(commandId);
      });
      runtime.connect();
      this.#runtimes.push(runtime);
    }
    await Promise.all(this.#runtimes.map((runtime) => runtime.ready()));
  }

  call(callers: number): void {
    this.#calling = Promise.all(Array.from({ length: callers }, (_, i) => this.#callOn(i)));
    // Ignored here, because `finish` reports the failure.
    this.#calling.catch(() => {});
  }

  async hold(): Promise<{ readonly release: () => void; readonly ended: Promise<void> }> {
    const [all, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let running = 0;
    const started = (): void => {
      if (++running === this.#runtimes.length) all.resolve();
    };
    this.#held = { started, released: released.promise };
    const calls = Promise.all(this.#runtimes.map((_, i) => this.#untilEnded(i, 'hold', crypto.randomUUID())));
    await Promise.race([all.promise, calls]);
    const ended = calls.then(() => {});
    // A failure is reported to the caller that awaits `ended`. If something else fails first, nobody awaits it.
    ended.catch(() => {});
    return { release: released.resolve, ended };
  }

  async more(count: number): Promise<void> {
    const target = this.#ended + count;
    const reached = Promise.withResolvers<void>();
    const listener = (): void => {
      if (this.#ended >= target) reached.resolve();
    };
    this.#listeners.add(listener);
    await Promise.race([reached.promise, this.#calling]);
    this.#listeners.delete(listener);
  }

  async finish(): Promise<LoadFigures> {
    this.#stopping = true;
    await this.#calling;
    const ranTwice = [...this.#runs.values()].filter((runs) => runs > 1).length;
    return { outcomes: this.#outcomes, refusals: this.#refusals, ranTwice };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping = true;
    await this.#caller.close();
    await Promise.allSettled([this.#calling, ...this.#runtimes.map((runtime) => runtime.close())]);
  }

  #ran(commandId: string): { readonly commandId: string } {
    this.#runs.set(commandId, (this.#runs.get(commandId) ?? 0) + 1);
    return { commandId };
  }

  async #callOn(caller: number): Promise<void> {
    for (let i = caller; !this.#stopping; i++)
      await this.#untilEnded(i % this.#runtimes.length, 'work', crypto.randomUUID());
  }

  /**
   * Waits for the end of a command. Repeats a refused command with the same id. If the relay ends the wait before the
   * command ends, waits again.
   */
  async #untilEnded(client: number, action: string, commandId: string): Promise<void> {
    const target = { userId: USER, clientId: `client-${client}`, action };
    let answer: Invocation | null = null;
    while (answer === null || answer.outcome === 'pending') {
      try {
        answer = await (answer === null
          ? this.#caller.invoke(target, {}, { commandId, connectWithinMs: 60_000, respondWithinMs: 60_000 })
          : this.#caller.await({ ...target, commandId }, { withinMs: 60_000 }));
      } catch (error) {
        if (!(error instanceof CallerError) || error.code === 'closed') throw error;
        this.#refusals[error.code] = (this.#refusals[error.code] ?? 0) + 1;
        await afterMs(error.retryAfterMs ?? 100);
      }
    }
    this.#outcomes[answer.outcome] = (this.#outcomes[answer.outcome] ?? 0) + 1;
    this.#ended += 1;
    for (const listener of this.#listeners) listener();
  }
}

/** Resolves after this many milliseconds. */
function afterMs(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
