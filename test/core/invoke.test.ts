/** Tests invocations in core: budgets, idempotency, refusals and waits. */
import { describe, expect, it } from 'vitest';
import { compilePolicy } from '../../src/core/auth/policy-file.ts';
import type { Core, Invocation, InvokeRequest } from '../../src/core/core.ts';
import { toJson, trustJson } from '../../src/core/json.ts';
import { settle } from '../kit/clock.ts';
import { admin, advertisement, connect, testCore, user } from '../kit/core.ts';
import { unawaited } from '../kit/patience.ts';

const alice = user('alice');
const target = { userId: 'alice', clientId: 'tab', action: 'open', params: toJson({ n: 1 }) };

function invoke(core: Core, over: Partial<InvokeRequest> = {}): Promise<Invocation> {
  return core.rpc.invoke(alice, { ...target, ...over });
}

function ended(invocation: Invocation | null) {
  if (!invocation || invocation.kind === 'refused' || invocation.kind === 'ended')
    throw new Error(`refused: ${JSON.stringify(invocation)}`);
  const { outcome, execution, error, lastProvenStage } = invocation.command;
  return { kind: invocation.kind, outcome, execution, code: error?.code ?? null, lastProvenStage };
}

describe('an invocation', () => {
  it('reaches the client once, with unchanged params, and returns the unchanged result', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const params = trustJson('{ "b":1,  "a":[1e3] }');
    const call = invoke(relay.core, { params, commandId: 'c1' });
    await settle();
    expect(client.sent).toMatchObject([{ params, remainingMs: 30_000, command: { commandId: 'c1', action: 'open' } }]);
    await client.session.end('c1', { kind: 'result', payload: trustJson('{ "x" : 1 }'), error: null, refused: false });
    expect(await call).toMatchObject({
      kind: 'outcome',
      result: '{ "x" : 1 }',
      command: { outcome: 'completed', execution: 'reported_by_client' },
    });
    expect(client.sent).toHaveLength(1);
  });

  it('records its caller: an administrator by name, a user by id', async () => {
    await using relay = await testCore();
    await connect(relay.core, alice);
    await invoke(relay.core, { commandId: 'c1', waitFor: 'admitted' });
    await relay.core.rpc.invoke(admin, { ...target, commandId: 'c2', waitFor: 'admitted' });
    const recorded = ['c1', 'c2'].map((commandId) => relay.core.delivery.status(admin, { ...target, commandId }));
    expect((await Promise.all(recorded)).map((command) => command?.caller)).toEqual([
      { kind: 'user', name: 'alice' },
      { kind: 'admin', name: 'test' },
    ]);
  });

  it('that waits for admission or acknowledgement returns then, and its handle can be awaited later from anywhere', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    expect(await invoke(relay.core, { commandId: 'c1', waitFor: 'admitted' })).toMatchObject({
      kind: 'pending',
      command: { outcome: null },
    });
    const acknowledged = invoke(relay.core, { commandId: 'c2', waitFor: 'acknowledged' });
    await settle();
    await client.session.ack('c2');
    expect(await acknowledged).toMatchObject({ kind: 'pending', command: { stage: 'acknowledged' } });
    const again = relay.core.rpc.await(alice, { ...target, commandId: 'c1' });
    await client.result(client.sent[0]!.command);
    expect(await again).toMatchObject({ kind: 'outcome', result: toJson({ ok: true }) });
  });

  it('passes on the last report of progress, also if a store answers it just after the end', async () => {
    await using relay = await testCore({
      wrap: (memory) => ({
        ...memory,
        commands: {
          ...memory.commands,
          report: async (key, report) => Promise.resolve(await memory.commands.report(key, report)),
        },
      }),
    });
    const client = await connect(relay.core, alice);
    const seen: unknown[] = [];
    const call = invoke(relay.core, { commandId: 'c1', onProgress: (report) => void seen.push(report.payload) });
    await settle();
    const reported = client.session.progress('c1', trustJson('"last"'), 1);
    await client.session.end('c1', { kind: 'result', payload: null, error: null, refused: false });
    await reported;
    expect(await call).toMatchObject({ kind: 'outcome' });
    expect(seen).toEqual(['"last"']);
  });

  it('whose caller hangs up loses the waiter and never the command', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const gone = new AbortController();
    const call = invoke(relay.core, { commandId: 'c1', signal: gone.signal });
    await settle();
    gone.abort();
    expect(await call).toMatchObject({ kind: 'pending' });
    expect((await relay.core.rpc.count(alice, {})).count).toBe(0);
    await client.result(client.last);
    expect(await relay.core.rpc.await(alice, { ...target, commandId: 'c1', withinMs: 0 })).toMatchObject({
      kind: 'outcome',
      rpcId: null,
    });
  });
});

describe('the two budgets', () => {
  it('refuse an offline target at once without a connect budget, and leave no record', async () => {
    await using relay = await testCore();
    expect(await invoke(relay.core, { commandId: 'c1' })).toMatchObject({
      kind: 'refused',
      code: 'not_connected',
      by: 'target',
      commandId: 'c1',
    });
    expect(await relay.core.delivery.command(alice, { ...target, commandId: 'c1' })).toBe(null);
    expect((await relay.core.history.ofCommand(alice, 'alice', 'c1', {})).nodes).toEqual([]);
  });

  it('end a parked command as expired with connect_timeout, which proves that nothing was written', async () => {
    await using relay = await testCore();
    const call = invoke(relay.core, { connectWithinMs: 5_000 });
    await relay.clock.advance(4_999);
    expect((await relay.core.rpc.count(alice, {})).count).toBe(1);
    await relay.clock.advance(1);
    expect(ended(await call)).toEqual({
      kind: 'outcome',
      outcome: 'expired',
      execution: 'not_written',
      code: 'connect_timeout',
      lastProvenStage: 'admitted',
    });
  });

  it('deliver a parked command to its client as soon as it connects', async () => {
    await using relay = await testCore();
    const call = invoke(relay.core, { connectWithinMs: 5_000 });
    await relay.clock.advance(4_000);
    const client = await connect(relay.core, alice);
    await settle();
    expect(client.sent[0]?.remainingMs).toBe(31_000);
    await client.result(client.last);
    expect(ended(await call)).toMatchObject({ outcome: 'completed' });
  });

  it('end a dispatched command at its deadline as unknown, naming the last proven stage', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const silent = invoke(relay.core, { commandId: 'c1' });
    const acked = invoke(relay.core, { commandId: 'c2' });
    await settle();
    await client.session.ack('c2');
    await relay.clock.advance(30_000);
    const unknown = {
      kind: 'outcome',
      outcome: 'outcome_unknown',
      execution: 'may_have_run',
      code: 'response_timeout',
    };
    expect(ended(await silent)).toEqual({ ...unknown, lastProvenStage: 'dispatched' });
    expect(ended(await acked)).toEqual({ ...unknown, lastProvenStage: 'acknowledged' });
  });

  it('end a command that never left the queue as expired with queue_timeout', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    for (let i = 0; i < 32; i++) void invoke(relay.core);
    const stuck = invoke(relay.core);
    await settle();
    expect(client.sent).toHaveLength(32);
    await relay.clock.advance(30_000);
    expect(ended(await stuck)).toMatchObject({ outcome: 'expired', execution: 'not_written', code: 'queue_timeout' });
  });

  it.each([
    ['connectWithinMs', -1],
    ['connectWithinMs', 300_001],
    ['connectWithinMs', 1.5],
    ['respondWithinMs', 999],
    ['respondWithinMs', 300_001],
  ] as const)('refuse %s of %d as input', async (budget, value) => {
    await using relay = await testCore();
    await expect(invoke(relay.core, { [budget]: value })).rejects.toMatchObject({ code: 'invalid_argument' });
  });
});

describe('idempotency', () => {
  it('attaches a repeated id to the live command, then replays its outcome, and never runs it again', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const calls = [
      invoke(relay.core, { commandId: 'c1' }),
      invoke(relay.core, { commandId: 'c1', params: trustJson('{"n":1.0}') }),
    ];
    await settle();
    expect(client.sent).toHaveLength(1);
    await client.result(client.last, 7);
    for (const call of calls) expect(await call).toMatchObject({ kind: 'outcome', result: '7' });
    expect(await invoke(relay.core, { commandId: 'c1' })).toMatchObject({ kind: 'outcome', result: '7' });
    expect(client.sent).toHaveLength(1);
  });

  it.each([
    ['9007199254740992', '9007199254740993', 'another digit beyond 2^53'],
    ['1e400', '1e401', 'another power beyond a double'],
    ['{"a":1,"a":2}', '{"a":2,"a":1}', 'repeated members in another order'],
    ['"\\ud800"', '"\\ud801"', 'another half character'],
    [`"${'x'.repeat(16_384)}"`, ` "${'x'.repeat(16_384)}"`, 'another byte above 16 KiB'],
  ])('distinguishes requests that doubles or JavaScript objects would confuse: %#', async (one, other) => {
    await using relay = await testCore();
    await connect(relay.core, alice);
    void invoke(relay.core, { commandId: 'c1', params: trustJson(`{"v":${one}}`) });
    await settle();
    expect(await invoke(relay.core, { commandId: 'c1', params: trustJson(`{"v":${other}}`) })).toMatchObject({
      code: 'command_conflict',
    });
  });

  it('treats another order, spelling and white space as the same request up to 16 KiB, and compares bytes above', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const long = trustJson(`{"b":"${'x'.repeat(16_384)}","a":1}`);
    const same = [
      ['c1', trustJson('{"10":1.0,"9":"\\u0041"}'), trustJson('{ "9":"A",\n"1\\u0030":10e-1 }')],
      ['c2', long, long],
    ] as const;
    for (const [commandId, one, other] of same) {
      const calls = [invoke(relay.core, { commandId, params: one }), invoke(relay.core, { commandId, params: other })];
      await settle();
      await client.result(client.last, 7);
      for (const call of calls) expect(await call).toMatchObject({ kind: 'outcome', result: '7' });
    }
    expect(client.sent).toHaveLength(2);
  });

  it('replays although the client disconnected or no longer advertises the action', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const call = invoke(relay.core, { commandId: 'c1' });
    await settle();
    await client.result(client.last, 7);
    await call;
    await client.session.advertise([]);
    expect(await invoke(relay.core, { commandId: 'c1' })).toMatchObject({ kind: 'outcome', result: '7' });
    await client.session.closed('client_closed');
    expect(await invoke(relay.core, { commandId: 'c1' })).toMatchObject({ kind: 'outcome', result: '7' });
  });

  it('refuses an id that the relay made, while its command lives and after its end; await waits on it', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const call = invoke(relay.core);
    await settle();
    const { commandId } = client.last;
    const refusal = { kind: 'refused', code: 'command_conflict', by: 'conflict', commandId };
    expect(await invoke(relay.core, { commandId })).toMatchObject(refusal);
    const waiting = relay.core.rpc.await(alice, { ...target, commandId });
    await settle();
    await client.result(client.last, 7);
    expect(await call).toMatchObject({ kind: 'outcome', result: '7' });
    expect(await waiting).toMatchObject({ kind: 'outcome', result: '7' });
    expect(await invoke(relay.core, { commandId })).toMatchObject(refusal);
    expect(client.sent).toHaveLength(1);
  });

  it('refuses the same id for a different request', async () => {
    await using relay = await testCore();
    await connect(relay.core, alice);
    void invoke(relay.core, { commandId: 'c1' });
    await settle();
    for (const other of [{ params: toJson({ n: 2 }) }, { action: 'shut' }, { instanceId: 'i1' }]) {
      expect(await invoke(relay.core, { commandId: 'c1', ...other })).toMatchObject({
        kind: 'refused',
        code: 'command_conflict',
        by: 'conflict',
      });
    }
  });
});

describe('refusals are checked in order', () => {
  it.each([
    ['nobody', null, {}, 'unauthenticated'],
    ['a user without the scope', user('alice', 'connect'), {}, 'forbidden'],
    ['another user', user('bob'), { params: toJson({ __cooperative_site_id: 1 }) }, 'not_found'],
    ['a wrong input', alice, { action: '9', params: toJson([]) }, 'invalid_argument'],
    ['a reserved parameter', alice, { params: toJson({ __Cooperative_Site_x: 1 }) }, 'reserved_parameter'],
  ] as const)('%s is thrown as %#', async (_name, requester, over, code) => {
    await using relay = await testCore();
    await expect(relay.core.rpc.invoke(requester, { ...target, ...over })).rejects.toMatchObject({ code });
  });

  it('all wrong inputs are named at once', async () => {
    await using relay = await testCore();
    const wrong = invoke(relay.core, {
      clientId: '/',
      action: '',
      commandId: ' ',
      instanceId: 'ä',
      connectWithinMs: -1,
      respondWithinMs: 0,
      params: trustJson('['),
    });
    await expect(wrong).rejects.toMatchObject({
      details: {
        errors: [
          'client_id',
          'action',
          'command_id',
          'instance_id',
          'connect_within_ms',
          'respond_within_ms',
          'params',
        ].map((parameter) => ({ parameter })),
      },
    });
  });

  it('policy refuses before the target is read, naming its rule', async () => {
    const policy = compilePolicy({
      rules: [{ name: 'no-open', effect: 'deny', actions: ['op*'] }],
      scopes: [],
      userCapacity: null,
    });
    await using relay = await testCore({ policy });
    expect(await invoke(relay.core)).toMatchObject({
      kind: 'refused',
      code: 'policy_denied',
      by: 'policy',
      message: expect.stringContaining('no-open'),
    });
  });

  it('a live client without the action, or with another instance than the named one, is refused', async () => {
    await using relay = await testCore();
    await connect(relay.core, alice);
    expect(await invoke(relay.core, { action: 'shut' })).toMatchObject({ code: 'action_not_advertised', by: 'target' });
    expect(await invoke(relay.core, { instanceId: 'i9' })).toMatchObject({ code: 'instance_mismatch', by: 'target' });
  });

  it('an administrator may invoke for any user', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    unawaited(relay.core.rpc.invoke(admin, target));
    await settle();
    expect(client.sent).toHaveLength(1);
  });
});

describe('links', () => {
  it('hold at most 32 unended commands, and receive the next as each ends', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    for (let i = 0; i < 40; i++) void invoke(relay.core, { commandId: `c${i}` });
    await settle();
    expect(await relay.core.delivery.loads([target])).toEqual([{ inFlight: 32, queued: 8 }]);
    await client.result(client.sent[0]!.command);
    await settle();
    expect(client.sent.map(({ command }) => command.commandId).at(-1)).toBe('c32');
  });

  it('are not written to while the socket is behind', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    client.backlog = 2 ** 20;
    void invoke(relay.core);
    await settle();
    expect(client.sent).toEqual([]);
    client.backlog = 0;
    client.session.drained();
    await settle();
    expect(client.sent).toHaveLength(1);
  });

  it('are written to only after the welcome', async () => {
    await using relay = await testCore();
    const call = invoke(relay.core, { connectWithinMs: 1_000 });
    await settle();
    const sent: unknown[] = [];
    const link = {
      sendCommand: (...args: unknown[]) => void sent.push(args),
      sendCancel() {},
      backlog: () => 0,
      close() {},
    };
    const hello = {
      clientId: 'tab',
      instanceId: 'i1',
      clientType: 'web',
      metadata: null,
      actions: [advertisement('open')],
    } as const;
    const session = await relay.core.links.open(alice, hello, link);
    await settle();
    expect(sent).toEqual([]);
    session.begin();
    await settle();
    expect(sent).toHaveLength(1);
    await session.end((await relay.core.rpc.pending(alice, {}, {})).nodes[0]!.waiter.commandId, {
      kind: 'result',
      payload: null,
      error: null,
      refused: false,
    });
    expect(ended(await call)).toMatchObject({ outcome: 'completed' });
  });

  it('resume: the same instance keeps its unfinished commands, and its stored result is accepted', async () => {
    await using relay = await testCore();
    const first = await connect(relay.core, alice);
    const call = invoke(relay.core, { commandId: 'c1' });
    await settle();
    await first.session.closed('client_closed');
    const second = await connect(relay.core, alice);
    expect(second.opened).toBe('resumed');
    await settle();
    expect(second.sent).toEqual([]);
    expect(await relay.core.delivery.loads([target])).toEqual([{ inFlight: 1, queued: 0 }]);
    expect(
      await second.session.end('c1', { kind: 'result', payload: toJson(1), error: null, refused: false }),
    ).toMatchObject({ kind: 'finished' });
    expect(ended(await call)).toMatchObject({ outcome: 'completed' });
  });

  it('resume: a cancel that was requested while the link was down reaches the client', async () => {
    await using relay = await testCore();
    const first = await connect(relay.core, alice);
    void invoke(relay.core, { commandId: 'c1' });
    await settle();
    await first.session.closed('client_closed');
    expect(await relay.core.rpc.cancel(alice, { ...target, commandId: 'c1' }, null)).toMatchObject({
      state: 'requested',
    });
    const second = await connect(relay.core, alice);
    expect(second.cancels).toEqual(['c1']);
  });

  it('resume: a cancel that is requested before the client is welcomed is sent after the welcome', async () => {
    await using relay = await testCore();
    const first = await connect(relay.core, alice);
    void invoke(relay.core, { commandId: 'c1' });
    await settle();
    await first.session.closed('client_closed');
    const second = await connect(relay.core, alice, {}, false);
    expect(await relay.core.rpc.cancel(alice, { ...target, commandId: 'c1' }, null)).toMatchObject({
      state: 'requested',
    });
    await settle();
    expect(second.cancels).toEqual([]);
    second.session.begin();
    expect(second.cancels).toEqual(['c1']);
  });

  it('replacement: the old link is closed, its undispatched commands move on, its dispatched ones are unknown after the grace', async () => {
    await using relay = await testCore();
    const old = await connect(relay.core, alice);
    old.backlog = 0;
    const ran = invoke(relay.core, { commandId: 'ran' });
    await settle();
    old.backlog = 2 ** 20;
    const waits = invoke(relay.core, { commandId: 'waits' });
    await settle();
    const fresh = await connect(relay.core, alice, { instanceId: 'i2' });
    expect(old.closes).toEqual([{ cause: 'replaced', instanceId: 'i2' }]);
    await settle();
    expect(fresh.sent.map(({ command }) => command.commandId)).toEqual(['waits']);
    await relay.clock.advance(4_999);
    expect((await relay.core.rpc.count(alice, {})).count).toBe(2);
    await relay.clock.advance(1);
    expect(ended(await ran)).toMatchObject({ outcome: 'outcome_unknown', code: 'instance_replaced' });
    await fresh.result(fresh.last);
    expect(ended(await waits)).toMatchObject({ outcome: 'completed' });
    expect(await relay.core.connections.get(alice, target)).toMatchObject({
      instanceId: 'i2',
      replacedInstanceId: 'i1',
      disconnectedAt: null,
    });
  });

  it('an answer of the replaced instance counts within the grace; one of the new instance never does', async () => {
    await using relay = await testCore();
    const old = await connect(relay.core, alice);
    const call = invoke(relay.core, { commandId: 'c1' });
    await settle();
    const fresh = await connect(relay.core, alice, { instanceId: 'i2' });
    const end = { kind: 'result', payload: toJson(1), error: null, refused: false } as const;
    expect(await fresh.session.end('c1', end)).toMatchObject({ kind: 'fenced' });
    expect(await old.session.end('c1', end)).toMatchObject({ kind: 'finished' });
    expect(ended(await call)).toMatchObject({ outcome: 'completed' });
  });
});

describe('cancel', () => {
  it('before dispatch proves that nothing will be written', async () => {
    await using relay = await testCore();
    const call = invoke(relay.core, { commandId: 'c1', connectWithinMs: 9_000 });
    await settle();
    expect(await relay.core.rpc.cancel(alice, { ...target, commandId: 'c1' }, 'enough')).toMatchObject({
      state: 'cancelled',
    });
    expect(ended(await call)).toMatchObject({ outcome: 'cancelled', execution: 'not_written' });
  });

  it('after dispatch reaches the client, whose answer is the end', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const call = invoke(relay.core, { commandId: 'c1' });
    await settle();
    expect(await relay.core.rpc.cancel(alice, { ...target, commandId: 'c1' }, null)).toMatchObject({
      state: 'requested',
    });
    await settle();
    expect(client.cancels).toEqual(['c1']);
    await client.session.end('c1', { kind: 'cancelled', payload: toJson('half'), error: null, refused: false });
    expect(await call).toMatchObject({
      kind: 'outcome',
      result: '"half"',
      command: { outcome: 'cancelled', execution: 'reported_by_client' },
    });
    expect(await relay.core.rpc.cancel(alice, { ...target, commandId: 'c1' }, null)).toMatchObject({
      state: 'too_late',
    });
  });

  it('of a foreign or absent command answers the same null', async () => {
    await using relay = await testCore();
    await connect(relay.core, alice);
    void invoke(relay.core, { commandId: 'c1' });
    await settle();
    expect(await relay.core.rpc.cancel(user('bob'), { ...target, commandId: 'c1' }, null)).toBe(null);
    expect(await relay.core.rpc.cancel(alice, { ...target, commandId: 'none' }, null)).toBe(null);
  });
});

describe('shutdown', () => {
  it('draining refuses new commands, lets those in flight finish, then closes the links', async () => {
    await using relay = await testCore();
    const client = await connect(relay.core, alice);
    const call = invoke(relay.core, { commandId: 'c1' });
    await settle();
    const drained = relay.core.drain(10_000);
    expect(await invoke(relay.core)).toMatchObject({ kind: 'refused', code: 'draining', by: 'relay' });
    expect(() => relay.core.ready()).toThrow('draining');
    expect(client.closes).toEqual([]);
    await client.result(client.last);
    expect(client.closes).toEqual([]);
    await relay.clock.advance(100);
    await drained;
    expect(ended(await call)).toMatchObject({ outcome: 'completed' });
    expect(client.closes).toEqual([{ cause: 'node_drained', instanceId: null }]);
  });

  it('closing tells every caller that still waits what is proven', async () => {
    const relay = await testCore();
    await connect(relay.core, alice);
    const running = invoke(relay.core);
    const parked = invoke(relay.core, { clientId: 'other', connectWithinMs: 9_000 });
    await settle();
    await relay.core.close();
    expect(ended(await running)).toMatchObject({ outcome: 'outcome_unknown', code: 'node_lost' });
    expect(ended(await parked)).toMatchObject({ outcome: 'expired', code: 'node_lost' });
  });
});
