/**
 * Tests that a call whose answer was lost runs once when it is repeated: behind a proxy, and after the relay was
 * killed.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { signToken } from '../../src/http/tokens.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { startRealRelay } from '../clients/kit/real-relay.ts';
import { startResettingProxy } from '../kit/tcp-proxy.ts';
import { freePort } from '../kit/free-port.ts';
import { ownFolder } from '../kit/folder.ts';
import { callTool, connectClient, textOf } from './kit/agents.ts';
import { TOKEN_SECONDS } from '../kit/patience.ts';

describe('a proxy that resets the connection after a part of the answer', () => {
  it.each([
    ['JSON', {}],
    ['an event stream', { progressToken: 1 }],
  ])(
    'causes no second run, wherever it cuts %s',
    async (_, meta) => {
      await using relay = await startRealRelay({ mcp: 'on' });
      const ran = new Map<unknown, number>();
      await using _desk = await connectClient(relay, (runtime) =>
        runtime.handle('add', {}, ({ n }) => {
          ran.set(n, (ran.get(n) ?? 0) + 1);
          return { n, text: 'x'.repeat(3_000) };
        }),
      );
      await using proxy = await startResettingProxy(relay.url);
      const token = await relay.token('alice', 'invoke');
      const [near, direct] = [
        { url: proxy.url, token },
        { url: relay.url, token },
      ];
      await callTool(near, 'add', { n: -1 }, { meta });
      const whole = proxy.received;
      expect(whole).toBeGreaterThan(3_000);
      const cuts = [0, 1, 100, 300, 400, 600, 1_000, 2_000, 3_000, whole - 2, whole - 1, whole];
      for (const [n, bytes] of cuts.entries()) {
        proxy.resetAfter(bytes);
        await callTool(near, 'add', { n }, { meta }).catch(() => null);
        proxy.resetAfter(Infinity);
        const repeated = await callTool(direct, 'add', { n }, { meta });
        expect(JSON.parse(textOf(repeated.result).split('\n\n').at(-1) ?? '')).toMatchObject({ n });
        expect([bytes, ran.get(n)]).toEqual([bytes, 1]);
      }
    },
    60_000,
  );
});

const BIN = join(import.meta.dirname, '..', '..', 'src', 'bin.ts');
const SECRET = 'a secret of more than thirty-two bytes';
const running = new Set<ChildProcess>();
afterEach(() => running.forEach((child) => child.kill('SIGKILL')));

/** Starts a relay as a process and resolves with it once it listens. */
async function startProcess(port: number, env: Record<string, string>): Promise<ChildProcess> {
  const { PATH = '', XDG_STATE_HOME = '' } = process.env;
  const base = { PATH, XDG_STATE_HOME, CALLBOARD_SECRET: SECRET, CALLBOARD_MCP: 'on', CALLBOARD_LOG_LEVEL: 'error' };
  const argv = [BIN, 'serve', '--json', '--port', String(port)];
  const child = spawn(process.execPath, argv, { env: { ...base, ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
  running.add(child);
  for await (const _ of createInterface({ input: child.stdout })) return child;
  throw new Error('it ended without a word');
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = new Promise((done) => child.once('exit', done));
  child.kill('SIGKILL');
  await ended;
  running.delete(child);
}

/** How often a relay is killed. */
const KILLS = process.env['CALLBOARD_LONG_TESTS'] === 'on' ? 40 : 2;

describe('a relay that is killed during a call', () => {
  const shared = () => ({
    CALLBOARD_REDIS_URL: inject('redisUrl'),
    CALLBOARD_NAMESPACE: randomUUID(),
    CALLBOARD_DURABILITY: 'memory',
  });
  it.each([
    ['with a data directory', () => ({ CALLBOARD_DATA_DIR: ownFolder(), CALLBOARD_DATA_SYNC: 'always' })],
    ['over Redis', shared],
  ])(
    '%s knows the command afterwards, and the repeated call does not run it',
    async (_, make) => {
      const env: Record<string, string> = make();
      const port = await freePort();
      const url = `http://127.0.0.1:${port}`;
      const token = await signToken({
        secret: SECRET,
        user: 'alice',
        scopes: ['connect', 'invoke'],
        ttlSeconds: TOKEN_SECONDS,
        now: Date.now(),
      });
      const at = { url, token };
      const runs: number[] = [];
      let begun = Promise.withResolvers<void>();
      let held = Promise.withResolvers<void>();
      await using runtime = createRuntime({
        url: `ws://127.0.0.1:${port}/connect`,
        token,
        clientId: 'desk',
        clientType: 'console',
      });
      runtime.handle('pay', {}, async ({ amount }) => {
        runs.push(Number(amount));
        begun.resolve();
        await held.promise;
        return { paid: amount };
      });
      let relay = await startProcess(port, env);
      for (let amount = 1; amount <= KILLS; amount++) {
        [begun, held] = [Promise.withResolvers(), Promise.withResolvers()];
        runtime.connect();
        await runtime.ready();
        const lost = callTool(at, 'pay', { amount }).catch(() => null);
        await begun.promise;
        // Every other time the kill races with the result.
        if (amount % 2 === 0) held.resolve();
        await kill(relay);
        const arrived = await lost;
        relay = await startProcess(port, env);
        held.resolve();
        // A host that has the answer wants another run if it calls again.
        if (arrived?.result) expect(textOf(arrived.result)).toContain(`"paid":${amount}`);
        else
          await expect
            .poll(async () => textOf((await callTool(at, 'pay', { amount }).catch(() => null))?.result))
            .toMatch(new RegExp(`"paid":${amount}|MAY HAVE RUN|may have run`));
        expect(runs.filter((one) => one === amount)).toHaveLength(1);
      }
      await kill(relay);
    },
    KILLS * 60_000,
  );
});
