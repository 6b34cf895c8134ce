/** Tests listening on a socket that a service manager passes. */
import { spawn } from 'node:child_process';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { activatedSocket } from '../../src/cli/serve.ts';

const BIN = join(import.meta.dirname, '..', '..', 'src', 'bin.ts');

/** Returns the file descriptor of a listening server, which a child process can inherit. */
function descriptorOf(server: ReturnType<typeof createServer>): number {
  const { _handle: handle } = server as unknown as { _handle: { fd: number } };
  return handle.fd;
}

describe('a socket that a service manager passes', () => {
  it('is used only by the process that it was passed to', () => {
    expect(activatedSocket({ LISTEN_PID: '7', LISTEN_FDS: '1' }, 7)).toBe(3);
    expect(activatedSocket({ LISTEN_PID: '8', LISTEN_FDS: '1' }, 7)).toBeNull();
    expect(activatedSocket({}, 7)).toBeNull();
    expect(() => activatedSocket({ LISTEN_PID: '7', LISTEN_FDS: '2' }, 7)).toThrow('expected 1 socket');
  });

  it('answers requests that arrived before the relay started', async () => {
    const server = createServer();
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as AddressInfo;
    // The shell replaces itself with the relay, so LISTEN_PID is the relay's process id.
    const script = `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$1" serve --json --port 1`;
    const child = spawn('/bin/sh', ['-c', script, process.execPath, BIN], {
      env: { PATH: process.env['PATH'], XDG_STATE_HOME: process.env['XDG_STATE_HOME'] },
      stdio: ['ignore', 'pipe', 'ignore', descriptorOf(server)],
    });
    server.close();
    const early = fetch(`http://127.0.0.1:${port}/healthz`);
    if (!child.stdout) throw new Error('no output');
    const lines = createInterface({ input: child.stdout });
    const text = await new Promise<string>((done) => lines.once('line', done));
    expect(JSON.parse(text)).toMatchObject({ event: 'listening', url: `http://127.0.0.1:${port}` });
    expect((await early).status).toBe(200);
    child.kill('SIGTERM');
    expect(await new Promise((done) => child.on('close', done))).toBe(0);
  });
});
