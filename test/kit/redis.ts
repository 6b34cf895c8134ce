/** Starts redis-server processes for tests. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { connectTo, type Client } from '../../src/backends/redis/client.ts';
import { readTarget } from '../../src/backends/redis/target.ts';
import { type Log, silentLog } from '../../src/core/ports.ts';
import { freePort } from './free-port.ts';

/** The program that tests start as redis-server. */
export const PROGRAM = process.env.CALLBOARD_TEST_REDIS ?? 'redis-server';

/** A separate Redis on a free loopback port with its own folder. */
export type RedisServer = {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  readonly process: ChildProcess;
  /** Kills the process, as a crash would: nothing more is written. Its folder stays. */
  kill(): Promise<void>;
  /** Starts the server again on the same port, with the data in its folder. */
  restart(): Promise<void>;
  /** Kills the process and removes its folder. */
  stop(): Promise<void>;
};

/** How often a Redis is started: another program may take its port before it does. */
const STARTS = 4;

/** Calls `start` again if it fails, which takes other ports each time. */
export async function startedAgain<T>(start: () => Promise<T>): Promise<T> {
  for (let left = STARTS - 1; left > 0; left--) {
    try {
      return await start();
    } catch {
      // The last failure is thrown.
    }
  }
  return start();
}

/** Starts a Redis that listens on loopback only. `args` are additional arguments; by default it persists nothing. */
export function startRedis(args?: readonly string[], port?: number): Promise<RedisServer> {
  return port === undefined ? startedAgain(() => startOnce(args)) : startOnce(args, port);
}

async function startOnce(
  args: readonly string[] = ['--save', '', '--appendonly', 'no'],
  port?: number,
): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'callboard-redis-'));
  const at = port ?? (await freePort());
  let child = await launch(at, folder, args).catch((error: unknown) => {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  });
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  return {
    url: `redis://127.0.0.1:${at}`,
    port: at,
    folder,
    get process() {
      return child;
    },
    kill,
    async restart() {
      await kill();
      child = await launch(at, folder, args);
    },
    async stop() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function launch(port: number, folder: string, args: readonly string[]): Promise<ChildProcess> {
  const own = ['--bind', '127.0.0.1', '--port', String(port), '--dir', folder];
  const child = spawn(PROGRAM, [...own, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const stderr: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    stderr.push(line);
    if (line.includes('Ready to accept connections')) {
      child.stdout.resume();
      return child;
    }
  }
  throw new Error(`redis-server did not start:\n${stderr.join('\n')}`);
}

// Creates clients of Redis for tests.

/** Returns a client for commands to the Redis at this address. The client is not connected yet. */
export function connectCommands(url: string, log: Log = silentLog): Client {
  return connectTo(readTarget(url), 'commands', log);
}
