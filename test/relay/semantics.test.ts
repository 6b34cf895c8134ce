/** Tests the documented semantics of advertisements, waits and delivery. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRuntime, type Runtime } from '../../src/clients/runtime/index.ts';
import { schema } from '../../src/graphql/schema/schema.ts';
import { gate } from '../clients/kit/runtime-bench.ts';
import { codeOf, startTestRelay, until, type TestRelay } from './kit/test-relay.ts';

const rules = [{ name: 'no-wiping', effect: 'deny', actions: ['disk.wipe'] }] as const;
let at: TestRelay;
beforeEach(async () => {
  at = await startTestRelay({ policy: { rules, scopes: [], userCapacity: null } });
});
afterEach(() => at[Symbol.asyncDispose]());

const caseFile = `query ($id: ID!) {
  command(userId: "alice", clientId: "tab", commandId: $id) {
    outcome error { code }
    delivery { stage lastProvenStage outcome execution attempts dispatchedAt acknowledgedAt terminalAt lateResults }
    waiters { rpcId } history { nodes { kind payload(include: true) } }
  }
}`;
const invoke = (action: string, body: object = {}) => at.post(`/connections/alice/tab/actions/${action}`, body);
const pending = async (): Promise<readonly object[]> => JSON.parse((await at.rest('/rpc/pending')).text).items;
const fileOf = async (id: string) => (await at.data(caseFile, { variables: { id } }))['command'];

describe('1. An action advertisement is evidence of capability, not authorization', () => {
  const entered = gate();
  const leave = gate();
  let runs: string[];
  let runtime: Runtime;
  beforeEach(async () => {
    runs = [];
    const ran = (name: string) => () => void runs.push(name);
    runtime = createRuntime({
      url: `${at.linkUrl.replace('http', 'ws')}/connect`,
      token: async () => (await at.token('alice:connect')) ?? '',
      clientId: 'tab',
      clientType: 'console',
      authorize: ({ action }) => action !== 'door.open',
      approve: () => false,
    });
    runtime.handle('disk.wipe', {}, ran('disk.wipe'));
    runtime.handle('door.open', {}, ran('door.open'));
    runtime.handle('money.send', { approval: true }, ran('money.send'));
    runtime.handle('lamp.set', { schema: { type: 'object', required: ['on'] } }, ran('lamp.set'));
    runtime.handle('page.print', { lease: true }, async () => {
      entered.open();
      await leave.opened;
    });
    runtime.handle('disk.read', {}, () => {
      throw new Error('unreadable');
    });
    runtime.connect();
    await runtime.ready();
  });
  afterEach(() => runtime.close({ withinMs: 0 }));

  const refusals = [
    ['Central policy', 'disk.wipe', {}, 403, 'policy_denied'],
    ['client-local policy', 'door.open', {}, 200, 'client_denied'],
    ['approval', 'money.send', {}, 200, 'approval_denied'],
    ['argument validation', 'lamp.set', { params: {} }, 200, 'arguments_invalid'],
    ['targeting', 'lamp.set', { params: { on: true }, instance_id: 'another' }, 409, 'instance_mismatch'],
    ['handler behavior', 'disk.read', {}, 200, 'handler_failed'],
  ] as const;

  it.each(refusals)('%s can still refuse the advertised %s', async (_who, action, body, status, code) => {
    const advertised = await at.rest('/connections/alice/tab/actions');
    expect(advertised.text).toContain(`"name":"${action}"`);
    const answer = await invoke(action, body);
    expect([answer.status, codeOf(answer)]).toEqual([status, code]);
    expect(runs).toEqual([]);
  });

  it('leases can still refuse the advertised page.print', async () => {
    const first = invoke('page.print');
    await entered.opened;
    const second = await invoke('page.print');
    expect([codeOf(second), second.json?.['execution']]).toEqual(['lease_busy', 'refused_by_client']);
    leave.open();
    expect((await first).json?.['outcome']).toBe('completed');
  });

  it('and states it in every listing of actions', () => {
    expect(schema.getType('ActionAdvertisement')?.description).toMatch(
      /evidence that the client can run it, never that a caller may invoke it/,
    );
  });
});

describe('2. A pending RPC shows only that its correlator has not resolved the waiter', () => {
  it('It does not show that no socket write occurred', async () => {
    const tab = await at.client();
    void invoke('open', { command_id: 'c1' });
    await tab.next('command');
    expect(await pending()).toMatchObject([{ command_id: 'c1', stage: 'dispatched' }]);
    expect((await fileOf('c1')).delivery).toMatchObject({ attempts: 1, dispatchedAt: expect.any(String) });
  });

  it('It does not show that the client did not execute', async () => {
    const tab = await at.client();
    const effects: string[] = [];
    const invoked = invoke('open', { command_id: 'c1' });
    effects.push((await tab.next('command')).command_id);
    await tab.sync();
    expect(effects).toEqual(['c1']);
    expect(await pending()).toMatchObject([{ command_id: 'c1' }]);
    tab.send({ type: 'result', command_id: 'c1' }, 'did it');
    expect((await invoked).json).toMatchObject({ outcome: 'completed', result: 'did it' });
    expect(await pending()).toEqual([]);
  });

  it('It does not show that no result arrived after the caller stopped waiting', async () => {
    const tab = await at.client();
    const invoked = invoke('open', { command_id: 'c1', respond_within_ms: 1000 });
    await tab.next('command');
    await until(async () => (await fileOf('c1')).waiters.length === 1);
    await at.clock.advance(1000);
    expect([(await invoked).status, codeOf(await invoked)]).toEqual([504, 'response_timeout']);
    expect(await pending()).toEqual([]);
    tab.send({ type: 'result', command_id: 'c1' }, 'too late');
    expect(await tab.next('result_ack')).toMatchObject({ recorded: 'late' });
    const { outcome, delivery, history } = await fileOf('c1');
    expect([outcome, delivery.lateResults, await pending()]).toEqual(['OUTCOME_UNKNOWN', 1, []]);
    expect(history.nodes).toContainEqual({ kind: 'LATE_RESULT', payload: 'too late' });
  });

  it('and a caller that leaves ends only its wait: the client runs on and its result is recorded', async () => {
    const tab = await at.client();
    const caller = await at.caller('alice');
    caller.send({ type: 'invoke', ref: 'r1', client_id: 'tab', action: 'open', command_id: 'c1' });
    await tab.next('command');
    caller.ws.terminate();
    await until(async () => (await pending()).length === 0);
    expect(tab.seen('cancel')).toEqual([]);
    tab.send({ type: 'result', command_id: 'c1' }, 7);
    expect(await tab.next('result_ack')).toMatchObject({ recorded: 'recorded' });
    expect((await fileOf('c1')).outcome).toBe('COMPLETED');
  });
});

describe('4. A delivery status field never by itself means external completion', () => {
  it('completed is what the client reported, whatever it did', async () => {
    const tab = await at.client();
    const invoked = invoke('open', { command_id: 'c1' });
    await tab.next('command');
    tab.send({ type: 'result', command_id: 'c1' }, { done: true });
    await invoked;
    expect((await fileOf('c1')).delivery).toMatchObject({ outcome: 'COMPLETED', execution: 'REPORTED_BY_CLIENT' });
  });

  it('an effect can be complete while every field says that the outcome is unknown', async () => {
    const tab = await at.client();
    const invoked = invoke('open', { command_id: 'c1', respond_within_ms: 1000 });
    const effects = [(await tab.next('command')).command_id];
    tab.send({ type: 'ack', command_id: 'c1' });
    await until(async () => (await fileOf('c1')).delivery.stage === 'ACKNOWLEDGED');
    await at.clock.advance(1000);
    await invoked;
    expect(effects).toEqual(['c1']);
    const { delivery } = await fileOf('c1');
    expect(delivery).toMatchObject({
      outcome: 'OUTCOME_UNKNOWN',
      execution: 'MAY_HAVE_RUN',
      lastProvenStage: 'ACKNOWLEDGED',
    });
  });

  it.each(['DISPATCHED', 'ACKNOWLEDGED'])('%s leaves the outcome open', async (reached) => {
    const tab = await at.client();
    void invoke('open', { command_id: 'c1' });
    await tab.next('command');
    if (reached === 'ACKNOWLEDGED') tab.send({ type: 'ack', command_id: 'c1' });
    await until(async () => (await fileOf('c1')).delivery.stage === reached);
    expect((await fileOf('c1')).delivery).toMatchObject({ outcome: null, execution: 'MAY_HAVE_RUN', terminalAt: null });
  });

  it('a cancelled or expired command is proven only not to have been written', async () => {
    void invoke('open', { command_id: 'c1', connect_within_ms: 5000 });
    void invoke('open', { command_id: 'c2', connect_within_ms: 5000 });
    await until(async () => (await pending()).length === 2);
    expect((await at.post('/commands/alice/tab/c1/cancel')).json).toMatchObject({ state: 'cancelled' });
    await at.clock.advance(5000);
    expect((await fileOf('c1')).delivery).toMatchObject({
      outcome: 'CANCELLED',
      execution: 'NOT_WRITTEN',
      attempts: 0,
    });
    expect((await fileOf('c2')).delivery).toMatchObject({ outcome: 'EXPIRED', execution: 'NOT_WRITTEN', attempts: 0 });
    const tab = await at.client();
    await tab.sync();
    expect(tab.seen('command')).toEqual([]);
  });

  it('and no field or description of the record claims more', () => {
    for (const name of ['DeliveryRecord', 'Outcome', 'ExecutionEvidence', 'InvokeActionOutcome']) {
      expect([name, schema.getType(name)?.description]).toEqual([
        name,
        expect.stringMatching(/effects? outside the client/),
      ]);
    }
  });
});
