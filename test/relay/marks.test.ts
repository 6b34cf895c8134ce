/** Tests ended commands of which a relay keeps only the id and the outcome, over every interface. */
import { describe, expect, it } from 'vitest';
import { createHttpCaller, createLinkCaller } from '../../src/clients/caller/index.ts';
import { startTestRelay, type TestRelay } from './kit/test-relay.ts';

const INVOKE = '/connections/alice/tab/actions/open';
const EXPIRED = { code: 'result_expired', message: 'The result is no longer retained.' };
const ENDED = { command_id: 'c0', outcome: 'completed', stage: 'terminal', execution: 'reported_by_client' };

/**
 * Starts a relay with two ended commands of alice. The store keeps only the id and the outcome of the first one.
 * Records what its client receives afterwards.
 */
async function reduced(shares: Record<string, { guarantee: number; total: number }> = {}) {
  const relay = await startTestRelay({ shares: { ended_records: { guarantee: 1, total: 1 }, ...shares } });
  const tab = await relay.client();
  for (const command_id of ['c0', 'c1']) {
    const waiting = relay.post(INVOKE, { command_id, params: { n: 1 } }, 'alice');
    await tab.next('command');
    tab.send({ type: 'result', command_id }, { ok: command_id });
    await tab.next('result_ack');
    expect((await waiting).json).toMatchObject({ outcome: 'completed', result: { ok: command_id }, error: null });
  }
  return { relay, tab, [Symbol.asyncDispose]: () => relay[Symbol.asyncDispose]() };
}

/** Checks that a new command reaches the client, and that nothing arrived before it. */
async function expectNothingSent({ relay, tab }: { relay: TestRelay; tab: Awaited<ReturnType<TestRelay['client']>> }) {
  const waiting = relay.post(INVOKE, { command_id: 'next' }, 'alice');
  expect(await tab.next('command')).toMatchObject({ command_id: 'next' });
  tab.send({ type: 'result', command_id: 'next' }, {});
  await waiting;
}

describe('an id of which only a mark is left', () => {
  it('is answered over REST with the outcome, and runs nothing', async () => {
    await using at = await reduced();
    const { relay } = at;
    const again = await relay.post(INVOKE, { command_id: 'c0', params: { n: 1 } }, 'alice');
    expect(again.status).toBe(200);
    expect(again.json).toEqual({ ...ENDED, last_proven_stage: null, rpc_id: null, result: null, error: EXPIRED });
    for (const query of ['', '?within_ms=1000']) {
      const read = await relay.rest(`/commands/alice/tab/c0${query}`, { requester: 'alice' });
      expect([read.status, read.json]).toEqual([
        200,
        { ...ENDED, last_proven_stage: null, rpc_id: null, result: null, error: EXPIRED },
      ]);
    }
    const other = await relay.post(INVOKE, { command_id: 'c0', params: { n: 2 } }, 'alice');
    expect([other.status, other.json?.['code']]).toEqual([409, 'command_conflict']);
    const status = await relay.rest('/delivery/status?user_id=alice&client_id=tab&command_id=c0');
    expect(status.status).toBe(404);
    const listed = await relay.rest('/delivery/commands');
    expect(listed.json).toMatchObject({ items: [{ command_id: 'c1' }], completeness: { complete: false } });
    expect(JSON.stringify(listed.json)).toContain('"reason":"evicted"');
    await expectNothingSent(at);
  });

  it('is answered although its client is away or no longer advertises the action', async () => {
    await using at = await reduced();
    at.tab.ws.close();
    const connected = async () => (await at.relay.rest('/connections?status=connected')).json?.['items'];
    await expect.poll(connected).toEqual([]);
    const fresh = await at.relay.post(INVOKE, { command_id: 'fresh' }, 'alice');
    expect(fresh.json).toMatchObject({ code: 'not_connected' });
    const again = await at.relay.post(INVOKE, { command_id: 'c0', params: { n: 1 } }, 'alice');
    expect([again.status, again.json?.['outcome']]).toEqual([200, 'completed']);
  });

  it('is answered over GraphQL, and its case file is null', async () => {
    await using at = await reduced();
    const ask = `commandId outcome stage result error { code } command { action }`;
    const { invokeAction } = await at.relay.data(
      `mutation { invokeAction(input: { userId: "alice", clientId: "tab", action: "open", params: { n: 1 }, commandId: "c0" }) {
        __typename ... on Invocation { ${ask} } } }`,
      { requester: 'alice' },
    );
    const { awaitCommand } = await at.relay.data(
      `mutation { awaitCommand(userId: "alice", clientId: "tab", commandId: "c0") { __typename ... on Invocation { ${ask} } } }`,
    );
    for (const answer of [invokeAction, awaitCommand])
      expect(answer).toEqual({
        ...{ __typename: 'InvokeActionOutcome', commandId: 'c0', outcome: 'COMPLETED', stage: 'TERMINAL' },
        ...{ result: null, error: { code: 'result_expired' }, command: null },
      });
    await expectNothingSent(at);
  });

  it('is answered over links and by both caller libraries', async () => {
    await using at = await reduced();
    const { relay } = at;
    const caller = await relay.caller('alice');
    for (const frame of [
      { type: 'invoke', ref: 'r1', client_id: 'tab', action: 'open', command_id: 'c0' },
      { type: 'await', ref: 'r2', client_id: 'tab', command_id: 'c0' },
    ] as const) {
      caller.send(frame, frame.type === 'invoke' ? { n: 1 } : undefined);
      const { ref } = frame;
      expect(await caller.next('outcome')).toMatchObject({
        ...{ ...ENDED, ref, error_code: EXPIRED.code, error_message: EXPIRED.message },
      });
    }
    const token = (await relay.token('alice')) ?? '';
    const target = { userId: 'alice', clientId: 'tab', action: 'open' };
    await using http = createHttpCaller({ url: relay.url, token });
    await using link = createLinkCaller({ url: `${relay.linkUrl.replace('http', 'ws')}/connect`, token });
    for (const library of [http, link])
      expect(await library.invoke(target, { n: 1 }, { commandId: 'c0' })).toMatchObject({
        ...{ outcome: 'completed', result: null, code: 'result_expired', execution: 'reported_by_client' },
      });
    await expectNothingSent(at);
  });

  it('is not cancelled: every interface answers as for an ended command, with its outcome', async () => {
    await using at = await reduced();
    const { relay } = at;
    const rest = await relay.post('/commands/alice/tab/c0/cancel', {}, 'alice');
    expect([rest.status, rest.json]).toEqual([
      200,
      { state: 'too_late', command_id: 'c0', outcome: 'completed', command: null },
    ]);
    const whole = await relay.post('/commands/alice/tab/c1/cancel', {}, 'alice');
    expect([whole.status, whole.json]).toMatchObject([
      200,
      { state: 'too_late', command_id: 'c1', outcome: 'completed', command: { command_id: 'c1' } },
    ]);
    const { cancelCommand } = await relay.data(
      `mutation { cancelCommand(input: { userId: "alice", clientId: "tab", commandId: "c0" }) {
        __typename ... on CancelReceipt { state commandId outcome command { action } } } }`,
    );
    expect(cancelCommand).toEqual({
      ...{ __typename: 'CancelReceipt', state: 'TOO_LATE', commandId: 'c0', outcome: 'COMPLETED', command: null },
    });
    const caller = await relay.caller('alice');
    caller.send({ type: 'cancel', ref: 'r1', client_id: 'tab', command_id: 'c0' });
    expect(await caller.next('receipt')).toMatchObject({ ref: 'r1', command_id: 'c0', state: 'too_late' });
    for (const [path, requester] of [
      ['/commands/alice/tab/absent/cancel', 'alice'],
      ['/commands/alice/tab/c0/cancel', 'bob'],
    ] as const)
      expect((await relay.post(path, {}, requester)).status).toBe(404);
    await expectNothingSent(at);
  });

  it('may be forgotten after its window, and is then a new command', async () => {
    await using at = await reduced();
    await at.relay.clock.advance(3_600_000);
    const waiting = at.relay.post(INVOKE, { command_id: 'c0', params: { n: 1 }, connect_within_ms: 0 }, 'alice');
    const { json } = await waiting;
    // The client of the command has been disconnected for an hour.
    expect(json).toMatchObject({ code: 'not_connected' });
  });
});

describe('dropped records and results', () => {
  it('are counted in the metrics', async () => {
    await using at = await reduced();
    const { text } = await at.relay.rest('/metrics');
    expect(text).toContain('\ncallboard_records_reduced_total 1\n');
    expect(text).toContain('\ncallboard_results_given_up_total{reason="record"} 1\n');
    expect(text).toContain('\ncallboard_ids_forgotten_total 0\n');
  });
});

describe('a relay without room for marks', () => {
  it('refuses ids that callers choose, names the share, and accepts calls without one', async () => {
    await using at = await reduced({ marks: { guarantee: 2, total: 2 } });
    const { relay, tab } = at;
    const refused = await relay.post(INVOKE, { command_id: 'c2' }, 'alice');
    expect([refused.status, refused.json]).toMatchObject([
      429,
      { code: 'share_exceeded', share: 'marks', by: 'capacity' },
    ]);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    const waiting = relay.post(INVOKE, {}, 'alice');
    const { command_id } = await tab.next('command');
    tab.send({ type: 'result', command_id: String(command_id) }, { ok: true });
    expect((await waiting).json).toMatchObject({ outcome: 'completed', result: { ok: true } });
    const again = await relay.post(INVOKE, { command_id: 'c0', params: { n: 1 } }, 'alice');
    expect(again.status).toBe(200);
  });
});
