/** Tests what `callboard mcp` does while its relay cannot be reached: it answers its host, and messages wait. */
import { createServer, connect } from 'node:net';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { createPump } from '../../src/cli/run/mcp.ts';
import { startRealRelay, type RealRelay } from '../clients/kit/real-relay.ts';
import { FakeClock } from '../kit/clock.ts';
import { freePort } from '../kit/free-port.ts';
import { MODERN, connectClient, recordOf } from './kit/agents.ts';

const INITIALIZE = {
  ...{ jsonrpc: '2.0', id: 'begin', method: 'initialize' },
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'old-host', version: '1.0' } },
};

/** A program `callboard mcp` in this process, on a port where nothing listens yet. */
async function program(relay: RealRelay) {
  const port = await freePort();
  const time = new FakeClock();
  let sleeping = 0;
  const clock = {
    now: () => time.now(),
    monotonic: () => time.monotonic(),
    after(ms: number, run: () => void) {
      sleeping++;
      const cancel = time.after(ms, run);
      return () => {
        sleeping--;
        cancel();
      };
    },
  };
  const printed: any[] = [];
  const pump = createPump({
    ...{ url: `http://127.0.0.1:${port}/mcp`, clock, stopped: new AbortController().signal },
    token: () => relay.token('alice', 'invoke'),
    print: (text) => void printed.push(JSON.parse(text)),
  });
  const answerTo = (id: unknown): any => printed.find((message) => message.id === id);
  return {
    take: (message: object) => pump.take(JSON.stringify(message)),
    answerTo,
    /** Lets time pass until the message with this id is answered. Returns the milliseconds that passed. */
    async answered(id: unknown): Promise<number> {
      const before = time.monotonic();
      while (answerTo(id) === undefined) {
        // The program either tries to reach the relay, in real time, or waits for its next attempt.
        await new Promise(setImmediate);
        if (sleeping > 0) await time.advance(100);
      }
      return time.monotonic() - before;
    },
    /** Lets the relay be reached from now on. */
    async begin(): Promise<AsyncDisposable> {
      const { hostname, port: to } = new URL(relay.url);
      const server = createServer((socket) => {
        const onward = connect(Number(to), hostname);
        for (const one of [socket, onward])
          one.on('error', () => {}).on('close', () => (socket.destroy(), onward.destroy()));
        socket.pipe(onward).pipe(socket);
      });
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
      return { [Symbol.asyncDispose]: async () => void server.close() };
    },
  };
}

function call(id: unknown, args: object = {}): object {
  return { jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'run', arguments: args } };
}

it('a host that begins is answered, and its calls run once the relay is there, in its session', async () => {
  await using relay = await startRealRelay({ mcp: 'on' });
  let runs = 0;
  await using _desk = await connectClient(relay, (runtime) => runtime.handle('run', {}, () => ++runs));
  const { take, answered, answerTo, begin } = await program(relay);
  take(INITIALIZE);
  expect(await answered('begin')).toBeLessThan(5_000);
  expect(answerTo('begin').result).toMatchObject({
    protocolVersion: '2025-06-18',
    capabilities: { tools: {} },
    serverInfo: { name: 'callboard' },
  });
  take({ jsonrpc: '2.0', method: 'notifications/initialized' });
  take(call(1));
  await using _reached = await begin();
  await answered(1);
  expect(answerTo(1).result).toMatchObject({ content: [{ text: '1' }] });
  take(call(2));
  await answered(2);
  expect(runs).toBe(2);
  // The relay knows the program from its handshake alone.
  const record = await recordOf(relay.callboard.core, answerTo(2).result);
  expect(JSON.stringify(record)).toContain('old-host');
});

it('a host of the newest protocol is answered too', async () => {
  await using relay = await startRealRelay({ mcp: 'on' });
  const { take, answered, answerTo } = await program(relay);
  take({ jsonrpc: '2.0', id: 0, method: 'server/discover', params: {} });
  expect(await answered(0)).toBeLessThan(5_000);
  expect(answerTo(0).result).toMatchObject({ supportedVersions: [MODERN], resultType: 'complete' });
});

it('a call waits as long as it may take, and then says that nothing ran', async () => {
  await using relay = await startRealRelay({ mcp: 'on' });
  const { take, answered, answerTo } = await program(relay);
  take(call(1));
  take(call(2, { respond_within_ms: 2_000 }));
  expect(await answered(2)).toBeLessThan(4_000);
  expect(answerTo(2).error.message).toContain('The relay was not reached, and nothing ran');
  expect(answerTo(1)).toBeUndefined();
  expect(await answered(1)).toBeGreaterThan(20_000);
  expect(answerTo(1).error.code).toBe(-32_000);
});
