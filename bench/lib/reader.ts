/**
 * Starts the program that reads event streams: the C program if a compiler is available, otherwise the Node program.
 * The C program is preferred, because the reader must not be slower than the server.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export type ReaderOptions = {
  readonly port: number;
  readonly streams: number;
  /** The raw requests, which are assigned to the streams in turn. */
  readonly requests: readonly string[];
  /** The bytes, in hex, that are sent after a stream's first data; empty if none are sent. */
  readonly answer: string;
  /** The character that occurs exactly once in each event and nowhere else. */
  readonly marker: string;
};

/** A running reader, which counts the events that its streams have received. */
export interface Reader extends AsyncDisposable {
  readonly events: number;
  readonly bytes: number;
  readonly gone: number;
  /** Resolves when this many events have arrived. Rejects if nothing arrives for STALL_MS before that. */
  until(events: number): Promise<void>;
  /** Resolves when nothing has arrived for QUIET_MS. */
  quiet(): Promise<void>;
}

/** The time without any event after which the measurement fails, in milliseconds. */
const STALL_MS = 8_000;
/** The time without data after which the streams count as quiet, in milliseconds. */
const QUIET_MS = 120;
/** The timeout for every stream to receive its first data, in milliseconds. */
const OPEN_MS = 60_000;

/** Returns the command that runs the reader. `native`: whether it is the C program. */
export function readerCommand(): { readonly command: readonly string[]; readonly native: boolean } {
  const source = fileURLToPath(new URL('../loads/reader.c', import.meta.url));
  const folder = fileURLToPath(new URL('../.cache/', import.meta.url));
  mkdirSync(folder, { recursive: true });
  const program = join(folder, 'reader');
  if (spawnSync('cc', ['-O2', '-o', program, source], { stdio: 'ignore' }).status === 0)
    return { command: [program], native: true };
  return { command: [process.execPath, fileURLToPath(new URL('../loads/reader.ts', import.meta.url))], native: false };
}

/** Opens the streams and resolves when all of them have received data. */
export async function openReader(command: readonly string[], options: ReaderOptions): Promise<Reader> {
  const { port, streams, requests, answer, marker } = options;
  const folder = mkdtempSync(join(tmpdir(), 'callboard-bench-'));
  const file = join(folder, 'requests');
  writeFileSync(file, requests.map((text) => `${text}\0`).join(''), 'latin1');
  const [program = '', ...first] = command;
  const args = [...first, String(port), String(streams), file, answer, String(marker.charCodeAt(0))];
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const reader = watch(child);
  try {
    await reader.ready;
  } catch (error) {
    await reader[Symbol.asyncDispose]();
    throw error;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return reader;
}

type Watched = Reader & { readonly ready: Promise<void> };

function watch(child: ChildProcess): Watched {
  let [events, bytes, gone] = [0, 0, 0];
  let heard = performance.now();
  const ready = Promise.withResolvers<void>();
  const late = setTimeout(() => ready.reject(new Error('Not every stream received something.')), OPEN_MS);
  let waiting: { readonly events: number; readonly resolve: () => void } | null = null;
  const onLine = (line: string): void => {
    if (line === 'READY') return ready.resolve();
    if (line === 'GONE') return void gone++;
    const [some, size] = line.split(' ');
    [events, bytes, heard] = [Number(some), Number(size), performance.now()];
    if (waiting && events >= waiting.events) waiting.resolve();
  };
  if (child.stdout) createInterface({ input: child.stdout }).on('line', onLine);
  child.on('exit', () => ready.reject(new Error('The reader of streams ended.')));
  ready.promise.finally(() => clearTimeout(late)).catch(() => {});
  return {
    ready: ready.promise,
    get events() {
      return events;
    },
    get bytes() {
      return bytes;
    },
    get gone() {
      return gone;
    },
    async until(wanted) {
      if (events >= wanted) return;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      waiting = { events: wanted, resolve };
      const began = performance.now();
      const stall = setInterval(() => {
        if (performance.now() - Math.max(heard, began) > STALL_MS)
          reject(new Error(`Of ${wanted} events ${events} came.`));
      }, 200);
      await promise.finally(() => clearInterval(stall));
    },
    async quiet() {
      for (let before = -1; before !== bytes;) {
        before = bytes;
        await new Promise((done) => setTimeout(done, QUIET_MS));
      }
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await new Promise((done) => child.once('exit', done));
    },
  };
}
