/** Tests who sees payloads over GraphQL, and what is audited. */
import { describe, expect, it } from 'vitest';
import { trustJson } from '../../src/core/json.ts';
import { fakeCore } from './kit/fake-core.ts';
import { command, message, T0 } from './kit/rows.ts';
import { admin, ann, ask, codeOf, dataOf } from './kit/run.ts';

const data = {
  messages: [
    message(1),
    message(2, { kind: 'command', payload: null, payloadBytes: 0 }),
    message(3, { payload: trustJson('null'), payloadBytes: 4 }),
  ],
  commands: [command({ stage: 'terminal', outcome: 'completed', execution: 'reported_by_client' })],
  result: trustJson('{"secret":"s3cret"}'),
};

const messages = (include: string): string => `{
  messages(stream: "ann/clients/c1") { nodes { id: messageId payload${include} payloadState${include} payloadBytes traceId } }
}`;

describe('payloads of retained messages', () => {
  it('are redacted unless requested, and marked as present', async () => {
    const { core } = fakeCore(data);
    const audit: Record<string, unknown>[] = [];
    const answer = await dataOf(messages(''), { core, audit });
    expect(JSON.stringify(answer)).not.toContain('s3cret');
    expect(answer).toEqual({
      messages: {
        nodes: [
          { id: 'm1', payload: null, payloadState: 'REDACTED', payloadBytes: 19, traceId: 'trace' },
          { id: 'm2', payload: null, payloadState: 'NONE', payloadBytes: 0, traceId: 'trace' },
          { id: 'm3', payload: null, payloadState: 'REDACTED', payloadBytes: 4, traceId: 'trace' },
        ],
      },
    });
    expect(audit).toEqual([]);
  });

  it("are shown unchanged when included, and an administrator's request is audited once per stream", async () => {
    const { core } = fakeCore(data);
    const audit: Record<string, unknown>[] = [];
    expect(await dataOf(messages('(include: true)'), { core, audit })).toMatchObject({
      messages: {
        nodes: [
          { payload: { secret: 's3cret' }, payloadState: 'INCLUDED' },
          { payload: null, payloadState: 'NONE' },
          { payload: null, payloadState: 'INCLUDED' },
        ],
      },
    });
    expect(audit).toEqual([{ audit: 'payload', requester: 'admin:root', userId: 'ann', stream: 'ann/clients/c1' }]);
  });

  it("of one's own are not audited", async () => {
    const { core } = fakeCore(data);
    const audit: Record<string, unknown>[] = [];
    const answer = await dataOf(messages('(include: true)'), { core, audit, requester: ann });
    expect(JSON.stringify(answer)).toContain('s3cret');
    expect(audit).toEqual([]);
  });

  it('are independent of the bounded error, which is always shown', async () => {
    const error = { code: 'handler_failed', message: 'no tab' };
    const { core } = fakeCore({ messages: [message(1, { kind: 'error', payload: null, error })] });
    const document = '{ commandHistory(userId: "ann", commandId: "k1") { nodes { kind error { code message } } } }';
    expect(await dataOf(document, { core })).toEqual({ commandHistory: { nodes: [{ kind: 'ERROR', error }] } });
  });
});

describe('spilled payloads', () => {
  const spill = { name: 'o', bytes: 20_000, sha256: 'digest', expiresAt: T0 + 1000 };
  const apart = (seq: number, bytes = 20_000) =>
    message(seq, { payload: null, spill: { ...spill, bytes }, payloadBytes: bytes });
  const text = trustJson('{"secret":"s3cret"}');
  const spilled = {
    m1: { state: 'spilled_included', text },
    m2: { state: 'expired', text: null },
    m3: { state: 'unavailable', text: null },
  } as const;

  it('are fetched only when requested, once each, with their state', async () => {
    const { core, calls } = fakeCore({ messages: [apart(1), apart(2), apart(3), message(4)], spilled });
    const redacted = await dataOf(messages(''), { core });
    expect(redacted).toMatchObject({
      messages: { nodes: [{ payload: null, payloadState: 'REDACTED', payloadBytes: 20_000 }, {}, {}, {}] },
    });
    expect(calls.filter((call) => call.startsWith('history.payloads'))).toEqual([]);
    const audit: Record<string, unknown>[] = [];
    expect(await dataOf(messages('(include: true)'), { core, audit })).toMatchObject({
      messages: {
        nodes: [
          { payload: { secret: 's3cret' }, payloadState: 'SPILLED_INCLUDED' },
          { payload: null, payloadState: 'EXPIRED' },
          { payload: null, payloadState: 'UNAVAILABLE' },
          { payload: { secret: 's3cret' }, payloadState: 'INCLUDED' },
        ],
      },
    });
    expect(calls.filter((call) => call.startsWith('history.payloads'))).toEqual(['history.payloads m1 m2 m3']);
    expect(audit).toEqual([{ audit: 'payload', requester: 'admin:root', userId: 'ann', stream: 'ann/clients/c1' }]);
  });

  it('are fetched up to 16 MiB an answer: further ones stay redacted, in both fields alike', async () => {
    const all = Array.from({ length: 20 }, (_, i) => apart(i + 10, 2 ** 20));
    const many = Object.fromEntries(all.map(({ id }) => [id, { state: 'spilled_included', text }] as const));
    const { core, calls } = fakeCore({ messages: all, spilled: many });
    const states = async () => {
      const { messages: page } = await dataOf(messages('(include: true)'), { core });
      const { nodes } = page as { nodes: { payload: unknown; payloadState: string }[] };
      for (const { payload, payloadState } of nodes) expect(payload === null).toBe(payloadState === 'REDACTED');
      return nodes.map(({ payloadState }) => payloadState);
    };
    const shown = [...Array(16).fill('SPILLED_INCLUDED'), ...Array(4).fill('REDACTED')];
    expect(await states()).toEqual(shown);
    expect(calls.at(-1)?.split(' ')).toHaveLength(17);
    // Another request has its own budget.
    expect(await states()).toEqual(shown);
  });
});

describe('messages', () => {
  it('are filtered by kinds and by exclusive times, as RFC 3339 or as epoch milliseconds', async () => {
    const { core } = fakeCore({ messages: [message(1), message(2, { kind: 'command' }), message(3), message(4)] });
    const document = `query ($after: DateTime, $before: DateTime) {
      messages(stream: "ann/clients/c1", kinds: [RESULT], afterTime: $after, beforeTime: $before) { nodes { id: messageId at } }
    }`;
    const nodes = [{ id: 'm3', at: '2026-01-01T00:00:00.003Z' }];
    for (const [after, before] of [
      ['2026-01-01T00:00:00.001Z', '2026-01-01T01:00:00.004+01:00'],
      [T0 + 1, T0 + 4],
    ]) {
      expect(await dataOf(document, { core, variables: { after, before } })).toEqual({ messages: { nodes } });
    }
  });

  it('of an absent stream and of a foreign one are the same not_found', async () => {
    const { core } = fakeCore(data);
    const of = (stream: string): string => `{ messages(stream: "${stream}") { nextCursor } }`;
    expect(await codeOf(of('ann/clients/none'), { core, requester: ann })).toBe('not_found');
    expect(await codeOf(of('bob/clients/c1'), { core, requester: ann })).toBe('not_found');
  });
});

describe('the result of a command', () => {
  const document = (reveal: string): string =>
    `{ command(userId: "ann", clientId: "c1", commandId: "k1") { outcome result${reveal} } }`;

  it('is not even read unless revealed', async () => {
    const { core, calls } = fakeCore(data);
    expect(await dataOf(document(''), { core })).toEqual({ command: { outcome: 'COMPLETED', result: null } });
    expect(calls).not.toContain('delivery.result');
  });

  it("is shown when revealed, and an administrator's request is audited", async () => {
    const { core } = fakeCore(data);
    const audit: Record<string, unknown>[] = [];
    const shown = { command: { outcome: 'COMPLETED', result: { secret: 's3cret' } } };
    expect(await dataOf(document('(reveal: true)'), { core, audit, requester: ann })).toEqual(shown);
    expect(audit).toEqual([]);
    expect(await dataOf(document('(reveal: true)'), { core, audit, requester: admin })).toEqual(shown);
    expect(audit).toEqual([
      { audit: 'payload', requester: 'admin:root', userId: 'ann', clientId: 'c1', commandId: 'k1' },
    ]);
  });
});

describe('times', () => {
  const { core } = fakeCore({ messages: [message(1)] });
  const document = 'query ($t: DateTime) { messages(stream: "ann/clients/c1", afterTime: $t) { nextCursor } }';

  it.each(['yesterday', '2026-01-01', '2026-02-30T00:00:00Z', '2026-01-01T25:00:00Z', '', 1.5, 9e15, true, {}])(
    'refuse %j',
    async (t) => {
      const { data: none, errors } = await ask(document, { core, variables: { t } });
      expect(none).toBeUndefined();
      expect(errors?.[0]?.message).toMatch(/\$t/);
    },
  );

  it('accept a leap day, lower case and a literal in epoch milliseconds', async () => {
    for (const t of ['2028-02-29T00:00:00Z', '2026-01-01t00:00:00.123456z'])
      expect(await dataOf(document, { core, variables: { t } })).toBeDefined();
    const literal = `{ messages(stream: "ann/clients/c1", afterTime: ${T0 + 1}) { nodes { id: messageId } } }`;
    expect(await dataOf(literal, { core })).toEqual({ messages: { nodes: [] } });
  });
});
