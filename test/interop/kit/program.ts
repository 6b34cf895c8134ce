/** Starts a program that prints a line of JSON for each event. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export type Event = Readonly<Record<string, unknown>> & { readonly event: string };

export class Program implements AsyncDisposable {
  /** The events that were printed so far. */
  readonly events: Event[] = [];
  readonly #child;
  readonly #ended: Promise<number | null>;
  #taken = 0;
  #errors = '';
  #heard = Promise.withResolvers<void>();

  constructor(command: readonly string[], env: Readonly<Record<string, string>>) {
    const [program = '', ...args] = command;
    this.#child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child.stderr.on('data', (text) => (this.#errors += String(text)));
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      this.events.push(JSON.parse(line));
      this.#wake();
    });
    this.#ended = once(this.#child, 'close').then(() => (this.#wake(), this.#child.exitCode));
  }

  /**
   * Resolves with the next event of this name after the one that was taken last. Rejects if the program ends without
   * it.
   */
  async next(name: string): Promise<Event> {
    for (;;) {
      const index = this.events.findIndex(({ event }, i) => i >= this.#taken && event === name);
      const found = this.events[index];
      if (found) {
        this.#taken = index + 1;
        return found;
      }
      if (this.#child.exitCode !== null) throw new Error(`ended without ${name}: ${this.said}`);
      await this.#heard.promise;
    }
  }

  /** Asks the program to end, as a service manager does. */
  terminate(): void {
    this.#child.kill('SIGTERM');
  }

  /** Resolves with the exit code of the program. */
  ended(): Promise<number | null> {
    return this.#ended;
  }

  get said(): string {
    return `${JSON.stringify(this.events)} ${this.#errors}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  #wake(): void {
    this.#heard.resolve();
    this.#heard = Promise.withResolvers<void>();
  }
}
