/** Tests ingestion of messages: verdicts, deduplication and projection to sites. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createMemorySpill } from '../../src/backends/spill/memory.ts';
import type { Principal } from '../../src/core/auth/principal.ts';
import { CODES } from '../../src/core/errors.ts';
import type { SpillStore } from '../../src/core/history/message.ts';
import type { IngestMessage, IngestVerdict } from '../../src/core/ingest/ingest.ts';
import { toJson, trustJson } from '../../src/core/json.ts';
import { DEAD_MS, DEDUP_TTL_MS, FORGET_MS } from '../../src/core/limits.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { settle } from '../kit/clock.ts';
import { admin, connect, testCore, user, type TestCore } from '../kit/core.ts';

const alice = user('alice');
const LARGE = 'x'.repeat(20_000);

function event(over: Partial<IngestMessage> = {}): IngestMessage {
  return {
    messageId: 'm1',
    kind: 'event',
    streamSuffix: 'notes/today',
    clientId: 'tab',
    instanceId: 'i1',
    payload: toJson({ name: 'saved', data: 1 }),
    ...over,
  };
}

async function retained({ core }: TestCore, stream = 'alice/notes/today') {
  const page = await core.history.messages(admin, { stream }, { first: 1000 });
  return page?.nodes ?? [];
}

function codesOf(verdicts: readonly IngestVerdict[]): (string | null)[] {
  return verdicts.map(({ error }) => error?.code ?? null);
}

/** Returns a spill store that is full from the n-th payload on. */
function fullAfter(count: number, of: SpillStore): SpillStore {
  let puts = 0;
  const put: SpillStore['put'] = async (text, expiresAt, userId) => {
    if (++puts > count) throw new Error('no space left on /secret/path');
    return of.put(text, expiresAt, userId);
  };
  return { ...of, put };
}

describe('ingestion', () => {
  it('retains an event under the authenticated user, whatever the message claims, and answers its verdict', async () => {
    await using test = await testCore();
    const verdict = await test.core.ingest.ingestCooperativeSiteMessage(
      alice,
      event({ traceId: 't', parentSpanId: 's', ...{ userId: 'bob', stream: 'bob/x' } }),
    );
    expect(verdict).toEqual({
      messageId: 'm1',
      stream: 'alice/notes/today',
      retained: true,
      duplicate: false,
      published: false,
      refusedBy: null,
      error: null,
    });
    expect(await retained(test)).toMatchObject([
      {
        id: 'm1',
        userId: 'alice',
        suffix: 'notes/today',
        kind: 'event',
        clientId: 'tab',
        instanceId: 'i1',
        commandId: null,
        traceId: 't',
        parentSpanId: 's',
        payload: '{"name":"saved","data":1}',
        at: test.clock.now(),
      },
    ]);
    expect((await test.core.history.streams(admin, 'bob', null, {})).nodes).toEqual([]);
  });

  it('generates an id if none is given, each time a new one', async () => {
    await using test = await testCore();
    const verdicts = await test.core.ingest.ingest(alice, [
      event({ messageId: null }),
      event({ messageId: undefined }),
    ]);
    expect(new Set(verdicts.map(({ messageId }) => messageId)).size).toBe(2);
    expect(verdicts.map((one) => one.retained)).toEqual([true, true]);
  });

  it('answers one verdict per message in the order sent, and a refused one does not affect the others', async () => {
    await using test = await testCore();
    await connect(test.core, alice, { clientId: 'other', instanceId: 'live' });
    const verdicts = await test.core.ingest.ingest(alice, [
      event(),
      event({ messageId: 'm2', kind: 'result' }),
      event({ messageId: 'm3' }),
      event({ messageId: 'm1', streamSuffix: 'elsewhere' }),
      event({ messageId: 'm4', streamSuffix: 'clients/tab' }),
      event({ messageId: 'm5', clientId: 'other', instanceId: 'dead' }),
      event({ messageId: 'm6', payload: trustJson(`"${'x'.repeat(2 ** 20)}"`) }),
      event({ messageId: 'a b', clientId: '', instanceId: '/', streamSuffix: '..' }),
      event({ messageId: 'm7', clientId: 'other', instanceId: 'live' }),
    ]);
    expect(codesOf(verdicts)).toEqual([
      null,
      'invalid_argument',
      null,
      null,
      'reserved_stream',
      'stale_instance',
      'payload_too_large',
      'invalid_argument',
      null,
    ]);
    expect(verdicts.map((one) => [one.retained, one.duplicate])).toEqual([
      [true, false],
      [false, false],
      [true, false],
      [false, true],
      ...Array.from({ length: 4 }, () => [false, false]),
      [true, false],
    ]);
    expect(verdicts.map(({ messageId }) => messageId)).toEqual(['m1', 'm2', 'm3', 'm1', 'm4', 'm5', 'm6', null, 'm7']);
    expect(verdicts[7]?.error?.errors.map(({ parameter }) => parameter)).toEqual([
      'message_id',
      'stream_suffix',
      'client_id',
      'instance_id',
    ]);
    expect((await retained(test)).map(({ id }) => id)).toEqual(['m1', 'm3', 'm7']);
    expect(test.counts.get('messages_ingested:retained')).toBe(3);
    expect(test.counts.get('messages_ingested:duplicate')).toBe(1);
    expect(test.counts.get('messages_ingested:stale_instance')).toBe(1);
  });

  it('keeps the order sent although a large payload takes longer to store', async () => {
    await using test = await testCore();
    const messages = Array.from({ length: 10 }, (_, i) =>
      event({ messageId: `m${i}`, payload: toJson(i % 3 === 0 ? LARGE : i) }),
    );
    await test.core.ingest.ingest(alice, messages);
    expect((await retained(test)).map(({ id }) => id)).toEqual(messages.map(({ messageId }) => messageId));
  });

  it.each([
    ['', 'invalid_argument'],
    ['/', 'invalid_argument'],
    ['a/', 'invalid_argument'],
    ['/a', 'invalid_argument'],
    ['a//b', 'invalid_argument'],
    ['.', 'invalid_argument'],
    ['a/../b', 'invalid_argument'],
    ['a/./b', 'invalid_argument'],
    ['a b', 'invalid_argument'],
    ['a\u0000', 'invalid_argument'],
    ['1/2/3/4/5/6/7/8/9', 'invalid_argument'],
    ['x'.repeat(129), 'invalid_argument'],
    ['clients', 'reserved_stream'],
    ['clients/tab', 'reserved_stream'],
    ['clients/tab/more', 'reserved_stream'],
    ['links', 'reserved_stream'],
    ['links/tab', 'reserved_stream'],
    ['1/2/3/4/5/6/7/8', null],
    ['clientsx/tab', null],
    ['a/clients/b', null],
    ['...', null],
    ['x'.repeat(128), null],
  ])('checks the stream suffix %j', async (streamSuffix, code) => {
    await using test = await testCore();
    const verdict = await test.core.ingest.ingestCooperativeSiteMessage(alice, event({ streamSuffix }));
    expect(verdict.error?.code ?? null).toBe(code);
    expect(verdict.retained).toBe(code === null);
  });

  it.each(['command', 'progress', 'result', 'error', 'cancel', 'late_result', 'EVENT', '', 'nonsense'])(
    'refuses a message of kind %j',
    async (kind) => {
      await using test = await testCore();
      const verdict = await test.core.ingest.ingestCooperativeSiteMessage(alice, event({ kind }));
      expect(verdict).toMatchObject({ retained: false, error: { code: 'invalid_argument' } });
      expect(await retained(test)).toEqual([]);
    },
  );

  it('refuses a whole call only for its requester or for its number of messages', async () => {
    await using test = await testCore();
    const many = Array.from({ length: 101 }, (_, i) => event({ messageId: `m${i}` }));
    const { ingest } = test.core.ingest;
    await expect(ingest(null, [event()])).rejects.toMatchObject({ code: 'unauthenticated' });
    await expect(ingest(admin, [event()])).rejects.toMatchObject({ code: 'forbidden' });
    await expect(ingest(user('alice', 'connect', 'invoke'), [event()])).rejects.toMatchObject({ code: 'forbidden' });
    await expect(ingest(alice, [])).rejects.toMatchObject({ code: 'invalid_argument' });
    await expect(ingest(alice, many)).rejects.toMatchObject({ code: 'invalid_argument' });
    expect(await retained(test)).toEqual([]);
    expect(await ingest(alice, many.slice(1))).toHaveLength(100);
  });
});

describe('the instance of an ingested event', () => {
  it('must be the live one while its client is connected, and may be any once it is forgotten', async () => {
    await using test = await testCore();
    const take = async (messageId: string, instanceId: string) => {
      const verdict = await test.core.ingest.ingestCooperativeSiteMessage(alice, event({ messageId, instanceId }));
      return verdict.error?.code ?? null;
    };
    expect(await take('m1', 'i0')).toBeNull();
    const client = await connect(test.core, alice, { instanceId: 'i1' });
    expect(await take('m2', 'i1')).toBeNull();
    expect(await take('m3', 'i0')).toBe('stale_instance');
    await connect(test.core, alice, { instanceId: 'i2' });
    expect(await take('m4', 'i1')).toBe('stale_instance');
    expect(await take('m5', 'i2')).toBeNull();
    await client.session.closed('client_closed');
    expect(await take('m6', 'i1')).toBe('stale_instance');
    await test.clock.advance(DEAD_MS + FORGET_MS);
    expect(await take('m7', 'i1')).toBeNull();
    expect((await retained(test)).map(({ id }) => id)).toEqual(['m1', 'm2', 'm5', 'm7']);
  });

  it('must be the last one while its client is away, until the client is forgotten', async () => {
    await using test = await testCore();
    const take = async (messageId: string, instanceId: string) => {
      const verdict = await test.core.ingest.ingestCooperativeSiteMessage(alice, event({ messageId, instanceId }));
      return verdict.error?.code ?? null;
    };
    await connect(test.core, alice, { instanceId: 'i1' });
    const client = await connect(test.core, alice, { instanceId: 'i2' });
    await client.session.closed('client_closed');
    expect(await take('m1', 'i1')).toBe('stale_instance');
    expect(await take('m2', 'i2')).toBeNull();
    await test.clock.advance(FORGET_MS);
    expect(await take('m3', 'i1')).toBeNull();
  });

  it("is not compared with another user's client of the same name", async () => {
    await using test = await testCore();
    await connect(test.core, user('bob'), { instanceId: 'bobs' });
    expect((await test.core.ingest.ingestCooperativeSiteMessage(alice, event())).retained).toBe(true);
  });

  it('leaves no mark of a refused event: the live instance may send the same message', async () => {
    await using test = await testCore();
    await connect(test.core, alice, { instanceId: 'i1' });
    const { ingestCooperativeSiteMessage: take } = test.core.ingest;
    expect((await take(alice, event({ instanceId: 'i0' }))).error?.code).toBe('stale_instance');
    expect(await take(alice, event())).toMatchObject({ retained: true, duplicate: false });
    expect(await test.core.dedup.stats(admin, 60)).toMatchObject({ seen: 1, unique: 1 });
  });
});

describe('deduplication at ingestion', () => {
  it('answers the retained id, and retains the event again once the mark has expired', async () => {
    await using test = await testCore();
    const { ingestCooperativeSiteMessage: take } = test.core.ingest;
    await take(alice, event());
    expect(await take(alice, event({ payload: toJson('another') }))).toEqual({
      messageId: 'm1',
      stream: 'alice/notes/today',
      retained: false,
      duplicate: true,
      published: false,
      refusedBy: null,
      error: null,
    });
    await test.clock.advance(DEDUP_TTL_MS);
    expect(await take(alice, event())).toMatchObject({ retained: true, duplicate: false });
    expect(await retained(test)).toHaveLength(2);
  });

  it('semantic 3: deduplication describes server ingestion, not client execution', async () => {
    await using test = await testCore();
    const client = await connect(test.core, alice);
    const pending = test.core.rpc.invoke(alice, {
      userId: 'alice',
      clientId: 'tab',
      action: 'open',
      params: null,
      commandId: 'c1',
    });
    await settle();
    // The client ran its handler once and sent the result three times over an unreliable link.
    let executions = 0;
    executions++;
    for (let i = 0; i < 3; i++) await client.result(client.last);
    expect(await pending).toMatchObject({ kind: 'outcome', command: { outcome: 'completed' } });
    const stats = await test.core.dedup.stats(admin, 60);
    expect(stats).toMatchObject({ seen: 3, unique: 1, duplicates: 2 });
    expect(executions).toBe(1);
    const command = await test.core.delivery.command(alice, { userId: 'alice', clientId: 'tab', commandId: 'c1' });
    expect(command?.sightings).toMatchObject([{ messageId: 'c1:result:i1', count: 3 }]);
    expect(command).toMatchObject({ attempts: 1, lateResults: 0 });
    // Repeated events, for which no handler runs, are counted in the same way.
    await test.core.ingest.ingest(alice, [event(), event()]);
    expect(await test.core.dedup.stats(admin, 60)).toMatchObject({ seen: 5, unique: 2, duplicates: 3 });
  });

  it('is shown to administrators only, for windows of 10 to 3600 seconds', async () => {
    await using test = await testCore();
    for (const requester of [null, alice] as const) {
      await expect(test.core.dedup.stats(requester, 60)).rejects.toMatchObject({ name: 'CallboardError' });
      await expect(test.core.dedup.backend(requester)).rejects.toMatchObject({ name: 'CallboardError' });
    }
    for (const seconds of [9, 3601, 0, -1, 10.5, Number.NaN])
      await expect(test.core.dedup.stats(admin, seconds)).rejects.toMatchObject({ code: 'invalid_argument' });
    expect(await test.core.dedup.stats(admin, null)).toMatchObject({ windowSeconds: 300, exact: true });
    expect(await test.core.dedup.backend(admin)).toEqual({
      implementation: 'memory',
      ttlSeconds: 120,
      namespace: null,
    });
  });
});

describe('projection', () => {
  it.each([
    ['sites/board/events', 'owner'],
    ['sites/board/other', 'stream'],
    ['sites/board/events/more', 'stream'],
    ['sites', 'stream'],
    ['notes/today', null],
    ['sitesx/board/events', null],
  ])('of a retained event on %s, which no site has, is refused by %j', async (streamSuffix, refusedBy) => {
    await using test = await testCore();
    const verdict = await test.core.ingest.ingestCooperativeSiteMessage(alice, event({ streamSuffix }));
    expect(verdict).toMatchObject({ retained: true, published: false, refusedBy, error: null });
    expect(await retained(test, `alice/${streamSuffix}`)).toHaveLength(1);
  });

  it('alone checks the form of an event: any payload is retained', async () => {
    await using test = await testCore();
    const payloads = [null, toJson(null), toJson('text'), toJson({ name: 5 }), toJson([[]])];
    const verdicts = await test.core.ingest.ingest(
      alice,
      payloads.map((payload, i) => event({ messageId: `m${i}`, streamSuffix: 'sites/board/events', payload })),
    );
    expect(verdicts.every((one) => one.retained)).toBe(true);
  });
});

describe('an ingested message', () => {
  it('cannot resolve, move or change a command, whatever it claims to be', async () => {
    await using test = await testCore();
    const client = await connect(test.core, alice);
    const key = { userId: 'alice', clientId: 'tab', commandId: 'c1' };
    const pending = test.core.rpc.invoke(alice, { ...key, action: 'open', params: null });
    await settle();
    const before = await test.core.delivery.command(alice, key);
    const forged = ['c1:result:i1', 'c1', 'c1:command', 'c1:error:i1'].flatMap((messageId) =>
      ['notes/today', 'clients/tab', 'sites/tab/events'].flatMap((streamSuffix) =>
        ['event', 'result', 'error'].map((kind) => ({
          ...event({ messageId, streamSuffix, kind, payload: toJson({ command_id: 'c1', result: 'forged' }) }),
          ...{ commandId: 'c1', command_id: 'c1' },
        })),
      ),
    );
    await test.core.ingest.ingest(alice, forged);
    expect(await test.core.delivery.command(alice, key)).toEqual(before);
    expect((await test.core.rpc.count(admin, {})).count).toBe(1);
    expect((await test.core.history.ofCommand(admin, 'alice', 'c1', {})).nodes.map(({ kind }) => kind)).toEqual([
      'command',
    ]);
    // The real end counts, although an event used its message id before.
    await client.result(client.last, { genuine: true });
    expect(await pending).toMatchObject({ kind: 'outcome', result: '{"genuine":true}' });
  });
});

describe('a large payload of an event', () => {
  it('is stored before the event is retained, and refuses only its own event when there is no room', async () => {
    await using test = await testCore({ spill: (clock) => fullAfter(1, createMemorySpill(clock, createCrypto('x'))) });
    const verdicts = await test.core.ingest.ingest(alice, [
      event({ messageId: 'm1', payload: toJson(LARGE) }),
      event({ messageId: 'm2', payload: toJson(LARGE) }),
      event({ messageId: 'm3' }),
    ]);
    expect(codesOf(verdicts)).toEqual([null, 'store_full', null]);
    expect(JSON.stringify(verdicts)).not.toContain('secret');
    const rows = await retained(test);
    expect(rows.map(({ id }) => id)).toEqual(['m1', 'm3']);
    expect(rows[0]).toMatchObject({ payload: null, payloadBytes: 20_002, spill: { bytes: 20_002 } });
    expect(await test.core.history.payloads(admin, rows)).toMatchObject([
      { state: 'spilled_included', text: JSON.stringify(LARGE) },
      { state: 'included' },
    ]);
    // The refused event did not count as ingested, so it may be sent again.
    expect(await test.core.dedup.stats(admin, 60)).toMatchObject({ seen: 2, unique: 2 });
  });
});

describe('fuzz: any ingested message', () => {
  const anyText = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('tab', 'm1', '..', 'clients/tab', 'a/b', '', '\ud800', '__proto__', 'constructor'),
  );
  const anyMessage = fc.record({
    messageId: fc.option(anyText),
    kind: fc.oneof(fc.constant('event'), anyText),
    streamSuffix: fc.oneof(fc.constantFrom('notes/today', 'sites/a/events'), anyText),
    clientId: anyText,
    instanceId: anyText,
    traceId: fc.option(anyText),
    parentSpanId: fc.option(anyText),
    payload: fc.option(fc.json().map(trustJson)),
  });
  const anyWho: fc.Arbitrary<Principal> = fc.constantFrom(alice, user('bob'));

  it('gets its own verdict, with a code that is not a failure of the relay, and affects no other user', async () => {
    await fc.assert(
      fc.asyncProperty(anyWho, fc.array(anyMessage, { minLength: 1, maxLength: 20 }), async (requester, messages) => {
        await using test = await testCore();
        await connect(test.core, alice, { clientId: 'tab', instanceId: 'tab' });
        const verdicts = await test.core.ingest.ingest(requester, messages);
        expect(verdicts).toHaveLength(messages.length);
        const own = requester.kind === 'user' ? requester.userId : '';
        for (const [i, { error, retained: kept, duplicate, stream, published }] of verdicts.entries()) {
          expect([error !== null, kept, duplicate].filter(Boolean)).toHaveLength(1);
          expect(published).toBe(false);
          if (error) expect(CODES[error.code]).toBeLessThan(500);
          if (stream !== null) expect(stream).toBe(`${own}/${messages[i]?.streamSuffix}`);
        }
        const users = (await test.core.users.list(admin, {})).nodes.filter(({ streamCount }) => streamCount > 0);
        expect(users.every(({ id }) => id === own)).toBe(true);
        const kept = new Set(verdicts.filter((one) => one.retained).map(({ stream }) => stream));
        let rows = 0;
        for (const stream of kept) rows += (await retained(test, stream ?? '')).length;
        expect(rows).toBe(verdicts.filter((one) => one.retained).length);
      }),
      { numRuns: 200 },
    );
  });
});
