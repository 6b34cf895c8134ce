/** Runs the steps of `npm run deploy:check` one after the other, and prints what each did or why it could not run. */
import { spawnSync } from 'node:child_process';

/** Thrown by a step that this machine cannot run, with the reason as its message. It does not count as a failure. */
export class CannotRun extends Error {}

export type Say = (line: string) => void;

export class Steps {
  readonly #rows: { readonly name: string; readonly result: string }[] = [];
  #failed = false;

  /** Runs a step and returns its result, or null if it failed or could not run. */
  async run<T>(name: string, act: (say: Say) => Promise<T>): Promise<T | null> {
    const startedAt = Date.now();
    write(`\n== ${name}`);
    try {
      const value = await act((line) => write(`   ${line}`));
      this.#end(name, `passed in ${Math.round((Date.now() - startedAt) / 1000)} s`);
      return value;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#failed ||= !(error instanceof CannotRun);
      this.#end(name, error instanceof CannotRun ? `not run: ${message}` : `FAILED: ${message}`);
      return null;
    }
  }

  /** Prints all steps with their results. Returns the exit code. */
  summary(): 0 | 1 {
    write('\n== Summary');
    for (const { name, result } of this.#rows) write(`   ${name}: ${result}`);
    return this.#failed ? 1 : 0;
  }

  #end(name: string, result: string): void {
    this.#rows.push({ name, result });
    write(`   ${result}`);
  }
}

/** Runs a program and returns its standard output. If the program fails, throws an error that contains its output. */
export function output(program: string, args: readonly string[], cwd?: string): string {
  const { status, stdout, stderr, error } = spawnSync(program, [...args], {
    ...(cwd !== undefined && { cwd }),
    ...{ encoding: 'utf8', maxBuffer: 2 ** 28, stdio: ['ignore', 'pipe', 'pipe'] },
  });
  if (error) throw error;
  if (status !== 0)
    throw new Error(`${program} ${args.join(' ')} ended with ${status}:\n${(stdout + stderr).slice(-3_000)}`);
  return stdout;
}

function write(line: string): void {
  process.stdout.write(`${line}\n`);
}
