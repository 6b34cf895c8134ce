/** Tests a client that announces that it leaves, while dispatches are under way. */
import { describe, expect, it } from 'vitest';
import type { MemoryBackend } from '../../src/backends/memory/backend.ts';
import type { CommandStore, DispatchResult } from '../../src/core/commands/command-store.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { BACK_PRESSURE_BYTES, LEAVING_LINKS } from '../../src/core/limits.ts';
import type { MaybePromise } from '../../src/core/maybe-promise.ts';
import { settle } from '../kit/clock.ts';
import { admin, connect, testCore, user, type TestClient, type TestCore } from '../kit/core.ts';

const alice = user('alice');
const KEY = { userId: 'alice', clientId: 'tab' };
const CALL = { ...KEY, action: 'open', params: null } as const;
const completed = { kind: 'outcome', command: { outcome: 'completed', attempts: 1 } };

const invoke = ({ core }: TestCore, commandId: string) => core.rpc.invoke(alice, { ...CALL, commandId });
const ids = ({ sent }: TestClient): readonly string[] => sent.map(({ command }) => command.commandId);

/** Announces that the client leaves. `answer` is undefined until the relay answers. */
function leaving(client: TestClient): { answer: readonly string[] | undefined } {
  const seen: { answer: readonly string[] | undefined } = { answer: undefined };
  void client.session.leave().then((commands) => (seen.answer = commands));
  return seen;
}

type Step = () => void;
type Slow = TestCore & AsyncDisposable & { readonly steps: { reach: Step; answer: Step }[] };

/**
 * Opens a core whose store answers a dispatch in two steps, both controlled by the test: the request arrives, and the
 * answer returns.
 */
async function slowCore(): Promise<Slow> {
  const steps: Slow['steps'] = [];
  const slow =
    (commands: CommandStore): CommandStore['dispatch'] =>
    (key, binding, attempt) => {
      const { promise, resolve } = Promise.withResolvers<DispatchResult>();
      let result: MaybePromise<DispatchResult> = { kind: 'skip' };
      const reach = () => void (result = commands.dispatch(key, binding, attempt));
      steps.push({ reach, answer: () => resolve(result) });
      return promise;
    };
  const wrap = (backend: MemoryBackend): MemoryBackend => ({
    ...backend,
    commands: { ...backend.commands, dispatch: slow(backend.commands) },
  });
  return { ...(await testCore({ wrap })), steps };
}

describe('a client that leaves while dispatches are under way', () => {
  it.each([true, false])(
    'receives the commands that the store has dispatched, and gets their ids (reached before: %s)',
    async (before) => {
      await using test = await slowCore();
      const client = await connect(test.core, alice);
      const calls = [invoke(test, 'c1'), invoke(test, 'c2')];
      await settle();
      if (before) for (const { reach } of test.steps) reach();
      const left = leaving(client);
      await settle();
      expect([left.answer, ids(client)]).toEqual([undefined, []]);
      for (const { reach, answer } of test.steps) {
        if (!before) reach();
        answer();
      }
      await settle();
      expect([left.answer, ids(client)]).toEqual([
        ['c1', 'c2'],
        ['c1', 'c2'],
      ]);
      for (const { command } of client.sent) await client.result(command);
      for (const call of calls) expect(await call).toMatchObject(completed);
    },
  );

  it('does not receive a command that ended before the store answered, nor its id', async () => {
    await using test = await slowCore();
    const client = await connect(test.core, alice);
    const call = invoke(test, 'c1');
    await settle();
    const left = leaving(client);
    await test.core.rpc.cancel(alice, { ...KEY, commandId: 'c1' }, null);
    for (const { reach, answer } of test.steps) [reach, answer].forEach((step) => step());
    await settle();
    expect([left.answer, ids(client)]).toEqual([[], []]);
    expect(await call).toMatchObject({ command: { outcome: 'cancelled' } });
  });

  it('is answered after everything held for its socket is written', async () => {
    await using test = await slowCore();
    const client = await connect(test.core, alice);
    void invoke(test, 'c1');
    void invoke(test, 'c2');
    await settle();
    client.backlog = BACK_PRESSURE_BYTES;
    for (const { reach, answer } of test.steps) [reach, answer].forEach((step) => step());
    const left = leaving(client);
    await settle();
    expect([left.answer, ids(client)]).toEqual([undefined, []]);
    expect(await test.core.connections.get(alice, KEY)).toMatchObject({ disconnectCause: 'client_closed' });
    await test.core.rpc.cancel(alice, { ...KEY, commandId: 'c2' }, 'enough');
    client.backlog = 0;
    client.session.drained();
    await settle();
    expect([left.answer, ids(client), client.cancels]).toEqual([['c1', 'c2'], ['c1', 'c2'], ['c2']]);
  });

  it('is answered at once when its socket closes, and nothing is written', async () => {
    await using test = await slowCore();
    const client = await connect(test.core, alice);
    void invoke(test, 'c1');
    await settle();
    const left = leaving(client);
    await client.session.closed('client_closed');
    await settle();
    expect(left.answer).toEqual(['c1']);
    expect(test.counts.get('links_closed:client_closed')).toBe(1);
  });
});

describe('a store that is unavailable while a client leaves', () => {
  it('delays the answer until the result of a lost dispatch is known, and written', async () => {
    let away = false;
    const lossy =
      (commands: CommandStore): CommandStore['dispatch'] =>
      async (key, binding, attempt) => {
        const before = known.get(`${attempt}`);
        const result = before ?? (await commands.dispatch(key, binding, attempt));
        known.set(`${attempt}`, result);
        if (away) throw new CallboardError('store_unavailable', 'The store does not answer.');
        // Like a shared store, this one answers a repeated attempt only for the bound link.
        return (await bound()) ? result : { kind: 'skip' };
      };
    const known = new Map<string, DispatchResult>();
    await using test = await testCore({
      wrap: (backend) => ({ ...backend, commands: { ...backend.commands, dispatch: lossy(backend.commands) } }),
    });
    const bound = async () => (await test.core.connections.get(alice, KEY))?.disconnectedAt === null;
    const client = await connect(test.core, alice);
    away = true;
    const call = invoke(test, 'c1');
    await settle();
    const left = leaving(client);
    await test.clock.advance(2_000);
    expect(left.answer).toBeUndefined();
    away = false;
    await test.clock.advance(1_000);
    expect([left.answer, ids(client)]).toEqual([['c1'], ['c1']]);
    await client.result(client.last);
    expect(await call).toMatchObject(completed);
  });

  it('lets the client ask again if it cannot answer', async () => {
    let full = true;
    await using test = await testCore({
      wrap: (backend) => ({
        ...backend,
        connections: {
          ...backend.connections,
          disconnect: (...requested) => {
            if (full) throw new Error('no room');
            return backend.connections.disconnect(...requested);
          },
        },
      }),
    });
    const client = await connect(test.core, alice);
    await expect(client.session.leave()).rejects.toThrow('no room');
    full = false;
    expect(await client.session.leave()).toEqual([]);
    expect(await test.core.connections.get(alice, KEY)).toMatchObject({ disconnectCause: 'client_closed' });
  });
});

describe('a link whose client is leaving', () => {
  it('still counts among the node’s links, with its running commands, until its socket closes', async () => {
    await using test = await testCore();
    const client = await connect(test.core, alice);
    const call = invoke(test, 'c1');
    await settle();
    await client.session.leave();
    await connect(test.core, alice, { instanceId: 'i2' });
    await test.clock.advance(2_000);
    const node = async () => (await test.core.delivery.nodes(admin, { first: 1 })).nodes[0];
    expect(await node()).toMatchObject({ links: 2, unfinishedCommands: 1 });
    expect(client.closes).toEqual([]);
    await client.result(client.last);
    await client.session.closed('client_closed');
    await test.clock.advance(2_000);
    expect(await node()).toMatchObject({ links: 1, unfinishedCommands: 0 });
    expect(await call).toMatchObject(completed);
  });

  it('is closed when its client leaves too many links', async () => {
    await using test = await testCore();
    const clients: TestClient[] = [];
    for (let n = 0; n < LEAVING_LINKS + 2; n++) {
      const client = await connect(test.core, alice, { instanceId: `i${n}` });
      await client.session.leave();
      clients.push(client);
    }
    const replaced = [{ cause: 'replaced', instanceId: null }];
    const none = Array<[]>(LEAVING_LINKS).fill([]);
    expect(clients.map(({ closes }) => closes)).toEqual([replaced, replaced, ...none]);
  });

  it('records signs of life without checking whether it is bound', async () => {
    await using test = await testCore();
    const client = await connect(test.core, alice);
    await client.session.leave();
    expect(await client.session.alive()).toBe(true);
    const row = await test.core.connections.get(alice, KEY);
    await test.clock.advance(30_000);
    await client.session.alive();
    expect(await test.core.connections.get(alice, KEY)).toEqual(row);
  });

  it('is closed with all others when the node loses its store, and its commands end as unknown', async () => {
    let lost: ((cause: 'store_lost') => Promise<void>) | undefined;
    await using test = await testCore({
      wrap: (backend) => ({
        ...backend,
        nodes: {
          ...backend.nodes,
          attach: (nodeId, listener) => {
            lost = (cause) => listener.lost(cause);
            return backend.nodes.attach(nodeId, listener);
          },
        },
      }),
    });
    const client = await connect(test.core, alice);
    const call = invoke(test, 'c1');
    await settle();
    await client.session.leave();
    await lost?.('store_lost');
    expect(client.closes).toMatchObject([{ cause: 'node_lost' }]);
    expect(await call).toMatchObject({ command: { outcome: 'outcome_unknown', reason: 'store_lost' } });
  });
});
