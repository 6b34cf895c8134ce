/** Tests the exit codes and output of `callboard healthcheck`. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { main } from '../../src/cli/main.ts';
import { startHttpRelay } from '../http/kit/http-relay.ts';

async function check(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  let out = '';
  let err = '';
  const io = {
    env: {},
    print: (text: string) => (out += text),
    complain: (text: string) => (err += text),
    onStop() {},
  };
  return { code: await main(['healthcheck', ...argv], io), out, err };
}

describe('callboard healthcheck', () => {
  it('exits with 0 and prints the answer of a ready relay', async () => {
    await using at = await startHttpRelay({ basePath: '/board' });
    const port = new URL(at.url).port;
    expect(await check('--port', port, '--base-path', '/board')).toEqual({
      code: 0,
      out: expect.stringContaining('"ready"'),
      err: '',
    });
  });

  it('exits with 1 and the answer of a relay that drains', async () => {
    await using at = await startHttpRelay();
    await at.callboard.drain(0);
    const { code, out, err } = await check('--port', new URL(at.url).port);
    expect([code, out]).toEqual([1, '']);
    expect(err).toMatch(/readyz answers 503: .*draining/s);
  });

  it('exits with 1 if nothing listens, or nothing answers in time', async () => {
    const silent = createServer(() => {});
    await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done));
    const { port } = silent.address() as AddressInfo;
    const late = await check('--port', String(port), '--within', '20');
    expect([late.code, late.err]).toEqual([1, expect.stringContaining('does not answer (')]);
    silent.closeAllConnections();
    await new Promise((done) => silent.close(done));
    const gone = await check('--port', String(port));
    expect([gone.code, gone.err]).toEqual([1, expect.stringContaining('ECONNREFUSED')]);
  });

  it('exits with 2 for a wrong flag', async () => {
    expect(await check('--within', 'soon')).toMatchObject({ code: 2, err: expect.stringContaining('--within') });
    expect(await check('--prot', '1')).toMatchObject({ code: 2, err: expect.stringContaining('--prot') });
  });
});
