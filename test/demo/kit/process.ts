/** Starts the demo as a process, and examines its child processes. */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { WAIT_MS } from '../../kit/patience.ts';

const BIN = fileURLToPath(new URL('../../../src/bin.ts', import.meta.url));
const POLL_MS = 50;

/** Polls until there is an answer other than null. Fails with the name of what was awaited. */
export async function until<T>(what: string, ask: () => Promise<T | null> | T | null): Promise<T> {
  const end = performance.now() + WAIT_MS;
  for (;;) {
    const answer = await ask();
    if (answer !== null) return answer;
    if (performance.now() > end) throw new Error(`In ${WAIT_MS} ms it did not come to this: ${what}`);
    await sleep(POLL_MS);
  }
}

/** A started program, its output, and how it ended. */
export class Started implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly exit: Promise<number | null>;
  out = '';
  err = '';

  constructor(child: ChildProcess) {
    this.child = child;
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.out += text));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.err += text));
    this.exit = new Promise((resolve) => child.once('close', resolve));
  }

  /** Starts a command in a shell. The shell gets its own process group, so that it ends together with its children. */
  static shell(command: string): Started {
    return new Started(spawn('sh', ['-c', command], { detached: true, stdio: ['ignore', 'pipe', 'pipe'] }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { pid, exitCode, signalCode } = this.child;
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, 'SIGKILL');
    await this.exit;
  }
}

export type Demo = AsyncDisposable & { readonly run: Started; readonly temp: string };

/** Starts `callboard demo` as a user does, with its own folder for temporary files. */
export function startDemo(...flags: readonly string[]): Demo {
  const temp = mkdtempSync(join(tmpdir(), 'callboard-test-'));
  const env = { ...process.env, TMPDIR: temp };
  const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];
  const run = new Started(
    spawn(process.execPath, [BIN, 'demo', '--port', '0', ...flags], { env, stdio, detached: true }),
  );
  return {
    run,
    temp,
    async [Symbol.asyncDispose]() {
      await run[Symbol.asyncDispose]();
      rmSync(temp, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

/** Returns the process ids of all descendants of a process, according to Linux. */
export function descendants(pid: number): readonly number[] {
  const parents = new Map(processes().map((child) => [child, parentOf(child)]));
  const found = new Set([pid]);
  for (let before = 0; before !== found.size;) {
    before = found.size;
    for (const [child, parent] of parents) if (parent !== null && found.has(parent)) found.add(child);
  }
  found.delete(pid);
  return [...found];
}

export function commandOf(pid: number): string {
  return read(pid, 'cmdline')?.replaceAll('\0', ' ') ?? '';
}

/** Returns whether the process runs. A zombie counts as ended. */
export function isAlive(pid: number): boolean {
  const stat = read(pid, 'stat');
  return stat !== null && !/\) [ZX] /.test(stat);
}

function processes(): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function parentOf(pid: number): number | null {
  const parent = /\) \S (\d+)/.exec(read(pid, 'stat') ?? '')?.[1];
  return parent === undefined ? null : Number(parent);
}

function read(pid: number, file: 'stat' | 'cmdline'): string | null {
  try {
    return existsSync(`/proc/${pid}`) ? readFileSync(`/proc/${pid}/${file}`, 'utf8') : null;
  } catch {
    return null;
  }
}
