/**
 * Tests pauses over three relays that own users, as processes over one Redis: nothing that a pause covers reaches a client
 * between its answer and the resume, although relays are killed.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { createLinkCaller } from '../../src/clients/caller/index.ts';
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';
import { signToken } from '../../src/http/tokens.ts';
import { freePort } from '../kit/free-port.ts';
import { eventually, TEST_MS, TOKEN_SECONDS } from '../kit/patience.ts';

// Three processes start, and two are killed and taken over.
vi.setConfig({ testTimeout: 6 * TEST_MS, hookTimeout: 3 * TEST_MS });

const BIN = join(import.meta.dirname, '..', '..', 'src', 'bin.ts');
const SECRET = 'a secret of the tests, long enough for HS256';
const ADMIN = 'admin-of-the-tests';
const NAMES = ['a', 'b', 'c'] as const;
type Name = (typeof NAMES)[number];
const USERS = Array.from({ length: 8 }, (_, i) => `user-${i}`);
/** How long a frame that was written before an answer may be under way after it, in milliseconds. */
const UNDER_WAY_MS = 500;
/** How long the test looks at what arrives while calls are stopped, in milliseconds. */
const LOOK_MS = 2_000;

const namespace = randomUUID();
const relays = new Map<Name, { readonly port: number; readonly child: ChildProcess }>();

async function start(name: Name, port: number): Promise<void> {
  const env = {
    ...{ CALLBOARD_REDIS_URL: inject('redisUrl'), CALLBOARD_STORE: 'owned', CALLBOARD_DURABILITY: 'memory' },
    ...{ CALLBOARD_NAMESPACE: namespace, CALLBOARD_SECRET: SECRET, CALLBOARD_ADMIN_TOKEN: ADMIN },
    ...{ CALLBOARD_LOG_LEVEL: 'error', CALLBOARD_NODE_ID: name, CALLBOARD_PORT: `${port}` },
    ...{ PATH: process.env['PATH'], XDG_STATE_HOME: process.env['XDG_STATE_HOME'] },
  };
  const child = spawn(process.execPath, [BIN, 'serve', '--json'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  relays.set(name, { port, child });
  await once(child.stdout, 'data');
}

async function kill(name: Name): Promise<number> {
  const { port = 0, child } = relays.get(name) ?? {};
  relays.delete(name);
  if (!child || child.exitCode !== null) return port;
  const closed = once(child, 'close');
  child.kill('SIGKILL');
  await closed;
  return port;
}

let urls: readonly string[] = [];
/** How many commands each user's client has received. */
const received = new Map<string, number>();
let isOver = false;
const opened: { close(): unknown }[] = [];

beforeAll(async () => {
  const ports = await Promise.all(NAMES.map(() => freePort()));
  urls = ports.map((port) => `ws://127.0.0.1:${port}/connect`);
  await Promise.all(NAMES.map((name, i) => start(name, ports[i] ?? 0)));
  for (const [i, user] of USERS.entries()) {
    const token = await signToken({
      ...{ secret: SECRET, user, scopes: ['connect', 'invoke'], ttlSeconds: TOKEN_SECONDS, now: Date.now() },
    });
    // Each begins at another relay, so that most links are not at the owner of their user.
    const url = urls.map((_, at) => urls[(at + i) % urls.length] ?? '');
    const runtime: Runtime = createRuntime({ url, token, clientId: 'desk', clientType: 'console', onError: () => {} });
    runtime.handle('work', {}, () => void received.set(user, (received.get(user) ?? 0) + 1));
    runtime.connect();
    await runtime.ready();
    const caller = createLinkCaller({ url: url.toReversed(), token });
    opened.push({ close: () => runtime.close({ withinMs: 0 }) }, caller);
    void callAgainAndAgain(caller, user);
  }
});
afterAll(async () => {
  isOver = true;
  await Promise.all(opened.map((one) => one.close()));
  await Promise.all([...relays.keys()].map(kill));
});

/** Calls a user's client as soon as the call before has ended in any way, four at a time. */
async function callAgainAndAgain(caller: ReturnType<typeof createLinkCaller>, userId: string): Promise<void> {
  const target = { userId, clientId: 'desk', action: 'work' };
  const times = { connectWithinMs: 5_000, respondWithinMs: 5_000 };
  const one = async (): Promise<void> => {
    while (!isOver) {
      const isRefused = await caller.invoke(target, {}, times).then(
        () => false,
        () => true,
      );
      await new Promise((done) => setTimeout(done, isRefused ? 25 : 1));
    }
  };
  await Promise.all([one(), one(), one(), one()]);
}

type Receipt = { readonly pause_id: string; readonly partial: boolean; readonly silent: readonly string[] };

async function ask(name: Name, method: string, path: string, body?: object): Promise<Receipt> {
  const headers = { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' };
  const url = `http://127.0.0.1:${relays.get(name)?.port}${path}`;
  const answer = await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as Receipt;
}

const pause = (name: Name, body: object): Promise<Receipt> =>
  ask(name, 'POST', '/pauses', { reason: 'the test', ...body });

/** Expects that no client of these users gets anything for a while, and that `meanwhile` happens. */
async function expectSilence(users: readonly string[], meanwhile: () => Promise<unknown> = async () => {}) {
  await new Promise((done) => setTimeout(done, UNDER_WAY_MS));
  const before = users.map((user) => received.get(user));
  await meanwhile();
  await new Promise((done) => setTimeout(done, LOOK_MS));
  expect(users.map((user) => received.get(user))).toEqual(before);
}

/** Waits until the client of each of these users gets calls. */
async function expectCalls(users: readonly string[]): Promise<void> {
  const before = new Map(received);
  await eventually(() =>
    expect(users.filter((user) => (received.get(user) ?? 0) <= (before.get(user) ?? 0))).toEqual([]),
  );
}

test('nothing reaches a client between the answer of a pause and the resume, over kills of relays', async () => {
  await expectCalls(USERS);

  // All calls, at one relay; resumed at another one. Meanwhile a third one is killed and taken over.
  const all = await pause('a', { all: true });
  expect(all).toMatchObject({ partial: false, silent: [] });
  let port = 0;
  await expectSilence(USERS, async () => void (port = await kill('c')));
  // The next owners know of the pause, and so does a relay that starts.
  await start('c', port);
  await expectSilence(USERS);
  await ask('b', 'DELETE', `/pauses/${all.pause_id}`);
  await expectCalls(USERS);

  // The calls of one user, right when a relay dies: the answer waits until it cannot write any more.
  const [stopped = '', ...others] = USERS;
  const killed = kill('b');
  const one = await pause('a', { user_id: stopped });
  port = await killed;
  expect(one.partial).toBe(false);
  await expectSilence([stopped], () => expectCalls(others));
  await start('b', port);
  await expectSilence([stopped]);
  await ask('b', 'DELETE', `/pauses/${one.pause_id}`);
  await expectCalls(USERS);
});
