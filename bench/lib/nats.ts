/** Starts a NATS server to compare with, and measures its CPU time. */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { freePort } from '../../test/kit/free-port.ts';

export type NatsServer = AsyncDisposable & { readonly port: number; cpu(): Promise<number> };

/** One clock tick of /proc/<pid>/stat (100 per second on Linux), in microseconds. */
const TICK_US = 10_000;
/** The number of attempts to connect, 50 ms apart, until the server has started. */
const TRIES = 100;

/** Starts `nats-server` as it is installed on this machine. Throws if there is none. */
export async function natsServer(): Promise<NatsServer> {
  if (spawnSync('nats-server', ['--version'], { stdio: 'ignore' }).status !== 0)
    throw new Error('no nats-server found here');
  const port = await freePort();
  const child = spawn('nats-server', ['-a', '127.0.0.1', '-p', String(port)], { stdio: 'ignore' });
  await reachable(port);
  return {
    port,
    /**
     * Returns the CPU time from the system's accounting, in steps of 10 ms, because the server does not report its own.
     */
    async cpu() {
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
      return (Number(fields[11]) + Number(fields[12])) * TICK_US;
    },
    async [Symbol.asyncDispose]() {
      child.kill();
    },
  };
}

async function reachable(port: number): Promise<void> {
  for (let i = 0; i < TRIES; i++) {
    const socket = connect({ port, host: '127.0.0.1' });
    const up = await new Promise<boolean>((done) => {
      socket.on('connect', () => done(true));
      socket.on('error', () => done(false));
    });
    socket.destroy();
    if (up) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error('nats-server did not start');
}
