/**
 * Tests the operator's commands that only read, against a real relay with one client that has called, waited and
 * reported.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NOUNS } from '../../../src/cli/flags.ts';
import { VERBS } from '../../../src/cli/verbs.ts';
import { createRuntime, type Runtime } from '../../../src/clients/runtime/index.ts';
import { startRealRelay, type RealRelay } from '../../clients/kit/real-relay.ts';
import { operatorOf, type RunOperator } from './kit/operator.ts';

let relay: RealRelay;
let desk: Runtime;
const run: RunOperator = (...given) => operatorOf({ CALLBOARD_URL: relay.url, CALLBOARD_TOKEN: relay.admin })(...given);
const asAlice = async () => ({ env: { CALLBOARD_TOKEN: await relay.token('alice', 'invoke') } });
const json = async (...argv: string[]) => JSON.parse((await run([...argv, '-o', 'json'])).out);

beforeAll(async () => {
  relay = await startRealRelay();
  const token = await relay.token('alice', 'connect');
  const metadata = { room: '12' };
  desk = createRuntime({ url: relay.link, token, clientId: 'desk', clientType: 'console', metadata });
  desk.handle('echo', { summary: 'Answers its parameters' }, (params) => params);
  desk.handle('break', {}, () => {
    throw new Error('the lamp is gone');
  });
  desk.connect();
  await desk.ready();
  await run(['call', 'alice/desk', 'echo', 'a=1', '--id', 'c1'], await asAlice());
  await run(['call', 'alice/desk', 'break', '--id', 'c2'], await asAlice());
});
afterAll(async () => {
  await desk.close({ withinMs: 0 });
  await relay[Symbol.asyncDispose]();
});

describe('every list', () => {
  it.each([
    ['clients', 'ls'],
    ['clients', 'actions', 'alice/desk'],
    ['clients', 'flapping'],
    ['users', 'ls'],
    ['actions', 'ls'],
    ['actions', 'ls', 'echo'],
    ['places', 'ls'],
    ['places', 'ls', '--kind', 'window'],
    ['sites', 'ls'],
    ['calls', 'ls'],
    ['calls', 'find', 'c2'],
    ['calls', 'failures'],
    ['waits', 'ls', '--older', '10s'],
    ['streams', 'ls', 'alice'],
    ['messages', 'ls', 'alice/clients/desk'],
    ['audit', 'ls'],
    ['nodes', 'ls'],
    ['capacity', 'ls'],
  ])('%s %s %s answers in each form, with the names and values of REST', async (...argv) => {
    const page = await json(...argv);
    expect(page).toMatchObject({ items: expect.any(Array), completeness: { complete: true } });
    // Enum values are in lower case, as in REST. The ids and texts of this test are in lower case too.
    expect(JSON.stringify(page)).not.toMatch(/"(?:status|stage|outcome|kind|client_type|source)":"[A-Z]/);
    for (const form of ['table', 'jsonl', 'ids']) {
      const { code, out, err } = await run([...argv, '-o', form]);
      expect({ form, code, err }).toEqual({ form, code: 0, err: '' });
      expect(out.split('\n').length - 1).toBe(page.items.length + (form === 'table' ? 1 : 0));
    }
  });

  it('answers what REST answers', async () => {
    const headers = { authorization: `Bearer ${relay.admin}` };
    for (const [argv, path] of [
      [['clients', 'ls'], '/connections'],
      [['calls', 'ls', '--order', 'key'], '/delivery/commands'],
      [['streams', 'ls', 'alice'], '/history/streams?user_id=alice'],
      [['messages', 'ls', 'alice/clients/desk'], '/history/messages?stream=alice/clients/desk'],
      [['sites', 'ls'], '/sites'],
    ] as const) {
      const { items } = await json(...argv);
      const rest = await (await fetch(relay.url + path, { headers })).json();
      expect(items.map(({ last_seen_at: _, ...row }: Record<string, unknown>) => row)).toEqual(
        rest.items.map(({ last_seen_at: _, ...row }: Record<string, unknown>) => row),
      );
    }
  });
});

describe('filters', () => {
  it.each([
    [['--action', 'echo'], ['c1']],
    [['--outcome', 'failed'], ['c2']],
    [['--code', 'handler_failed'], ['c2']],
    [['--client-type', 'browser'], []],
    [['--caller', 'alice', '--caller-kind', 'admin'], []],
    [
      ['--caller', 'alice'],
      ['c2', 'c1'],
    ],
    [
      ['--label', 'room=12'],
      ['c2', 'c1'],
    ],
    [['--label', 'room=13'], []],
    [['--user-id', 'bob'], []],
    [
      ['--since', '1h'],
      ['c2', 'c1'],
    ],
    [['--until', '1h'], []],
    [
      ['--since', '2000-01-01'],
      ['c2', 'c1'],
    ],
    [
      ['--order', 'key'],
      ['c1', 'c2'],
    ],
  ])('of calls: %s', async (flags, ids) => {
    const { out, err } = await run(['calls', 'ls', ...flags, '-o', 'ids']);
    expect([out, err]).toEqual([ids.map((id) => `alice/desk/${id}\n`).join(''), '']);
  });

  it.each([
    [['--text', 'des'], 1],
    [['--text', 'x'], 0],
    [['--action', 'echo'], 1],
    [['--label', 'room=13'], 0],
    [['--client-type', 'console', '--status', 'connected'], 1],
    [['--status', 'stale'], 0],
  ])('of clients: %s', async (flags, count) => {
    expect((await run(['clients', 'ls', ...flags, '-o', 'ids'])).out).toBe('alice/desk\n'.repeat(count));
  });
});

describe('pages', () => {
  it('are read one after the other with --all, into one document', async () => {
    const all = await json('calls', 'ls', '--all', '--limit', '1');
    expect(all.items.map((row: { command_id: string }) => row.command_id)).toEqual(['c2', 'c1']);
    expect(all).toMatchObject({ next_cursor: null, completeness: { complete: true } });
    const one = await run(['calls', 'ls', '--limit', '1', '-o', 'json']);
    const cursor: string = JSON.parse(one.out).next_cursor;
    expect(one.err).toContain(`--cursor ${cursor}`);
    const next = await run(['calls', 'ls', '--limit', '1', '--cursor', cursor, '-o', 'ids']);
    expect(next).toEqual({ code: 0, out: 'alice/desk/c1\n', err: '' });
  });
});

describe('one thing', () => {
  it('is shown with what is proven about it', async () => {
    expect(await json('calls', 'get', 'alice/desk/c2')).toMatchObject({
      outcome: 'failed',
      error: { code: 'handler_failed' },
      delivery: { stage: 'terminal', execution: 'reported_by_client', caller: { kind: 'user', name: 'alice' } },
      history: { items: expect.arrayContaining([expect.objectContaining({ kind: 'command' })]) },
    });
    expect(await json('clients', 'get', 'alice/desk')).toMatchObject({ status: 'connected', queued: 0, in_flight: 0 });
    const { out } = await run(['calls', 'get', 'alice/desk/c2']);
    expect((await run(['calls', 'get', 'c2'])).out).toBe(out);
    expect(out).toMatch(
      /^break of alice\/desk, call c2\nFailed after \d+ ms: The handler of the client failed\.\nhandler_failed: the lamp/,
    );
    expect([...out.matchAll(/^ [\d:.]{12}(?:  \+\S+ ms)? +(\w+)  /gm)].map(([, what]) => what)).toEqual([
      ...['admitted', 'queued', 'dispatched', 'acknowledged', 'failed', 'command', 'error'],
    ]);
  });

  it('is not found with 3', async () => {
    for (const argv of [
      ['clients', 'get', 'alice/none'],
      ['clients', 'actions', 'alice/none'],
      ['calls', 'get', 'alice/desk/none'],
      ['calls', 'get', 'none'],
      ['calls', 'find', 'none'],
      ['sites', 'get', 'alice/none'],
      ['users', 'get', 'nobody'],
    ])
      expect(await run(argv), argv.join(' ')).toMatchObject({
        code: 3,
        out: '',
        err: expect.stringMatching(/^not_found: /),
      });
  });

  it('is shown to its own user too, and a list of administrators is not', async () => {
    const alice = await asAlice();
    expect(await run(['clients', 'ls', '-o', 'ids'], alice)).toEqual({ code: 0, out: 'alice/desk\n', err: '' });
    expect(await run(['calls', 'get', 'alice/desk/c1', '-o', 'ids'], alice)).toMatchObject({ code: 0 });
    expect(await run(['calls', 'ls'], alice)).toMatchObject({ code: 4, out: '' });
  });
});

describe('the table of verbs', () => {
  it('has every noun, with a command or with commands below it', () => {
    expect(new Set(VERBS.map(({ name }) => name.split(' ')[0]))).toEqual(new Set(Object.keys(NOUNS)));
    expect(new Set(VERBS.map(({ name }) => name)).size).toBe(VERBS.length);
  });

  it.each(VERBS.map((verb) => [verb.name, verb]))('%s has help with its flags, and code', async (name, verb) => {
    const { code, out } = await run([...name.split(' '), '--help']);
    expect(code).toBe(0);
    for (const flag of Object.keys(verb.flags ?? {}))
      expect(out).toContain(`--${flag.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`);
    expect(await verb.load()).toBeTypeOf('function');
  });
});
