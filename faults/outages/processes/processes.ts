/** Starts the processes of a run and sends them signals. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A process of a run, which can be killed, paused and restarted. Signals are sent only to its own process id. */
export type Proc = {
  readonly name: string;
  /** How often the process was started, including this time. */
  readonly boot: number;
  readonly pid: number;
  readonly alive: boolean;
  /** Whether this program has paused it. */
  readonly isPaused: boolean;
  /** How the process ended, and what it had been asked to do; null while it runs. */
  readonly end: ProcEnd | null;
  /** Returns the last lines of the process's standard error. */
  complaint(): string;
  kill(): Promise<void>;
  pause(): void;
  resume(): void;
  /** Asks the process to stop, and waits until it has. */
  stop(): Promise<void>;
};

/**
 * How a process ended: its exit code, or the signal that ended it. `asked`: whether this program killed it or asked it
 * to stop; null if it ended by itself.
 */
type ProcEnd = {
  readonly code: number | null;
  readonly signal: string | null;
  readonly asked: 'kill' | 'stop' | null;
};

export type Start = {
  readonly name: string;
  readonly boot: number;
  readonly folder: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The limit of open files with which the process starts; default: that of this process. It works on Linux only. */
  readonly descriptors?: number | undefined;
};

export type Started = { readonly proc: Proc; readonly firstLine: string };

/** The running processes. This process kills them when it exits for any reason. */
const running = new Set<ChildProcess>();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** The timeout for a process to be ready, in milliseconds. */
const START_MS = 60_000;
/** The maximum number of characters of its standard error that are shown if a process ended by itself. */
const COMPLAINT_CHARS = 2_000;

/**
 * Starts this Node on `args` and resolves with its first line of output. Its standard error is written to
 * `<name>.<boot>.err`.
 */
export async function start({ name, boot, folder, args, env, descriptors }: Start): Promise<Started> {
  const complaints = join(folder, `${name}.${boot}.err`);
  const errors = openSync(complaints, 'a');
  const limited = descriptors === undefined ? [] : ['prlimit', `--nofile=${descriptors}`];
  // prlimit replaces itself with the program that it starts, so the process id stays the same.
  const [program = process.execPath, ...rest] = [...limited, process.execPath, ...args];
  const child = spawn(program, rest, {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['pipe', 'pipe', errors],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  child.stdin?.on('error', () => {});
  const firstLine = await lineOf(child);
  closeSync(errors);
  if (firstLine === null)
    throw new Error(`${name} ended before it was ready: ${read(complaints)?.slice(-COMPLAINT_CHARS)}`);
  const complaint = (): string => read(complaints)?.slice(-COMPLAINT_CHARS).trim() ?? '';
  return { proc: handleOf(child, { name, boot, complaint }), firstLine };
}

async function lineOf(child: ChildProcess): Promise<string | null> {
  if (!child.stdout) throw new Error('no output');
  const timer = setTimeout(() => child.kill('SIGKILL'), START_MS);
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      child.stdout.resume();
      return line;
    }
  } finally {
    clearTimeout(timer);
  }
  return null;
}

function handleOf(child: ChildProcess, { name, boot, complaint }: Pick<Proc, 'name' | 'boot' | 'complaint'>): Proc {
  const alive = (): boolean => child.exitCode === null && child.signalCode === null;
  let asked: ProcEnd['asked'] = null;
  let isPaused = false;
  const end = async (how: 'kill' | 'stop', act: () => void): Promise<void> => {
    if (!alive()) return;
    asked = how;
    const ended = once(child, 'exit');
    act();
    await ended;
  };
  return {
    name,
    boot,
    complaint,
    pid: child.pid ?? -1,
    get alive() {
      return alive();
    },
    get end() {
      return alive() ? null : { code: child.exitCode, signal: child.signalCode, asked };
    },
    kill: () => end('kill', () => child.kill('SIGKILL')),
    get isPaused() {
      return isPaused;
    },
    pause() {
      isPaused = child.kill('SIGSTOP');
    },
    resume() {
      isPaused = false;
      child.kill('SIGCONT');
    },
    stop: () =>
      end('stop', () => {
        child.stdin?.end();
        child.kill('SIGTERM');
      }),
  };
}

/** Returns the memory of a process in bytes; null if the process has ended. It works on Linux only. */
export function memoryOf(pid: number): number | null {
  const line = read(`/proc/${pid}/status`)?.match(/^VmRSS:\s+(\d+) kB$/m);
  return line?.[1] === undefined ? null : Number(line[1]) * 1024;
}

/** Returns the number of open sockets of a process. It works on Linux only, and returns 0 elsewhere. */
export function socketsOf(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).filter((name) => linkOf(join(folder, name)).startsWith('socket:')).length;
  } catch {
    return 0;
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
