/** Tests calls that name a context of their client: from the admission to the link, and in the records. */
import { describe, expect, it } from 'vitest';
import { ANY_COMMAND } from '../../src/core/commands/delivery-inspector.ts';
import { ANY_WAIT } from '../../src/core/commands/waiter-store.ts';
import type { ContextReport } from '../../src/core/contexts/context.ts';
import type { Invocation, InvokeRequest } from '../../src/core/core.ts';
import { BACK_PRESSURE_BYTES } from '../../src/core/limits.ts';
import { context, delta, report, snapshot } from '../contract/kit/contexts-model.ts';
import { settle } from '../kit/clock.ts';
import { admin, connect, testCore, user, type TestClient, type TestCore } from '../kit/core.ts';

const alice = user('alice');
const CALL = { userId: 'alice', clientId: 'tab', action: 'open', params: null, contextId: 't1' } as const;
const GONE = { kind: 'refused', code: 'context_gone', by: 'place' };
const UNWRITTEN = { outcome: 'expired', execution: 'not_written', error: { code: 'context_gone' } };

function invoke({ core }: TestCore, over: Partial<InvokeRequest> = {}): Promise<Invocation> {
  return core.rpc.invoke(alice, { ...CALL, ...over });
}

/** Connects a client that knows places and reports the context `t1`. */
async function online({ core }: TestCore, over: Parameters<typeof connect>[2] = {}): Promise<TestClient> {
  const client = await connect(core, alice, { places: true, ...over });
  await client.session.report(report(snapshot(context('t1'))));
  return client;
}

/** Connects a client whose socket takes no further command. */
async function behind(relay: TestCore): Promise<TestClient> {
  const client = await online(relay);
  client.backlog = BACK_PRESSURE_BYTES;
  return client;
}

const leave: ContextReport = report(delta([], 't1'));
const ids = ({ sent }: TestClient): readonly string[] => sent.map(({ command }) => command.commandId);

describe('a call that names a context', () => {
  it('reaches the client with the name of the context, and its record keeps it', async () => {
    await using relay = await testCore();
    const client = await online(relay);
    const ended = invoke(relay, { commandId: 'c1' });
    await settle();
    expect(client.last).toMatchObject({ commandId: 'c1', contextId: 't1' });
    await client.result(client.last);
    expect(await ended).toMatchObject({ kind: 'outcome', command: { outcome: 'completed', contextId: 't1' } });
  });

  it('is refused, and leaves no record, where the client does not report the context or knows no places', async () => {
    await using relay = await testCore();
    const client = await online(relay);
    expect(await invoke(relay, { commandId: 'c1', contextId: 't2' })).toMatchObject(GONE);
    await client.session.report(leave);
    expect(await invoke(relay, { commandId: 'c1' })).toMatchObject(GONE);
    await client.session.report(report(delta([context('t1')])));
    expect(await invoke(relay, { commandId: 'c1' })).toMatchObject(GONE);
    await connect(relay.core, alice, { clientId: 'old' });
    expect(await invoke(relay, { clientId: 'old' })).toMatchObject({ code: 'context_unsupported', by: 'place' });
    expect(await relay.core.delivery.command(alice, { userId: 'alice', clientId: 'tab', commandId: 'c1' })).toBeNull();
    expect([client.sent, relay.counts.get('commands_refused:context_gone')]).toEqual([[], 3]);
  });

  it('is not written once its context has left while it waited, and ends with the proof that nothing ran', async () => {
    await using relay = await testCore();
    const client = await behind(relay);
    const [named, other] = [invoke(relay, { commandId: 'c1' }), invoke(relay, { commandId: 'c2', contextId: null })];
    await settle();
    await client.session.report(leave);
    await client.session.report(report(delta([context('t1')])));
    client.backlog = 0;
    client.session.drained();
    expect(await named).toMatchObject({ kind: 'outcome', command: UNWRITTEN });
    expect(ids(client)).toEqual(['c2']);
    await client.result(client.last);
    expect(await other).toMatchObject({ command: { outcome: 'completed' } });
    expect(relay.counts.get('commands_ended:expired')).toBe(1);
  });

  it('goes to no other instance of the client, even if that one reports a context with the same id', async () => {
    await using relay = await testCore();
    await behind(relay);
    const queued = invoke(relay, { commandId: 'c1' });
    await settle();
    const second = await online(relay, { instanceId: 'i2' });
    await settle();
    expect(await relay.backend.commands.get([{ userId: 'alice', clientId: 'tab', commandId: 'c1' }])).toMatchObject([
      UNWRITTEN,
    ]);
    expect(second.sent).toEqual([]);
    await relay.clock.advance(30_000);
    expect(await queued).toMatchObject({ command: UNWRITTEN });
  });

  it('is never written to a link of the same instance that knows no places any more', async () => {
    await using relay = await testCore();
    await behind(relay);
    const queued = invoke(relay);
    await settle();
    const again = await connect(relay.core, alice, { places: false });
    expect(await queued).toMatchObject({ command: { ...UNWRITTEN, error: { code: 'context_unsupported' } } });
    expect(again.sent).toEqual([]);
  });

  it('waits for the next link of the instance, on which the context need not be reported again', async () => {
    await using relay = await testCore();
    const client = await online(relay);
    await client.session.closed('lost');
    const parked = invoke(relay, { connectWithinMs: 5_000 });
    expect(await invoke(relay, { contextId: 't2', connectWithinMs: 5_000 })).toMatchObject(GONE);
    await settle();
    const again = await connect(relay.core, alice, { places: true });
    await settle();
    expect(again.last).toMatchObject({ contextId: 't1' });
    await again.result(again.last);
    expect(await parked).toMatchObject({ command: { outcome: 'completed' } });
  });

  it('is the same call only with the same context', async () => {
    await using relay = await testCore();
    const client = await online(relay);
    await client.session.report(report(delta([context('t2')])));
    const admitted = { commandId: 'c1', waitFor: 'admitted' } as const;
    expect(await invoke(relay, admitted)).toMatchObject({ kind: 'pending' });
    expect(await invoke(relay, admitted)).toMatchObject({ kind: 'pending', command: { commandId: 'c1' } });
    for (const contextId of ['t2', null])
      expect(await invoke(relay, { ...admitted, contextId })).toMatchObject({ code: 'command_conflict' });
    await client.session.report(leave);
    expect(await invoke(relay, admitted)).toMatchObject({ kind: 'pending', command: { commandId: 'c1' } });
  });

  it('is found by its context, and so is a wait for it', async () => {
    await using relay = await testCore();
    await online(relay);
    void invoke(relay, { commandId: 'c1' });
    void invoke(relay, { commandId: 'c2', contextId: null });
    await settle();
    const { delivery, rpc } = relay.core;
    const found = async (contextId: string) => [
      (await delivery.commands(admin, { contextId }, { first: 10 })).nodes.map(({ commandId }) => commandId),
      (await rpc.pending(admin, { contextId }, { first: 10 })).nodes.map(({ waiter }) => waiter.commandId),
    ];
    expect(await found('t1')).toEqual([['c1'], ['c1']]);
    expect(await found('t2')).toEqual([[], []]);
    expect([ANY_COMMAND.contextId, ANY_WAIT.contextId]).toEqual([null, null]);
    await expect(delivery.commands(admin, { contextId: 'no id' }, { first: 1 })).rejects.toThrow('context_id');
  });
});

describe('a call with a label', () => {
  const callerLabel = { kind: 'mcp', name: 'a host\u0007', version: '2.1' } as const;

  it('names the program in the records of the command and of its waits, and both find it', async () => {
    await using relay = await testCore();
    const client = await online(relay);
    const ended = invoke(relay, { commandId: 'mcp-1', callerLabel });
    await settle();
    const caller = { kind: 'user', name: 'alice', label: { ...callerLabel, name: 'a host' } };
    const { delivery, rpc } = relay.core;
    for (const filter of [{ callerKind: 'mcp' }, { caller: 'a host' }, { caller: 'alice' }] as const) {
      expect((await delivery.commands(admin, filter, { first: 10 })).nodes).toMatchObject([{ caller }]);
      expect((await rpc.pending(admin, filter, { first: 10 })).nodes).toMatchObject([{ waiter: { caller } }]);
    }
    expect((await delivery.commands(admin, { caller: 'another' }, { first: 10 })).nodes).toEqual([]);
    await client.result(client.last);
    expect(await ended).toMatchObject({ command: { caller } });
  });

  it('is the only one that may have a reserved id', async () => {
    await using relay = await testCore();
    await online(relay);
    await expect(invoke(relay, { commandId: 'mcp-1' })).rejects.toMatchObject({
      code: 'invalid_argument',
      message: expect.stringContaining('command_id'),
    });
    const admitted = { commandId: 'mcp-1', waitFor: 'admitted' } as const;
    expect(await invoke(relay, { ...admitted, callerLabel })).toMatchObject({ kind: 'pending' });
  });
});
