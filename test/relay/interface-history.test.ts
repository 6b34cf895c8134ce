/** Tests the documented interface of history, sentence by sentence. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startTestRelay, type TestRelay, type Welcomed } from './kit/test-relay.ts';

let at: TestRelay;
let tab: Welcomed;
beforeEach(async () => {
  at = await startTestRelay();
  tab = await at.client({ client_id: 'tab', instance_id: 'i1' });
});
afterEach(() => at[Symbol.asyncDispose]());

const json = async (path: string): Promise<any> => JSON.parse((await at.rest(path)).text);
const messages = async (query = ''): Promise<any[]> =>
  (await json(`/history/messages?stream=alice/clients/tab${query}`)).items;
const kinds = async (query: string) => (await messages(query)).map(({ kind }) => kind);

/** Runs one command to its result, with a second between its messages. */
async function complete(command_id: string): Promise<void> {
  const body = { command_id, params: { secret: 'given' }, trace_id: 'trace-1', parent_span_id: 'span-1' };
  const invoked = at.post('/connections/alice/tab/actions/open', body);
  await tab.next('command');
  await at.clock.advance(1000);
  tab.send({ type: 'result', command_id }, { secret: 'got' });
  await invoked;
}

async function fail(command_id: string, code: string, message: string): Promise<void> {
  const invoked = at.post('/connections/alice/tab/actions/open', { command_id });
  await tab.next('command');
  tab.raw(
    JSON.stringify({ type: 'error', command_id, code, message, stack: 'at secret.js:1', details: { raw: 'secret' } }),
  );
  await invoked;
}

describe('GET /history/streams', () => {
  it('one user; optional prefix; cursor: stream summaries for that user, with message and timestamp summary', async () => {
    const began = at.clock.now();
    await complete('c1');
    for (const client of ['phone', 'other']) {
      await at.post(`/connections/alice/${client}/actions/open`, { connect_within_ms: 9000, wait_for: 'admitted' });
    }
    const path = '/history/streams?user_id=alice';
    const { items, completeness } = await json(path);
    expect(items.map(({ stream }: any) => stream)).toEqual([
      'alice/clients/other',
      'alice/clients/phone',
      'alice/clients/tab',
    ]);
    expect([items[2], completeness.complete]).toEqual([
      {
        stream: 'alice/clients/tab',
        user_id: 'alice',
        suffix: 'clients/tab',
        message_count: 2,
        first_at: new Date(began).toISOString(),
        last_at: new Date(began + 1000).toISOString(),
      },
      true,
    ]);
    expect((await json(`${path}&prefix=clients/p`)).items).toMatchObject([{ suffix: 'clients/phone' }]);
    const first = await json(`${path}&limit=2`);
    expect((await json(`${path}&limit=2&cursor=${first.next_cursor}`)).items).toMatchObject([
      { suffix: 'clients/tab' },
    ]);
    expect((await at.rest('/history/streams')).status).toBe(400);
  });
});

describe('GET /history/messages', () => {
  it('Normalized message summaries; payloads redacted unless include_payload is set', async () => {
    await complete('c1');
    const redacted = await at.rest('/history/messages?stream=alice/clients/tab');
    expect(redacted.text).not.toMatch(/given|got/);
    expect(JSON.parse(redacted.text).items).toMatchObject([
      { kind: 'command', payload: null, payload_state: 'redacted', payload_bytes: 18 },
      { kind: 'result', payload: null, payload_state: 'redacted', payload_bytes: 16 },
    ]);
    expect(await messages('&include_payload=true')).toMatchObject([
      { payload: { secret: 'given' }, payload_state: 'included' },
      { payload: { secret: 'got' }, payload_state: 'included' },
    ]);
  });

  it('Retains identities for: message, stream, client, instance, command, trace, parent span', async () => {
    await complete('c1');
    const ids = {
      stream: 'alice/clients/tab',
      client_id: 'tab',
      command_id: 'c1',
      trace_id: 'trace-1',
      parent_span_id: 'span-1',
    };
    const [command, result, ...more] = await messages();
    expect([command, result]).toMatchObject([ids, { ...ids, instance_id: 'i1' }]);
    expect(new Set([command.message_id, result.message_id]).size).toBe(2);
    expect(more).toEqual([]);
  });

  it('takes exclusive time bounds, comma-separated message kinds, a cursor and a limit', async () => {
    await complete('c1');
    await fail('c2', 'handler_failed', 'no');
    const [first, second] = await messages();
    expect(await kinds('')).toEqual(['command', 'result', 'command', 'error']);
    expect(await kinds('&kinds=result,error')).toEqual(['result', 'error']);
    expect(await kinds(`&after_time=${first.at}`)).toEqual(['result', 'command', 'error']);
    expect(await kinds(`&before_time=${second.at}`)).toEqual(['command']);
    expect(await kinds(`&after_time=${first.at}&before_time=${second.at}`)).toEqual([]);
    expect(
      await kinds(`&after_time=${Date.parse(first.at) - 1}&before_time=${Date.parse(second.at) + 1}`),
    ).toHaveLength(4);
    const page = await json('/history/messages?stream=alice/clients/tab&limit=3');
    expect(page.items).toHaveLength(3);
    expect(await kinds(`&limit=3&cursor=${page.next_cursor}`)).toEqual(['error']);
  });

  it('refuses a time in seconds, which would be one of January 1970, and takes 0', async () => {
    await complete('c1');
    const seconds = Math.floor(at.clock.now() / 1000) - 60;
    for (const bound of ['after_time', 'before_time']) {
      const refused = await at.rest(`/history/messages?stream=alice/clients/tab&${bound}=${seconds}`);
      expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('not seconds')]);
    }
    expect(await kinds('&after_time=0')).toEqual(['command', 'result']);
  });

  it('requires the full stream key', async () => {
    for (const query of ['', '?stream=clients', '?stream=alice']) {
      expect([query, (await at.rest(`/history/messages${query}`)).status]).toEqual([query, 400]);
    }
    expect((await at.rest('/history/messages?stream=alice/clients/none')).status).toBe(404);
  });
});

describe('A terminal error', () => {
  it('carries only a bounded diagnostic code and message; raw details, stack traces and arbitrary exception objects are omitted', async () => {
    const long = `it broke ${'x'.repeat(900)}`;
    await fail('c1', 'handler_failed', long);
    await fail('c2', 'E_SECRET_OF_MINE', 'no\r\n    at secret (file.js:1)');
    const errors = (await messages('&kinds=error&include_payload=true')).map(({ error }) => error);
    expect(errors).toEqual([
      { code: 'handler_failed', message: long.slice(0, 256) },
      { code: 'handler_failed', message: 'no' },
    ]);
    for (const path of ['/history/messages?stream=alice/clients/tab&include_payload=true', '/commands/alice/tab/c1']) {
      expect((await at.rest(path)).text).not.toMatch(/secret|stack|E_SECRET/);
    }
  });
});

describe('GET /history/command/{user_id}/{command_id}', () => {
  it('Related messages for the command; payload inclusion defaults to redacted', async () => {
    await complete('c1');
    await complete('c2');
    const { items } = await json('/history/command/alice/c1');
    expect(items).toMatchObject([
      { command_id: 'c1', kind: 'command', payload: null, payload_state: 'redacted' },
      { command_id: 'c1', kind: 'result', payload: null, payload_state: 'redacted' },
    ]);
    const shown = await json('/history/command/alice/c1?include_payload=true');
    expect(shown.items).toMatchObject([{ payload: { secret: 'given' } }, { payload: { secret: 'got' } }]);
    expect((await json('/history/command/alice/none')).items).toEqual([]);
  });
});

describe('An administrator', () => {
  it('can request payloads from the normalized history routes, and each such read is written to the audit log', async () => {
    await complete('c1');
    const audited = () => at.lines.filter((line) => line.includes('"audit":"payload"'));
    await messages();
    expect(audited()).toEqual([]);
    await messages('&include_payload=true');
    expect(audited().length).toBeGreaterThan(0);
    expect(at.lines.join('')).not.toMatch(/given|"got"/);
  });
});
