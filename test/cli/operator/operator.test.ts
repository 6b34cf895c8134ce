/**
 * Tests the operator's commands against a real relay: output in each form, and each exit code by the situation that
 * causes it.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../../src/clients/runtime/index.ts';
import { startRealRelay, type RealRelay } from '../../clients/kit/real-relay.ts';
import { operatorOf, type OperatorSettings, type RunOperator } from './kit/operator.ts';

let relay: RealRelay;
let desk: Runtime;

beforeAll(async () => {
  relay = await startRealRelay();
  desk = await connect('desk');
  desk.handle('echo', { summary: 'Answers its parameters' }, (params) => params);
  desk.handle('break', {}, () => {
    throw new Error('the lamp is gone');
  });
});
afterAll(async () => {
  await desk[Symbol.asyncDispose]();
  await relay[Symbol.asyncDispose]();
});

async function connect(clientId: string): Promise<Runtime> {
  const token = await relay.token('alice', 'connect');
  const runtime = createRuntime({ url: relay.link, token, clientId, clientType: 'console' });
  runtime.connect();
  await runtime.ready();
  return runtime;
}

const run: RunOperator = (...given) => operatorOf({ CALLBOARD_URL: relay.url, CALLBOARD_TOKEN: relay.admin })(...given);

async function asAlice(): Promise<OperatorSettings> {
  return { env: { CALLBOARD_TOKEN: await relay.token('alice', 'invoke') } };
}

describe('call', () => {
  it('sends text and JSON parameters and exits with 0', async () => {
    const argv = ['call', 'alice/desk', 'echo', 'colour=warm', 'on:=true', '-o', 'json', '--id', 'c1'];
    const { code, out, err } = await run(argv, await asAlice());
    expect([code, err]).toEqual([0, '']);
    expect(JSON.parse(out)).toMatchObject({
      command_id: 'c1',
      outcome: 'completed',
      result: { colour: 'warm', on: true },
    });
  });

  it('exits with 6 and the error when the client fails', async () => {
    const { code, out } = await run(['call', 'alice/desk', 'break', '-o', 'json'], await asAlice());
    expect(code).toBe(6);
    expect(JSON.parse(out)).toMatchObject({ outcome: 'failed', error: { message: expect.any(String) } });
  });

  it('exits with 5 when the relay refuses it, because the client is not connected', async () => {
    const { code, out, err } = await run(['call', 'alice/gone', 'echo', '-o', 'json'], await asAlice());
    expect([code, out]).toEqual([5, '']);
    expect(JSON.parse(err)).toMatchObject({ code: 'not_connected', status: 409 });
  });

  it('exits with 7 when nothing was written before the client had to connect', async () => {
    const { code } = await run(['call', 'alice/gone', 'echo', '--connect', '50ms'], await asAlice());
    expect(code).toBe(7);
  });

  it('exits with 8 when another instance replaces the client after the dispatch', async () => {
    const first = await connect('lamp');
    const started = Promise.withResolvers<void>();
    first.handle('hang', {}, () => {
      started.resolve();
      return new Promise(() => {});
    });
    const calling = run(['call', 'alice/lamp', 'hang', '-o', 'json'], await asAlice());
    await started.promise;
    await using _second = await connect('lamp');
    expect(await calling).toMatchObject({ code: 8, out: expect.stringContaining('"outcome":"outcome_unknown"') });
    await first.close({ withinMs: 0 });
  });

  it('exits with 130 when it is interrupted, prints the id, and the command continues', async () => {
    await using slow = await connect('slow');
    const started = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<string>();
    slow.handle('wait', {}, () => {
      started.resolve();
      return finish.promise;
    });
    let interrupt = (): void => {};
    const alice = await asAlice();
    const calling = run(['call', 'alice/slow', 'wait', '--id', 'w1'], { ...alice, stop: (stop) => (interrupt = stop) });
    await started.promise;
    interrupt();
    const { code, err } = await calling;
    expect([code, err]).toEqual([130, expect.stringContaining('callboard calls await alice/slow/w1')]);
    expect(await run(['calls', 'await', 'alice/slow/w1', '--within', '1ms'], alice)).toMatchObject({ code: 9 });
    expect(await run(['waits', 'count', '-o', 'json'])).toMatchObject({ code: 0, err: '' });
    finish.resolve('finished');
    expect(await run(['calls', 'await', 'alice/slow/w1'], alice)).toMatchObject({
      code: 0,
      out: expect.stringContaining('finished'),
    });
  });
});

describe('the other exit codes', () => {
  it('are 3 for an object that does not exist, 4 without rights, and 11 without a relay', async () => {
    expect(await run(['calls', 'cancel', 'alice/desk/none'])).toMatchObject({ code: 3, out: '' });
    expect(await run(['users', 'ls'], { env: { CALLBOARD_TOKEN: 'wrong' } })).toMatchObject({ code: 4, out: '' });
    expect(await run(['users', 'ls'], { env: { CALLBOARD_TOKEN: '' } })).toMatchObject({ code: 4, out: '' });
    expect(await run(['users', 'ls', '--token-command', 'exit 1'])).toMatchObject({ code: 4, out: '' });
    const away = { env: { CALLBOARD_URL: 'http://127.0.0.1:1' } };
    expect(await run(['status'], away)).toMatchObject({ code: 11, out: '' });
  });

  it('are 2 for wrong usage, on standard error', async () => {
    for (const argv of [
      ['clients', 'sl'],
      ['clients', 'ls', '-o', 'yaml'],
      ['call', 'alice', 'echo'],
      ['call', 'alice/desk', 'echo', 'on:=tru'],
      ['call', 'alice/desk', 'echo', '--respond', '3 weeks'],
      ['status', '--url', 'ftp://relay'],
    ])
      expect(await run(argv), argv.join(' ')).toMatchObject({ code: 2, out: '', err: expect.stringMatching(/\S/) });
  });
});

describe('the token', () => {
  it('comes from a command, and no output contains it', async () => {
    const settings = { env: { CALLBOARD_TOKEN: '', ADMIN: relay.admin } };
    const ended = await run(['users', 'ls', '--token-command', `printf %s '${relay.admin}'`], settings);
    expect(ended.code).toBe(0);
    expect(ended.out + ended.err).not.toContain(relay.admin);
  });
});

describe('a listing', () => {
  it('prints a table, whole JSON, lines of JSON, or ids', async () => {
    const only = ['clients', 'ls', '--user-id', 'alice'];
    const table = (await run(only)).out.split('\n');
    expect(table[0]).toMatch(/^USER_ID +CLIENT_ID +STATUS +CLIENT_TYPE +NODE_ID +CONNECTED_AT +LAST_SEEN_AT$/);
    expect(table[1]).toMatch(/^alice +desk +connected +console /);
    const page = JSON.parse((await run([...only, '-o', 'json'])).out);
    expect(page).toMatchObject({ next_cursor: null, completeness: { complete: true } });
    const lines = (await run([...only, '-o', 'jsonl'])).out.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).client_id)).toEqual(page.items.map((row: never) => row['client_id']));
    expect((await run([...only, '-o', 'ids'])).out).toMatch(/^alice\/desk\n/);
  });

  it('is whole JSON also when it is empty, and says where the next page begins', async () => {
    const empty = await run(['clients', 'ls', '--user-id', 'nobody', '-o', 'json']);
    expect(JSON.parse(empty.out)).toMatchObject({ items: [], next_cursor: null, completeness: { complete: true } });
    expect((await run(['clients', 'ls', '--user-id', 'nobody', '-o', 'jsonl'])).out).toBe('');
    await using _other = await connect('other');
    const first = await run(['clients', 'ls', '--limit', '1', '-o', 'ids']);
    expect(first).toMatchObject({ code: 0, err: expect.stringContaining('--cursor ') });
  });

  it.each([
    ['status'],
    ['calls', 'ls'],
    ['waits', 'ls', '--older', '10s'],
    ['waits', 'count'],
    ['users', 'ls'],
    ['users', 'get', 'alice'],
    ['nodes', 'ls'],
    ['capacity', 'ls'],
    ['clients', 'actions', 'alice/desk'],
  ])('%s %s %s answers in each form', async (...argv) => {
    for (const form of ['table', 'json', 'jsonl', 'ids']) {
      const { code, out, err } = await run([...argv, '-o', form]);
      expect({ form, code, err }).toEqual({ form, code: 0, err: '' });
      if (form === 'json') expect(typeof JSON.parse(out)).toBe('object');
    }
  });
});
