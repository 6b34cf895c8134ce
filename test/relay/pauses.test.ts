/** Tests that a person stops calls, over REST and GraphQL, and that nothing covered reaches a client until the resume. */
import { describe, expect, it } from 'vitest';
import { HAS_PAUSES } from '../kit/store.ts';
import { startTestRelay, until, type TestRelay, type Welcomed } from './kit/test-relay.ts';

const TAB = { client_id: 'tab', payload: { actions: [{ name: 'open' }, { name: 'close' }] } };
const OPEN = '/connections/alice/tab/actions/open';

/** Starts the relays of the run, and a client of alice. */
async function started(): Promise<{ readonly relay: TestRelay; readonly tab: Welcomed }> {
  const relay = await startTestRelay();
  return { relay, tab: await relay.client(TAB) };
}

const pause = async (relay: TestRelay, body: object, requester = 'alice') => {
  const answer = await relay.post('/pauses', { reason: 'lunch', ...body }, requester);
  return { ...answer, id: String(answer.json?.['pause_id']) };
};
const resume = (relay: TestRelay, id: string, requester = 'alice') =>
  relay.rest(`/pauses/${id}`, { method: 'DELETE', requester });

it.runIf(!HAS_PAUSES)('is refused clearly by a store that has no pauses', async () => {
  const { relay } = await started();
  await using at = relay;
  const { status, json } = await pause(at, { all: true });
  expect([status, json]).toMatchObject([501, { code: 'not_supported' }]);
  expect((await at.rest('/pauses')).json?.['items']).toEqual([]);
});

describe.runIf(HAS_PAUSES)('a pause', () => {
  it('refuses calls with who, why and until when, in REST, GraphQL and the preflight, until it is resumed', async () => {
    const { relay, tab } = await started();
    await using at = relay;
    const until = new Date(at.clock.now() + 60_000).toISOString();
    const { status, json, id } = await pause(at, { all: true, until });
    expect([status, json]).toMatchObject([201, { pause: { user_id: 'alice', until }, partial: false, silent: [] }]);

    const refused = await at.post(OPEN, {});
    const by = { kind: 'user', name: 'alice' };
    expect([refused.status, refused.json]).toMatchObject([
      409,
      { code: 'paused', by: 'pause', pause: { pause_id: id, reason: 'lunch', by, until } },
    ]);
    expect(refused.json?.['detail']).toBe(`Paused by user "alice" until ${until}: lunch.`);
    const input = '{ userId: "alice", clientId: "tab", action: "open" }';
    const { invokeAction } = await at.data(
      `mutation { invokeAction(input: ${input}) { ... on Refusal { code by pausedBy { pauseId reason } } } }`,
    );
    expect(invokeAction).toEqual({ code: 'paused', by: 'PAUSE', pausedBy: { pauseId: id, reason: 'lunch' } });
    const preflight = await at.post(`${OPEN}/preflight`, {});
    expect(preflight.json?.['first_refusal']).toMatchObject({ layer: 'pause', code: 'paused' });

    expect((await resume(at, id)).json).toMatchObject({ pause: { pause_id: id }, partial: false });
    expect((await resume(at, id)).status).toBe(404);
    const call = at.post(OPEN, {});
    const { command_id } = await tab.next('command');
    tab.send({ type: 'result', command_id }, 1);
    expect((await call).status).toBe(200);
  });

  it('holds back what is queued, and the client gets it after the resume', async () => {
    const { relay } = await started();
    await using at = relay;
    const path = '/connections/alice/late/actions/open';
    const calls = ['c1', 'c2'].map((command_id) => at.post(path, { command_id, connect_within_ms: 60_000 }));
    await until(
      async () => (await at.data('{ pauseReach(cover: { all: true }) { queued } }'))['pauseReach'].queued === 2,
    );
    const { id } = await pause(at, { client_id: 'late' });
    const late = await at.client({ ...TAB, client_id: 'late' });
    const other = at.post(OPEN, { command_id: 'other', wait_for: 'admitted' });
    expect((await other).status).toBe(202);
    const reach = '{ pauseReach(cover: { userId: "alice", clientId: "late" }) { clients queued running } }';
    expect((await at.data(reach))['pauseReach']).toEqual({ clients: 1, queued: 2, running: 0 });
    await resume(at, id);
    for (const command_id of ['c1', 'c2']) {
      expect(await late.next('command')).toMatchObject({ command_id });
      late.send({ type: 'result', command_id }, 1);
    }
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200]);
  });

  it('cancels what is queued, each with its end, and asks the client to cancel what runs', async () => {
    const { relay, tab } = await started();
    await using at = relay;
    const running = at.post(OPEN, { command_id: 'running' });
    await tab.next('command');
    const path = '/connections/alice/late/actions/open';
    const queued = at.post(path, { command_id: 'queued', connect_within_ms: 60_000 });
    await until(
      async () => (await at.data('{ pauseReach(cover: { all: true }) { queued } }'))['pauseReach'].queued === 1,
    );
    const { json } = await pause(at, { user_id: 'alice', queued: 'cancel', running: 'cancel' }, 'admin');
    expect(json).toMatchObject({ cancelled: 1, asked: 1 });
    expect((await queued).json).toMatchObject({ outcome: 'cancelled', execution: 'not_written' });
    expect(await tab.next('cancel')).toMatchObject({ command_id: 'running', reason: 'lunch' });
    tab.send({ type: 'cancelled', command_id: 'running' });
    expect((await running).json).toMatchObject({ outcome: 'cancelled' });
  });

  it('of an administrator covers all users, and ends by itself', async () => {
    const { relay } = await started();
    await using at = relay;
    const { json, id } = await pause(at, { all: true, until: new Date(at.clock.now() + 5_000).toISOString() }, 'admin');
    expect(json?.['pause']).toMatchObject({ user_id: null, by: { kind: 'admin' } });
    expect((await at.post(OPEN, { wait_for: 'admitted' })).json).toMatchObject({ code: 'paused' });
    expect((await at.rest('/pauses')).json?.['items']).toMatchObject([{ pause_id: id }]);
    await at.clock.advance(5_000);
    expect((await at.post(OPEN, { wait_for: 'admitted' })).status).toBe(202);
    expect((await at.rest('/pauses')).json?.['items']).toEqual([]);
  });
});

describe.runIf(HAS_PAUSES)('who may pause', () => {
  it('is a user for what is its own, and an administrator for all; neither agents nor limited tokens', async () => {
    const { relay } = await started();
    await using at = relay;
    const status = async (body: object, requester: string) => (await pause(at, body, requester)).status;
    expect(await status({ user_id: 'bob' }, 'alice')).toBe(404);
    expect(await status({ caller_kind: 'mcp' }, 'alice:mcp')).toBe(403);
    expect(await status({ caller_kind: 'mcp' }, 'alice:connect')).toBe(403);
    expect(await status({ caller_kind: 'mcp' }, 'nobody')).toBe(401);
    expect(await status({ caller_kind: 'mcp' }, 'alice')).toBe(201);
    expect((await at.rest('/pauses', { requester: 'bob' })).json?.['items']).toEqual([]);
  });

  it('ends a pause of an administrator never as a user, who sees it; and none of another user', async () => {
    const { relay } = await started();
    await using at = relay;
    const { id } = await pause(at, { user_id: 'alice' }, 'admin');
    expect((await at.rest('/pauses', { requester: 'alice' })).json?.['items']).toMatchObject([{ pause_id: id }]);
    expect((await resume(at, id, 'alice')).json).toMatchObject({ code: 'forbidden' });
    expect((await resume(at, id, 'bob')).status).toBe(404);
    expect((await resume(at, id, 'admin')).status).toBe(200);
  });

  it('says what is wrong with a request, all at once', async () => {
    const { relay } = await started();
    await using at = relay;
    const faults = async (body: object) => {
      const { json } = await at.post('/pauses', { reason: 'x', ...body }, 'admin');
      const errors = (json?.['errors'] ?? []) as readonly { readonly parameter: string }[];
      return errors.map(({ parameter }) => parameter).join();
    };
    expect(await faults({})).toBe('all');
    expect(await faults({ all: true, user_id: 'alice' })).toBe('all');
    expect(await faults({ client_id: 'tab' })).toBe('client_id');
    const long = 'x'.repeat(257);
    expect(await faults({ label: long, reason: ' ', until: '2000-01-01T00:00:00Z' })).toBe('label,reason,until');
    expect(await faults({ action: 'x'.repeat(257) })).toBe('action');
  });

  it('is in the audit, with the reason', async () => {
    const { relay } = await started();
    await using at = relay;
    const { id } = await pause(at, { client_id: 'tab' });
    await resume(at, id);
    const { auditEvents } = await at.data(
      '{ auditEvents { nodes { who action outcome reason subject { userId clientId pauseId } } } }',
    );
    const subject = { userId: 'alice', clientId: 'tab', pauseId: id };
    expect(auditEvents.nodes).toEqual([
      { who: 'user:alice', action: 'RESUME', outcome: 'resumed', reason: null, subject },
      { who: 'user:alice', action: 'PAUSE', outcome: 'paused', reason: 'lunch', subject },
    ]);
  });
});

describe.runIf(HAS_PAUSES)('a client that pauses itself', () => {
  it('is shown as such, refuses no other client, and resumes', async () => {
    const { relay, tab } = await started();
    await using at = relay;
    await at.client({ ...TAB, client_id: 'other' });
    tab.send({ type: 'pause', ref: 'p1', op: 'pause', reason: 'I type myself', running: 'cancel' });
    expect(await tab.next('pause_ack')).toMatchObject({ ref: 'p1' });
    const by = { kind: 'client', name: 'tab' };
    expect((await at.rest('/pauses')).json?.['items']).toMatchObject([
      { user_id: 'alice', client_id: 'tab', by, reason: 'I type myself', until: null },
    ]);
    const refused = await at.post(OPEN, {});
    expect(refused.json).toMatchObject({ code: 'paused', pause: { by } });
    expect(refused.json?.['detail']).toBe('Paused by client "tab" until somebody resumes: I type myself.');
    const other = await at.post('/connections/alice/other/actions/open', { wait_for: 'admitted' });
    expect(other.status).toBe(202);
    // The same client replaces its own pause.
    tab.send({ type: 'pause', ref: 'p2', op: 'pause', reason: 'later' });
    await tab.next('pause_ack');
    expect((await at.rest('/pauses')).json?.['items']).toMatchObject([{ reason: 'later' }]);
    tab.send({ type: 'pause', ref: 'p3', op: 'resume' });
    await tab.next('pause_ack');
    expect((await at.rest('/pauses')).json?.['items']).toEqual([]);
    const { auditEvents } = await at.data('{ auditEvents { nodes { who action reason subject { clientId } } } }');
    expect(auditEvents.nodes).toMatchObject([
      { who: 'user:alice', action: 'RESUME', subject: { clientId: 'tab' } },
      { action: 'PAUSE', reason: 'later' },
      { action: 'PAUSE', reason: 'I type myself' },
    ]);
  });

  it('may be resumed by its user; a wrong request is refused with its ref', async () => {
    const { relay, tab } = await started();
    await using at = relay;
    tab.send({ type: 'pause', ref: 'p0', op: 'pause' });
    expect(await tab.next('refused')).toMatchObject({ frame: 'pause', ref: 'p0', code: 'invalid_argument' });
    tab.send({ type: 'pause', ref: 'p1', op: 'pause', reason: 'stop' });
    await tab.next('pause_ack');
    const [item] = (await at.rest('/pauses')).json?.['items'] as readonly { readonly pause_id: string }[];
    expect((await resume(at, item?.pause_id ?? '')).status).toBe(200);
    expect((await at.post(OPEN, { wait_for: 'admitted' })).status).toBe(202);
  });
});

describe.runIf(HAS_PAUSES)('the events of pauses', () => {
  it('say what began and ended: all to an administrator, its own to a user', async () => {
    const { relay } = await started();
    await using at = relay;
    const fields = '{ change pause { pauseId userId by { kind } } missed }';
    const all = await at.subscribe(`subscription { pauseEvents ${fields} }`);
    const own = await at.subscribe(`subscription { pauseEvents ${fields} }`, { requester: 'bob' });
    const { id } = await pause(at, { all: true });
    const wide = await pause(at, { all: true, until: new Date(at.clock.now() + 5_000).toISOString() }, 'admin');
    const bobs = await pause(at, { all: true }, 'bob');
    await resume(at, id);
    await at.clock.advance(6_000);
    const seen = async (stream: typeof all, count: number) => {
      await stream.until('event: next', count);
      const found = [...stream.text().matchAll(/"change":"(\w+)","pause":{"pauseId":"([^"]+)"/g)];
      stream.abort();
      return found.map(([, change, pauseId]) => [change, pauseId]);
    };
    expect(await seen(all, 5)).toEqual([
      ['PAUSED', id],
      ['PAUSED', wide.id],
      ['PAUSED', bobs.id],
      ['RESUMED', id],
      ['LAPSED', wide.id],
    ]);
    expect(await seen(own, 1)).toEqual([['PAUSED', bobs.id]]);
  });
});
