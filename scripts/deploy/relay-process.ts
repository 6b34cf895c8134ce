/**
 * Runs a relay in its own process, which can be stopped like by a service manager and started again on the same port.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const BIN = join(import.meta.dirname, '..', '..', 'src', 'bin.ts');
const KEPT_CHARS = 4_000;

/** Returns the program and the arguments that run `callboard serve --json`, for example in a container. */
export type ServeCommand = (env: Readonly<Record<string, string>>) => {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
};

/** Returns the command that runs the relay of this checkout. */
export const ofCheckout: ServeCommand = (env) => ({
  program: process.execPath,
  args: [BIN, 'serve', '--json'],
  env: { PATH: process.env['PATH'] ?? '', ...env },
});

export type RelayProcess = AsyncDisposable & {
  readonly pid: number;
  /** Sends SIGTERM to the relay. */
  stop(): Stopping;
  /** The last lines of the relay's log, for error messages. */
  readonly output: string;
};

export type Stopping = {
  /** Resolves when the relay reports that it drains. */
  readonly draining: Promise<void>;
  /** Resolves with the exit code; null if a signal ended the relay. */
  readonly ended: Promise<number | null>;
};

/** Starts a relay with these settings. Resolves when the relay listens. */
export async function startRelayProcess(
  settings: Readonly<Record<string, string>>,
  serve: ServeCommand = ofCheckout,
): Promise<RelayProcess> {
  const { program, args, env } = serve(settings);
  const child = spawn(program, [...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const stopping = Promise.withResolvers<void>();
  createInterface({ input: child.stderr }).on('line', (line) => {
    output = `${output}${line}\n`.slice(-KEPT_CHARS);
    if (line.includes('"msg":"stopping"')) stopping.resolve();
  });
  const failed = once(child, 'exit').then(([code]) => {
    throw new Error(`the relay ended with ${code} before it listened: ${output}`);
  });
  await Promise.race([once(createInterface({ input: child.stdout }), 'line'), failed]);
  failed.catch(() => {});
  return {
    pid: child.pid ?? 0,
    get output() {
      return output;
    },
    stop() {
      const ended = end(child, 'SIGTERM');
      return { draining: Promise.race([stopping.promise, ended.then(() => {})]), ended };
    },
    [Symbol.asyncDispose]: async () => void (await end(child, 'SIGKILL')),
  };
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const exited = once(child, 'exit');
  child.kill(signal);
  await exited;
  return child.exitCode;
}
