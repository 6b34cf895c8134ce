/** Tests that the command line waits for a relay within limits, and follows no redirect to another host. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { FakeClock } from '../../kit/clock.ts';
import { until } from '../../relay/kit/test-relay.ts';
import { operatorOf } from './kit/operator.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const run = operatorOf({ CALLBOARD_TOKEN: 'planted-token-of-limits' });

describe('a redirect', () => {
  it.each([
    ['a read', ['users', 'ls']],
    ['a call', ['call', 'alice/tab', 'open', 'secret=1']],
    ['a stream', ['calls', 'tail']],
  ])('to another host is told and not followed: %s', async (_what, argv) => {
    const asked: string[] = [];
    const elsewhere = await serve((request, response) => {
      asked.push(`${request.method} ${request.url} ${request.headers.authorization}`);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"items":[]}');
    });
    const relay = await serve((request, response) => {
      response.writeHead(307, { location: `${elsewhere}${request.url}` }).end();
    });
    const ended = await run([...argv, '--url', relay]);
    expect(asked).toEqual([]);
    expect(ended.code).not.toBe(0);
    expect(ended.err).toContain('a redirect, which is not followed');
  });
});

describe('a relay that does not answer', () => {
  it('ends the wait for a stream', async () => {
    const clock = new FakeClock();
    let asked = 0;
    const relay = await serve(() => void asked++);
    const ended = run(['calls', 'tail', '--url', relay], { clock });
    await until(() => asked > 0);
    await clock.advance(120_000);
    expect(await ended).toMatchObject({ code: 11, err: expect.stringContaining('is silent') });
  });

  it('ends a stream that became silent, and another one is opened', async () => {
    const clock = new FakeClock();
    let asked = 0;
    const relay = await serve((_request, response) => {
      asked++;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(':\n\n');
    });
    let stop = (): void => {};
    const ended = run(['calls', 'tail', '--url', relay], { clock, stop: (run) => (stop = run) });
    await until(() => asked === 1);
    await until(async () => {
      await clock.advance(10_000);
      return asked === 2;
    });
    stop();
    await ended;
  });
});
