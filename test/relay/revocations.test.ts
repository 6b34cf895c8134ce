/** Tests that a revoked token does nothing after the answer, over REST, GraphQL, links and event streams. */
import { describe, expect, it } from 'vitest';
import { HAS_REVOCATIONS } from '../kit/store.ts';
import { startTestRelay, type TestRelay } from './kit/test-relay.ts';

const TAB = { client_id: 'tab', payload: { actions: [{ name: 'open' }] } };
const revoke = (relay: TestRelay, body: object, requester = 'admin') =>
  relay.post('/revocations', { reason: 'it was lost', ...body }, requester);
const tokenIdOf = async (relay: TestRelay, requester: string): Promise<string> =>
  (await relay.data('{ viewer { tokenId } }', { requester }))['viewer'].tokenId;

it.runIf(!HAS_REVOCATIONS)('is refused clearly by a store that keeps none', async () => {
  await using relay = await startTestRelay();
  const { status, json } = await revoke(relay, { user_id: 'alice' });
  expect([status, json?.['code']]).toEqual([501, 'not_supported']);
  expect((await relay.rest('/revocations')).json?.['items']).toEqual([]);
});

describe.runIf(HAS_REVOCATIONS)('a revocation', () => {
  it('of a user refuses its tokens, closes its links with 4403, and cancels what it has queued', async () => {
    await using relay = await startTestRelay();
    const tab = await relay.client(TAB);
    const other = await relay.client({ ...TAB, user: 'bob' });
    const path = '/connections/alice/late/actions/open';
    const queued = { command_id: 'c1', connect_within_ms: 60_000, wait_for: 'admitted' };
    expect((await relay.post(path, queued)).status).toBe(202);

    const { status, json } = await revoke(relay, { user_id: 'alice' });
    expect([status, json]).toMatchObject([201, { links: 1, cancelled: 1, silent: [] }]);
    expect(json?.['revocation']).toMatchObject({ user_id: 'alice', reason: 'it was lost', token_id: null });
    expect(await tab.closed).toMatchObject({ code: 4403 });
    expect((await relay.post(path, {})).status).toBe(401);
    expect((await relay.graphql('{ viewer { kind } }', { requester: 'alice' })).status).toBe(401);
    const record = await relay.rest('/delivery/status?user_id=alice&client_id=late&command_id=c1');
    expect(record.json).toMatchObject({ outcome: 'cancelled', dispatched_at: null });
    await other.sync();
    expect((await relay.graphql('{ viewer { kind } }', { requester: 'bob' })).status).toBe(200);
  });

  it('of one token leaves the other tokens of the user, and what they have queued', async () => {
    await using relay = await startTestRelay();
    const first = await relay.token('alice');
    const token_id = await tokenIdOf(relay, 'alice');
    const other = 'alice:invoke';
    const queued = { connect_within_ms: 60_000, wait_for: 'admitted' };
    const path = '/connections/alice/late/actions/open';
    expect((await relay.post(path, { ...queued, command_id: 'c1' }, 'alice')).status).toBe(202);
    expect((await relay.post(path, { ...queued, command_id: 'c2' }, other)).status).toBe(202);
    expect((await revoke(relay, { token_id }, 'alice')).json).toMatchObject({ cancelled: 1 });
    expect((await relay.ask('/connections', { token: first })).status).toBe(401);
    const statusOf = async (command_id: string) =>
      (await relay.rest(`/delivery/status?user_id=alice&client_id=late&command_id=${command_id}`)).json;
    expect(await statusOf('c1')).toMatchObject({ outcome: 'cancelled', dispatched_at: null });
    expect(await statusOf('c2')).toMatchObject({ outcome: null, stage: 'admitted' });
    const items = (await relay.rest('/revocations')).json?.['items'];
    expect(items).toMatchObject([{ user_id: 'alice', token_id, issued_before: null, who: 'user:alice' }]);
  });

  it('by GraphQL of what was issued before a time cancels what such tokens have queued, and no more', async () => {
    await using relay = await startTestRelay();
    const path = '/connections/alice/late/actions/open';
    const queued = { connect_within_ms: 60_000, wait_for: 'admitted' };
    expect((await relay.post(path, { ...queued, command_id: 'c1' }, 'alice')).status).toBe(202);
    const revokeBefore = async (issuedBefore: string) => {
      const input = `{ issuedBefore: "${issuedBefore}", reason: "the issuer was broken into" }`;
      const document = `mutation { revoke(input: ${input}) { ... on RevocationReceipt { cancelled } } }`;
      return (await relay.data(document))['revoke'];
    };
    expect(await revokeBefore('2001-01-01T00:00:00Z')).toEqual({ cancelled: 0 });
    expect(await revokeBefore('2100-01-01T00:00:00Z')).toEqual({ cancelled: 1 });
    const record = await relay.rest('/delivery/status?user_id=alice&client_id=late&command_id=c1');
    expect(record.json).toMatchObject({ outcome: 'cancelled', dispatched_at: null });
  });

  it('ends event streams that are open', async () => {
    await using relay = await startTestRelay();
    const stream = await relay.subscribe('subscription { connectionEvents { change } }', { requester: 'alice' });
    const { json } = await revoke(relay, { user_id: 'alice' });
    expect(json).toMatchObject({ sockets: 1 });
    await stream.ended;
  });

  it('of a client refuses its links, and no other use of the token', async () => {
    await using relay = await startTestRelay();
    const tab = await relay.client(TAB);
    expect((await revoke(relay, { user_id: 'alice', client_id: 'tab' })).json).toMatchObject({ links: 1 });
    expect(await tab.closed).toMatchObject({ code: 4403 });
    const own = await revoke(relay, { client_id: 'phone' }, 'alice');
    expect(own.json?.['revocation']).toMatchObject({ user_id: 'alice', client_id: 'phone' });
    await expect(relay.client(TAB)).rejects.toThrow();
    await relay.client({ ...TAB, client_id: 'desk' });
    expect((await relay.graphql('{ viewer { kind } }', { requester: 'alice' })).status).toBe(200);
  });

  it('by a user concerns its own tokens, and names what is missing', async () => {
    await using relay = await startTestRelay();
    expect((await revoke(relay, { user_id: 'bob' }, 'alice')).status).toBe(404);
    expect((await revoke(relay, {})).status).toBe(409);
    expect((await revoke(relay, { client_id: 'tab' })).status).toBe(409);
    expect((await revoke(relay, { user_id: 'alice', reason: '' })).status).toBe(400);
    expect((await revoke(relay, { client_id: 'tab', token_id: '' })).status).toBe(400);
    expect((await relay.rest('/revocations', { requester: 'alice' })).status).toBe(403);
    expect((await relay.rest('/revocations')).json?.['items']).toEqual([]);
  });

  it('is written to the audit', async () => {
    await using relay = await startTestRelay();
    await revoke(relay, { user_id: 'alice', token_id: 't1' });
    const { auditEvents } = await relay.data(
      '{ auditEvents { nodes { action reason outcome subject { userId tokenId } } } }',
    );
    const subject = { userId: 'alice', tokenId: 't1' };
    expect(auditEvents.nodes).toEqual([{ action: 'REVOKE', reason: 'it was lost', outcome: 'revoked', subject }]);
  });
});
