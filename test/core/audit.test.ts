/** Tests the audit of administrators: what is recorded, who sees it, and the verification of its chain. */
import { describe, expect, it } from 'vitest';
import { ChainVerifier } from '../../src/core/audit/audit-chain.ts';
import { keyIdOf, openRow, sealRow, type AuditSign } from '../../src/core/audit/audit-rows.ts';
import { createAuditTrail } from '../../src/core/audit/audit.ts';
import type { Core } from '../../src/core/core.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { toJson } from '../../src/core/json.ts';
import { silentLog } from '../../src/core/ports.ts';
import { silentMetrics } from '../../src/core/metrics.ts';
import { createMemoryBackend, type MemoryBackend } from '../../src/backends/memory/backend.ts';
import { createCrypto } from '../../src/platform/system.ts';
import { FakeClock, settle } from '../kit/clock.ts';
import { admin, connect, testCore, user } from '../kit/core.ts';
import { unawaited } from '../kit/patience.ts';

const alice = user('alice');
const SECRET_TEXT = 'the-payload-that-must-not-leak';
const target = { userId: 'alice', clientId: 'tab', action: 'open', params: toJson({ text: SECRET_TEXT }) };
const key = { userId: 'alice', clientId: 'tab', commandId: 'c1' };
const PAGE = { first: 100, after: null };

/** Returns the backend with an audit store that does not answer. */
function away(backend: MemoryBackend): MemoryBackend {
  const refuse = (): never => {
    throw new CallboardError('store_unavailable', 'The store does not answer.');
  };
  return { ...backend, audit: { head: refuse, append: refuse, list: refuse, lines: refuse } };
}

async function ended(core: Core): Promise<void> {
  const client = await connect(core, alice);
  const call = core.rpc.invoke(alice, { ...target, commandId: 'c1' });
  await settle();
  await client.result(client.last, { text: SECRET_TEXT });
  await call;
}

const events = async (core: Core, requester = admin) => (await core.audit.events(requester, {}, PAGE)).nodes;
const lines = (core: Core): Promise<readonly string[]> => core.audit.chain(admin, 0, 1000).then((part) => part.lines);
const reveal = (core: Core, requester = admin) =>
  core.reveals.reveal(requester, { target: { kind: 'command_result', ...key }, reason: 'asked by the user' });

describe('the audit', () => {
  it('records what administrators do, with the reason, the request and the outcome', async () => {
    await using relay = await testCore();
    const { core } = relay;
    const client = await connect(core, alice);
    const call = core.rpc.invoke(alice, { ...target, commandId: 'c1' });
    await settle();
    await core.rpc.cancel(admin, key, 'hangs', 'request-1');
    const gone = core.delivery.disconnectClient(admin, key, 'too loud', 'request-2');
    await settle();
    await relay.clock.advance(1_000);
    await gone;
    await core.delivery.drainNode(admin, 'n1', 0);
    await relay.clock.advance(60_000);
    await call;
    expect(client.cancels).toEqual(['c1']);
    expect(await events(core)).toMatchObject([
      { action: 'drain', subject: { nodeId: 'n1' }, reason: null, outcome: 'requested' },
      {
        action: 'disconnect',
        subject: { userId: 'alice', clientId: 'tab', instanceId: 'i1', nodeId: 'n1' },
        ...{ reason: 'too loud', requestId: 'request-2', outcome: 'closed', who: 'admin:test', node: 'n1' },
      },
      { action: 'cancel', subject: key, reason: 'hangs', requestId: 'request-1', outcome: 'requested' },
    ]);
  });

  it('does not record ordinary calls, nor cancellations of one’s own calls or of ended ones', async () => {
    await using relay = await testCore();
    const { core } = relay;
    await ended(relay.core);
    unawaited(core.rpc.invoke(admin, { ...target, commandId: 'c2' }));
    await settle();
    await core.rpc.cancel(admin, { ...key, commandId: 'c2' }, null);
    await core.rpc.cancel(admin, key, null);
    await core.rpc.cancel(alice, key, null);
    expect(await events(core)).toEqual([]);
  });

  it('stops every act and every payload while it cannot be written', async () => {
    await using relay = await testCore({ wrap: away });
    const { core } = relay;
    await ended(core);
    const unavailable = expect.objectContaining({ code: 'audit_unavailable', status: 503 });
    const client = await connect(core, alice, { instanceId: 'i2' });
    unawaited(core.rpc.invoke(alice, { ...target, commandId: 'c2' }));
    await settle();
    await expect(core.delivery.disconnectClient(admin, key, null)).rejects.toEqual(unavailable);
    await expect(core.rpc.cancel(admin, { ...key, commandId: 'c2' }, null)).rejects.toEqual(unavailable);
    await expect(core.delivery.drainNode(admin, 'n1', 0)).rejects.toEqual(unavailable);
    await expect(reveal(core)).rejects.toEqual(unavailable);
    await expect(Promise.resolve(core.reveals.read(admin, key, null))).rejects.toEqual(unavailable);
    await settle();
    expect([client.closes, client.cancels, core.draining]).toEqual([[], [], false]);
    expect((await reveal(core, alice)).value).toContain(SECRET_TEXT);
  });

  it('shows users which administrator did what with their own data, and nothing of others', async () => {
    await using relay = await testCore();
    const { core } = relay;
    await ended(core);
    await reveal(core);
    await core.delivery.drainNode(admin, 'n1', 0);
    expect(await events(core, alice)).toMatchObject([
      { action: 'reveal', who: 'admin:test', reason: 'asked by the user', outcome: 'revealed', subject: key },
    ]);
    expect(await events(core, user('bob'))).toEqual([]);
    await expect(core.audit.events(user('bob'), { userId: 'alice' }, PAGE)).rejects.toMatchObject({
      code: 'not_found',
    });
    await expect(core.audit.chain(alice, 0, 10)).rejects.toMatchObject({ code: 'forbidden' });
    await expect(core.audit.events(null, {}, PAGE)).rejects.toMatchObject({ code: 'unauthenticated' });
  });

  it('filters and pages its events', async () => {
    await using relay = await testCore();
    const { core } = relay;
    for (let i = 0; i < 5; i++) await core.reveals.read(admin, { userId: i % 2 ? 'bob' : 'alice', stream: 's' }, null);
    const first = await core.audit.events(admin, { userId: 'alice' }, { first: 2, after: null });
    expect([first.nodes.map(({ seq }) => seq), first.hasNextPage]).toEqual([[5, 3], true]);
    const rest = await core.audit.events(admin, { userId: 'alice' }, { first: 2, after: first.cursors.end() });
    expect([rest.nodes.map(({ seq }) => seq), rest.hasNextPage]).toEqual([[1], false]);
    expect((await core.audit.events(admin, { action: 'drain' }, PAGE)).nodes).toEqual([]);
    expect((await core.audit.events(admin, { who: 'admin:test' }, PAGE)).nodes).toHaveLength(5);
  });

  it('holds no payload and no token', async () => {
    await using relay = await testCore();
    await ended(relay.core);
    await reveal(relay.core);
    const params = { target: { kind: 'command_params', ...key } as const, reason: 'asked by the user' };
    expect((await relay.core.reveals.reveal(admin, params)).value).toContain(SECRET_TEXT);
    const text = (await lines(relay.core)).join('\n');
    expect(text).toContain('asked by the user');
    expect(text).not.toContain(SECRET_TEXT);
  });
});

describe('revealing a payload', () => {
  it('needs a reason of 8 to 256 characters and answers the value with its digest and expiry', async () => {
    await using relay = await testCore();
    const { core } = relay;
    await ended(core);
    const target = { kind: 'command_result', ...key } as const;
    for (const reason of ['', 'short', '        ', 'x'.repeat(257)])
      await expect(core.reveals.reveal(admin, { target, reason })).rejects.toMatchObject({ code: 'invalid_argument' });
    const { value, digest, expiresAt } = await reveal(core);
    expect(digest).toBe(createCrypto('x').sha256(value));
    expect(expiresAt).toBeGreaterThan(relay.clock.now());
    expect(await events(core)).toHaveLength(1);
  });

  it('answers alike for absent and foreign payloads, and then writes no row', async () => {
    await using relay = await testCore();
    const { core } = relay;
    await ended(core);
    const of = (requester: typeof admin, commandId: string, userId = 'alice') =>
      core.reveals.reveal(requester, {
        target: { kind: 'command_params', ...key, userId, commandId },
        reason: 'asked by the user',
      });
    await expect(of(admin, 'absent')).rejects.toMatchObject({ code: 'not_found' });
    await expect(of(user('bob'), 'c1')).rejects.toMatchObject({ code: 'not_found' });
    expect(await events(core)).toEqual([]);
  });

  it('is limited to 60 an hour for each administrator', async () => {
    await using relay = await testCore();
    const { core } = relay;
    await ended(core);
    for (let i = 0; i < 60; i++) await reveal(core);
    await expect(reveal(core)).rejects.toMatchObject({ code: 'rate_limited' });
    expect((await reveal(core, alice)).value).toContain(SECRET_TEXT);
    const other = { ...admin, name: 'other' } as typeof admin;
    expect((await reveal(core, other)).value).toContain(SECRET_TEXT);
  });
});

describe('the verification of the chain', () => {
  const { sign } = createCrypto('test');
  const verify = (chain: readonly string[], keys = [sign]) => {
    const verifier = new ChainVerifier(keys);
    for (const line of chain) verifier.add(line);
    return verifier.report();
  };
  const chain = async (): Promise<readonly string[]> => {
    await using relay = await testCore();
    for (let i = 0; i < 6; i++) await relay.core.reveals.read(admin, { userId: 'alice', stream: `s${i}` }, null);
    return await lines(relay.core);
  };

  it('finds a changed, a removed, a moved and a repeated row, and rows under another key', async () => {
    const rows = await chain();
    expect(verify(rows)).toMatchObject({ rows: 6, firstSeq: 1, lastSeq: 6, fault: null });
    const changed = rows.map((line, i) => (i === 2 ? line.replace('alice', 'alicf') : line));
    expect(verify(changed).fault).toMatchObject({ seq: 3, message: expect.stringContaining('changed') });
    expect(verify(rows.toSpliced(2, 1)).fault).toMatchObject({ seq: 4, message: expect.stringContaining('missing') });
    expect(verify(rows.slice(1)).fault).toMatchObject({ seq: 2, message: expect.stringContaining('Row 1 is missing') });
    const moved = [rows[0], rows[2], rows[1], ...rows.slice(3)].map((line) => line ?? '');
    expect(verify(moved).fault).not.toBeNull();
    expect(verify([...rows, rows[5] ?? '']).fault).toMatchObject({ seq: 6, message: expect.stringContaining('place') });
    expect(verify(['nonsense']).fault).toMatchObject({ seq: null });
    const other = verify(rows, [createCrypto('other').sign]);
    expect(other).toMatchObject({ fault: null, unchecked: [{ key: keyIdOf(sign), rows: 6, firstSeq: 1, lastSeq: 6 }] });
    expect(verify(rows, [createCrypto('new').sign, sign]).fault).toBeNull();
  });

  it('does not accept a forged row that claims that rows were trimmed', async () => {
    const rows = await chain();
    const forged = JSON.stringify({ seq: 7, prev: '', at: 0, node: 'n1', kind: 'trim', through: 2, throughMac: 'x' });
    const mac = createCrypto('guess').sign(forged);
    const line = `${forged.slice(0, -1)},"mac":"${mac}"}`;
    expect(verify([...rows.slice(2), line]).fault).not.toBeNull();
    const prev = openRow(rows[5] ?? '')?.mac ?? '';
    const through = { through: 2, throughMac: openRow(rows[1] ?? '')?.mac ?? '' };
    const row = { seq: 7, prev, at: 0, node: 'n1', kind: 'trim', ...through } as const;
    const guess = createCrypto('guess').sign;
    const named = sealRow({ ...row, key: keyIdOf(guess) }, guess).line;
    expect(verify([...rows.slice(2), named])).toMatchObject({ fault: null, unchecked: [{ rows: 1, firstSeq: 7 }] });
    expect(verify([...rows.slice(2), sealRow({ ...row, key: keyIdOf(sign) }, guess).line]).fault).not.toBeNull();
  });
});

describe('the verification of rows that were signed with several keys', () => {
  const [first, second] = ['the first key', 'the second key'].map((text) => createCrypto(text).sign);
  if (!first || !second) throw new Error('no keys');
  const ids = [first, second].map(keyIdOf);
  const verify = (chain: readonly string[], ...keys: readonly AuditSign[]) => {
    const verifier = new ChainVerifier(keys);
    for (const line of chain) verifier.add(line);
    return verifier.report();
  };
  /** Returns a chain of eight rows: four under the first key, and four under the second. */
  const rotated = async (): Promise<string[]> => {
    const { audit: store } = createMemoryBackend({
      markSecret: 'x',
      clock,
      log: silentLog,
      sha256: createCrypto('test').sha256,
    });
    for (const sign of [first, second]) {
      const parts = { store, clock, log: silentLog, metrics: silentMetrics, nodeId: 'n1', sign };
      const trail = createAuditTrail({ ...parts, maxRows: 1000, keepMs: 1e12 });
      for (let i = 0; i < 2; i++)
        await (await trail.record(admin, { action: 'drain', subject: { nodeId: `n${i}` } })).end('requested');
    }
    return [...(await store.lines(0, 1000))];
  };
  const clock = new FakeClock();
  const altered = (chain: readonly string[], seq: number, change: (line: string) => string): string[] =>
    chain.map((line, at) => (at === seq - 1 ? change(line) : line));

  it('finds no fault with both keys, in any order, and names the key that is missing', async () => {
    const chain = await rotated();
    const whole = { rows: 8, firstSeq: 1, lastSeq: 8, fault: null, unchecked: [] };
    expect(verify(chain, second, first)).toMatchObject(whole);
    expect(verify(chain, first, second)).toMatchObject(whole);
    const old = { key: ids[0], rows: 4, firstSeq: 1, lastSeq: 4 };
    expect(verify(chain, second)).toMatchObject({ ...whole, unchecked: [old] });
    const present = { key: ids[1], rows: 4, firstSeq: 5, lastSeq: 8 };
    expect(verify(chain, first)).toMatchObject({ ...whole, unchecked: [present] });
    expect(verify(chain, createCrypto('another').sign)).toMatchObject({ ...whole, unchecked: [old, present] });
  });

  it('finds a changed row under a key that is given, and cannot check one under a key that is not', async () => {
    const changed = (seq: number) => rotated().then((chain) => altered(chain, seq, (line) => line.replace('n1', 'n9')));
    expect(verify(await changed(3), first, second)).toMatchObject({ fault: { seq: 3, message: 'Row 3 was changed.' } });
    expect(verify(await changed(6), second)).toMatchObject({ fault: { seq: 6 }, unchecked: [{ key: ids[0] }] });
    expect(verify(await changed(3), second)).toMatchObject({ fault: null, unchecked: [{ key: ids[0], rows: 4 }] });
  });

  it('does not take the id of a missing key for the key: a row that names another key is not checked', async () => {
    const chain = altered(await rotated(), 6, (line) => line.replace(ids[1] ?? '', 'AAAAAAAAAAAA'));
    expect(verify(chain, first, second)).toMatchObject({ unchecked: [{ key: 'AAAAAAAAAAAA', rows: 1 }], fault: null });
    const anonymous = altered(await rotated(), 6, (line) => line.replace(`,"key":"${ids[1]}"`, ''));
    expect(verify(anonymous, first, second).fault).toMatchObject({ seq: 6 });
    expect(
      verify(
        altered(await rotated(), 6, (line) => line.replace(`"${ids[1]}"`, '7')),
        second,
      ).fault,
    ).not.toBeNull();
  });

  it('finds what the chain proves without a key: a row that was removed, moved or put between others', async () => {
    const chain = await rotated();
    expect(verify(chain.toSpliced(1, 1), second).fault).toMatchObject({
      seq: 3,
      message: expect.stringMatching('missing'),
    });
    expect(verify(chain.toSpliced(3, 1), second).fault).toMatchObject({
      seq: 5,
      message: expect.stringMatching('missing'),
    });
    const swapped = [chain[1], chain[0], ...chain.slice(2)].map((line) => line ?? '');
    expect(verify(swapped, second).fault).not.toBeNull();
    // The MAC of the last old row is in the first row under the new key.
    const other = altered(chain, 4, (line) => line.replace(/"mac":"...../, '"mac":"AAAAA'));
    expect(verify(other, second).fault).toMatchObject({ seq: 5, message: 'Row 5 does not follow row 4.' });
    const inside = altered(chain, 2, (line) => line.replace(/"mac":"...../, '"mac":"AAAAA'));
    expect(verify(inside, second).fault).toMatchObject({ seq: 3, message: 'Row 3 does not follow row 2.' });
  });

  it('accepts rows without the id of a key, which older relays wrote, if a key that is given signed them', async () => {
    const [row] = (await rotated()).map((line) => openRow(line)?.row);
    if (!row) throw new Error('no row');
    const { key: _, ...old } = row;
    const { line } = sealRow(old, first);
    expect(verify([line], second, first)).toMatchObject({ rows: 1, fault: null, unchecked: [] });
    expect(verify([line], second).fault).toMatchObject({ seq: 1, message: expect.stringContaining('another key') });
  });

  it('gives a key an id that is no MAC of a row, and that two keys do not share', () => {
    expect(ids).toEqual([expect.stringMatching(/^[A-Za-z0-9_-]{12}$/), expect.stringMatching(/^[A-Za-z0-9_-]{12}$/)]);
    expect(ids[0]).not.toBe(ids[1]);
    const signed: string[] = [];
    keyIdOf((text) => (signed.push(text), first(text)));
    // The text of every row begins with a brace.
    expect(signed).toEqual([expect.stringMatching(/^callboard /)]);
  });
});

describe('the check of the stored chain', () => {
  it('says that all rows are whole, and is for administrators only', async () => {
    await using relay = await testCore();
    const { core } = relay;
    await ended(core);
    await reveal(core);
    expect(await core.audit.check(admin)).toEqual({ rows: 2, fault: null, unchecked: 0, asOf: relay.clock.now() });
    await expect(core.audit.check(alice)).rejects.toMatchObject({ code: 'forbidden' });
  });

  it('names the first row that was changed, and repeats a check after a minute at the earliest', async () => {
    let isChanged = false;
    const changing = (backend: MemoryBackend): MemoryBackend => {
      const { audit } = backend;
      const read = async (after: number, first: number): Promise<readonly string[]> => {
        const found = await audit.lines(after, first);
        return isChanged ? found.map((line) => line.replace('asked by the user', 'asked by nobody')) : found;
      };
      return {
        ...backend,
        audit: {
          head: () => audit.head(),
          append: (row) => audit.append(row),
          list: (userId, page) => audit.list(userId, page),
          lines: read,
        },
      };
    };
    await using relay = await testCore({ wrap: changing });
    const { core, clock } = relay;
    await ended(core);
    await reveal(core);
    expect(await core.audit.check(admin)).toMatchObject({ rows: 2, fault: null });
    isChanged = true;
    await clock.advance(59_000);
    expect(await core.audit.check(admin)).toMatchObject({ fault: null });
    await clock.advance(1_000);
    expect(await core.audit.check(admin)).toMatchObject({ fault: 'Row 1 was changed.' });
  });

  it('is tried again at once if the store did not answer', async () => {
    await using relay = await testCore({ wrap: away });
    await expect(relay.core.audit.check(admin)).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(relay.core.audit.check(admin)).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});
