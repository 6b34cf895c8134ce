/** Tests the documented errors and limits, sentence by sentence. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { advertisement, connect, user } from '../kit/core.ts';
import { codeOf, startTestRelay, type TestRelay } from './kit/test-relay.ts';

let at: TestRelay;
beforeAll(async () => {
  at = await startTestRelay({ rawMessages: true });
});
afterAll(() => at[Symbol.asyncDispose]());

const json = async (path: string): Promise<any> => JSON.parse((await at.rest(path)).text);
const connectMany = async (userId: string, count: number): Promise<void> => {
  for (let i = 0; i < count; i++)
    await connect(at.callboard.core, user(userId), { clientId: `tab-${i}`, actions: [advertisement('open')] });
};
const ingestMany = async (userId: string, suffixes: readonly string[]): Promise<void> => {
  const event = { kind: 'event', client_id: 'loose', instance_id: 'i', payload: { note: 1 } };
  for (let from = 0; from < suffixes.length; from += 100) {
    const batch = suffixes.slice(from, from + 100).map((stream_suffix) => ({ ...event, stream_suffix }));
    const { items } = JSON.parse((await at.post('/ingest', batch, userId)).text);
    expect(items.every((item: any) => item.retained)).toBe(true);
  }
};

describe('Errors', () => {
  it('/history/raw-messages called when raw messages were not enabled, after admin authentication: 403', async () => {
    await using without = await startTestRelay({});
    const requested = async (requester: string) => without.rest('/history/raw-messages', { requester });
    const answer = await requested('admin');
    expect([answer.status, codeOf(answer)]).toEqual([403, 'raw_history_disabled']);
    expect((await requested('nobody')).status).toBe(401);
    expect(codeOf(await requested('alice'))).toBe('forbidden');
    expect((await at.rest('/history/raw-messages')).status).toBe(200);
  });

  it('/delivery/status for a command with no retained status: 404', async () => {
    const answer = await at.rest('/delivery/status?user_id=alice&client_id=tab&command_id=never');
    expect([answer.status, codeOf(answer)]).toEqual([404, 'not_found']);
    expect(answer.headers['content-type']).toBe('application/problem+json');
  });

  it.each([
    ['no user', 'client_id=tab&command_id=c'],
    ['no client', 'user_id=alice&command_id=c'],
    ['no command', 'user_id=alice&client_id=tab'],
    ['nothing', ''],
    ['a user that is none', 'user_id=%00&client_id=tab&command_id=c'],
    ['a client that is none', 'user_id=alice&client_id=a%20b&command_id=c'],
    ['a command that is none', `user_id=alice&client_id=tab&command_id=${'c'.repeat(129)}`],
    ['a user given twice', 'user_id=alice&user_id=bob&client_id=tab&command_id=c'],
    ['more than it takes', 'user_id=alice&client_id=tab&command_id=c&stage=terminal'],
  ])(
    '/delivery/status with invalid identities or an invalid combination is a bounded client error: %s',
    async (_, query) => {
      const { status, text, json: problem } = await at.rest(`/delivery/status?${query}`);
      expect(status).toBe(400);
      expect(problem?.['code']).toMatch(/^invalid_(argument|user)$/);
      expect(text.length).toBeLessThan(1000);
    },
  );

  it('Terminal errors inside history message summaries expose only a bounded diagnostic code and message', async () => {
    const tab = await at.client({ user: 'erin', client_id: 'tab' });
    const invoked = at.post('/connections/erin/tab/actions/open', { command_id: 'c1' }, 'erin');
    await tab.next('command');
    const error = { type: 'error', command_id: 'c1', code: 'handler_failed', message: 'm'.repeat(900) };
    tab.raw(JSON.stringify({ ...error, stack: 'at secret', details: { raw: 'secret' } }));
    await invoked;
    const { items } = await json('/history/messages?stream=erin/clients/tab&kinds=error&include_payload=true');
    expect(items[0].error).toEqual({ code: 'handler_failed', message: 'm'.repeat(256) });
    expect(JSON.stringify(items)).not.toContain('secret');
  });
});

describe('Limits', () => {
  it('Connection snapshots in a user summary: up to 100', async () => {
    await connectMany('anna', 101);
    const { connection_count, connections, completeness } = await json('/users/anna');
    expect([connection_count, connections.items.length, completeness.complete]).toEqual([101, 100, false]);
  });

  it('Stream summaries in a user summary: up to 100', async () => {
    await ingestMany(
      'bert',
      Array.from({ length: 101 }, (_, i) => `notes/${i}`),
    );
    const { stream_count, streams, completeness } = await json('/users/bert');
    expect([stream_count, streams.items.length, completeness.complete]).toEqual([101, 100, false]);
  });

  it.each(['/connections', '/users', '/rpc/pending', '/delivery/commands', '/contexts', '/browser-windows'])(
    'limit: 1 to 1000 at %s',
    async (path) => {
      for (const limit of ['1', '1000'])
        expect([limit, (await at.rest(`${path}?limit=${limit}`)).status]).toEqual([limit, 200]);
      for (const limit of ['0', '1001', '-1', '1.5', 'many', '']) {
        const { status, json: problem } = await at.rest(`${path}?limit=${limit}`);
        expect([limit, status, problem?.['errors']]).toEqual([
          limit,
          400,
          [expect.objectContaining({ parameter: 'limit' })],
        ]);
      }
    },
  );

  it('limit: gives as many connections as it says', async () => {
    await connectMany('carl', 3);
    expect((await json('/connections?user_id=carl&limit=2')).items).toHaveLength(2);
    expect((await json('/connections?user_id=carl&limit=1000')).items).toHaveLength(3);
  });

  it('Raw message response: one bounded sample of at most 100 messages', async () => {
    await ingestMany(
      'dora',
      Array.from({ length: 120 }, () => 'log'),
    );
    const { items, completeness, next_cursor } = await json('/history/raw-messages?stream=dora/log');
    expect([items.length, completeness.complete, next_cursor]).toEqual([100, false, undefined]);
    expect((await at.rest('/history/raw-messages?stream=dora/log&limit=101')).status).toBe(400);
  });
});
