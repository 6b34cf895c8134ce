/** Tests how a relay's process ends after an error that nothing caught. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { createCallboard } from '../../src/callboard.ts';
import { CRASHED } from '../../src/cli/exit-codes.ts';
import { signToken } from '../../src/http/tokens.ts';
import { SUBPROTOCOL } from '../../src/protocol/frames.ts';
import { TOKEN_SECONDS } from '../kit/patience.ts';

const SECRET = 'a secret of the crash tests, long enough for HS256';
const BIN = join(import.meta.dirname, '..', '..', 'src', 'bin.ts');
/** Plants the errors in the relay's process: an exception at SIGUSR2, a rejected promise at SIGWINCH. */
const PLANTED = `
process.on('SIGUSR2', () => { throw new Error('planted', { cause: new Error('the cause') }); });
process.on('SIGWINCH', () => void Promise.reject(new Error('planted', { cause: new Error('the cause') })));`;

const running = new Set<ChildProcess>();
afterEach(() => running.forEach((child) => child.kill('SIGKILL')));

async function startProcess(command: readonly string[]) {
  const planting = ['--import', `data:text/javascript,${encodeURIComponent(PLANTED)}`];
  const child = spawn(process.execPath, [...planting, BIN, ...command, '--port', '0'], {
    env: { PATH: process.env['PATH'], CALLBOARD_SECRET: SECRET, CALLBOARD_ADMIN_TOKEN: 'the-administrator' },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  running.add(child);
  const errors: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => errors.push(line));
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  return { child, errors, line: String(line), ended: once(child, 'close') };
}

/** A link that records the types of the frames that it receives. */
async function openLink(url: string) {
  const token = await signToken({
    secret: SECRET,
    user: 'ann',
    scopes: ['connect'],
    ttlSeconds: TOKEN_SECONDS,
    now: Date.now(),
  });
  const socket = new WebSocket(`${url.replace('http', 'ws')}/connect`, SUBPROTOCOL);
  const frames: { readonly type: string; readonly [member: string]: unknown }[] = [];
  const awaited = new Map<string, (frame: (typeof frames)[number]) => void>();
  socket.on('message', (data) => {
    for (const text of String(data).split('\u001e')) {
      const frame = JSON.parse(text.split('\n')[0] ?? '') as (typeof frames)[number];
      frames.push(frame);
      awaited.get(frame.type)?.(frame);
    }
  });
  const closed = once(socket, 'close');
  const next = (type: string): Promise<(typeof frames)[number]> => new Promise((done) => awaited.set(type, done));
  await once(socket, 'open');
  const welcome = next('welcome');
  const hello = { type: 'hello', token, client_id: 'desk', instance_id: 'i1', client_type: 'console' };
  socket.send(`${JSON.stringify(hello)}\n{"actions":[{"name":"work"}]}`);
  await welcome;
  return { socket, frames, next, closed, token };
}

describe('a relay in whose process an error was not caught', () => {
  it.each([
    ['an exception', 'SIGUSR2'],
    ['a rejected promise', 'SIGWINCH'],
  ] as const)('tells its links, answers nothing, and exits with its own code after %s', async (_, signal) => {
    const { child, errors, line, ended } = await startProcess(['serve', '--json']);
    const { url } = JSON.parse(line) as { readonly url: string };
    const link = await openLink(url);
    const arrived = link.next('command');
    const call = fetch(`${url}/connections/ann/desk/actions/work`, {
      method: 'POST',
      headers: { authorization: 'Bearer the-administrator', 'content-type': 'application/json' },
      body: '{"params":{}}',
    });
    const answer = call.then(
      ({ status }) => status,
      () => 'no answer',
    );
    const { command_id: id } = await arrived;
    const bye = link.next('bye');
    child.kill(signal);
    expect(await bye).toMatchObject({ code: 4490, reason: 'internal', reconnect: true });
    link.socket.send(`${JSON.stringify({ type: 'result', command_id: id })}\n1`);
    expect(await answer).toBe('no answer');
    expect((await link.closed)[0]).toBe(4490);
    expect(link.frames.at(-1)?.type).toBe('bye');
    expect(await ended).toEqual([CRASHED, null]);
    const [logged = '', ...more] = errors.filter((text) => text.includes('"level":"error"'));
    expect(more).toEqual([]);
    expect(JSON.parse(logged)).toMatchObject({ msg: 'an error that nothing caught: the relay ends' });
    expect(logged).toContain('planted');
    expect(logged).toContain('the cause');
  });

  it('exits within about a second although a link does not answer the close', async () => {
    const { child, line, ended } = await startProcess(['serve', '--json']);
    const link = await openLink((JSON.parse(line) as { readonly url: string }).url);
    link.socket.pause();
    child.kill('SIGUSR2');
    expect(await ended).toEqual([CRASHED, null]);
    link.socket.terminate();
  });

  it('ends the demo in the same way', async () => {
    const { child, errors } = await startProcess(['demo', '--browser', 'none']);
    const exited = once(child, 'exit');
    child.kill('SIGUSR2');
    expect(await exited).toEqual([CRASHED, null]);
    expect(errors.join('\n')).toContain('an error that nothing caught: the relay ends');
  });
});

it('a relay that is used as a library registers nothing on the process', async () => {
  const before = ['uncaughtException', 'unhandledRejection'].map((event) => process.listenerCount(event));
  await using callboard = createCallboard({ config: { auth: {} } });
  await callboard.listen();
  expect(['uncaughtException', 'unhandledRejection'].map((event) => process.listenerCount(event))).toEqual(before);
});
