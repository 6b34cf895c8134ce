/**
 * Tests what agents are told when the store or the relay fails during a request: that the action may have run if the
 * call had begun, and only then. The store is one in memory, of which a test makes one method fail.
 */
import { describe, expect, it } from 'vitest';
import type { MemoryBackend } from '../../src/backends/memory/backend.ts';
import { CallboardError } from '../../src/core/errors.ts';
import { RESPOND_WITHIN_MS } from '../../src/core/limits.ts';
import type { Log } from '../../src/core/ports.ts';
import { settle } from '../kit/clock.ts';
import { admin, connect, testCore, user, type TestClient, type TestCore } from '../kit/core.ts';
import { inMemory, textOf, type Agent } from './kit/agents.ts';

type Failing = { readonly port: 'connections' | 'commands' | 'waiters'; readonly method: string };
type Line = { readonly level: string; readonly message: string; readonly fields: Readonly<Record<string, unknown>> };

type At = TestCore & {
  readonly tab: TestClient;
  readonly agent: Agent;
  readonly lines: readonly Line[];
  /** The error that the method throws, and whether it does its work before. Null: it works. */
  readonly world: { fault: Error | null; afterwards: boolean };
};

const away = (): Error => new CallboardError('store_unavailable', 'The store does not answer.');
const defect = (): Error => new Error('a defect');

/** Opens a core with a client and an agent of alice. One method of its store fails when the test says so. */
async function start({ port, method }: Failing): Promise<At & AsyncDisposable> {
  const world: At['world'] = { fault: null, afterwards: false };
  const wrap = (backend: MemoryBackend): MemoryBackend => {
    const store = backend[port] as unknown as Readonly<Record<string, (...args: unknown[]) => unknown>>;
    const working = store[method];
    if (!working) throw new Error(`there is no method ${method}`);
    const failing = (...args: unknown[]): unknown => {
      const answer = world.fault === null || world.afterwards ? working.apply(store, args) : null;
      if (world.fault !== null) throw world.fault;
      return answer;
    };
    return { ...backend, [port]: { ...backend[port], [method]: failing } };
  };
  const lines: Line[] = [];
  const at = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) =>
    void lines.push({ level, message, fields });
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  const relay = await testCore({ wrap, log });
  const tab = await connect(relay.core, user('alice'));
  const agent = await inMemory('SDK 2 at 2026-07-28', { core: relay.core, log });
  const close = async (): Promise<void> => {
    world.fault = null;
    await agent[Symbol.asyncDispose]();
    await relay[Symbol.asyncDispose]();
  };
  return { ...relay, tab, agent, lines, world, [Symbol.asyncDispose]: close };
}

const failuresIn = ({ lines }: At): readonly Line[] =>
  lines.filter(({ message }) => message === 'a request of an agent failed');

/** Lets the client complete the only command that it got, and returns the answer to the identical call. */
async function completeAgain({ tab, agent }: At): Promise<string> {
  const again = agent.call('open');
  await expect.poll(() => tab.sent.length).toBe(1);
  await tab.result(tab.last);
  return textOf(await again);
}

describe('a failure before a call has begun', () => {
  it.each([
    ['connections', 'list', 'open'],
    ['commands', 'mark', 'open'],
    ['connections', 'list', 'call_action'],
  ] as const)('of %s.%s: nothing ran by %s, and the answer says so', async (port, method, tool) => {
    await using at = await start({ port, method });
    const args = tool === 'call_action' ? { action: 'open' } : {};
    at.world.fault = away();
    const unavailable = textOf(await at.agent.call(tool, args));
    expect(unavailable).toMatch(/^store_unavailable: The store does not answer\.\nNothing ran\.\n/);
    expect(failuresIn(at)).toEqual([]);
    at.world.fault = defect();
    expect(textOf(await at.agent.call(tool, args))).toBe(
      'internal: The relay failed.\nNothing ran.\nRepeat the request later.',
    );
    expect(failuresIn(at)).toMatchObject([{ level: 'error', fields: { err: at.world.fault, tool } }]);
    expect(at.tab.sent).toEqual([]);
    at.world.fault = null;
    expect(await completeAgain(at)).toBe('{"ok":true}');
  });
});

describe('a failure after a call has begun', () => {
  it.each([
    ['store_unavailable', away],
    ['internal', defect],
  ])('%s: the answer says that it may have run, and the identical call gets the result', async (code, fault) => {
    await using at = await start({ port: 'commands', method: 'admit' });
    at.world.fault = fault();
    at.world.afterwards = true;
    const said = textOf(await at.agent.call('open'));
    expect(said).toMatch(new RegExp(`^${code}: [^]*\\nIt MAY HAVE RUN: it is not known whether `));
    expect(said).not.toContain('Nothing ran');
    expect(said).not.toContain('a defect');
    expect(failuresIn(at).map(({ fields }) => [fields['err'], fields['action']])).toEqual(
      code === 'internal' ? [[at.world.fault, 'open']] : [],
    );
    at.world.fault = null;
    const answer = await completeAgain(at);
    expect(answer).toMatch(/^This call did not run the action again[^]*\n\n\{"ok":true\}$/);
    expect(at.tab.sent).toHaveLength(1);
  });

  it('nothing was admitted: the identical call runs', async () => {
    await using at = await start({ port: 'commands', method: 'admit' });
    at.world.fault = away();
    expect(textOf(await at.agent.call('open'))).toContain('MAY HAVE RUN');
    expect(at.tab.sent).toEqual([]);
    at.world.fault = null;
    expect(await completeAgain(at)).toBe('{"ok":true}');
  });

  it('invalid input is refused, and nothing ran', async () => {
    await using at = await start({ port: 'commands', method: 'admit' });
    const said = textOf(await at.agent.call('open', { respond_within_ms: 5 }));
    expect(said).toMatch(/^invalid_argument: respond_within_ms: [^]*\nNothing ran\.\n/);
    expect(at.tab.sent).toEqual([]);
  });
});

describe('a failure of a tool that calls no action', () => {
  it.each([
    ['list_clients', {}, 'connections', 'list'],
    ['preflight', { action: 'open', client: 'tab' }, 'commands', 'preview'],
    ['get_command', { command_id: 'c1', client: 'tab' }, 'commands', 'get'],
    ['await_command', { command_id: 'c1', client: 'tab' }, 'waiters', 'attach'],
    ['cancel_command', { command_id: 'c1', client: 'tab' }, 'commands', 'get'],
  ] as const)('%s says nothing about what ran', async (tool, args, port, method) => {
    await using at = await start({ port, method });
    at.world.fault = away();
    const unavailable = textOf(await at.agent.call(tool, args));
    expect(unavailable).toBe('store_unavailable: The store does not answer.\nRepeat the request later.');
    at.world.fault = defect();
    expect(textOf(await at.agent.call(tool, args))).toBe('internal: The relay failed.\nRepeat the request later.');
    expect(failuresIn(at)).toMatchObject([{ level: 'error', fields: { err: at.world.fault, tool } }]);
  });
});

describe('a call that its agent cancels', () => {
  it('ends at its deadline if it cannot be cancelled, and the log says why', async () => {
    await using at = await start({ port: 'commands', method: 'settle' });
    const hungUp = new AbortController();
    const answer = at.agent.call('open', {}, { signal: hungUp.signal }).catch(() => null);
    await expect.poll(() => at.tab.sent.length).toBe(1);
    at.world.fault = away();
    hungUp.abort();
    await answer;
    await expect.poll(async () => (await at.core.rpc.count(admin, {})).count).toBe(0);
    await settle();
    expect(at.lines.filter(({ message }) => message.includes('hung up'))).toMatchObject([
      { level: 'debug', fields: { err: at.world.fault } },
    ]);
    at.world.fault = null;
    expect(at.tab.cancels).toEqual([]);
    await at.clock.advance(RESPOND_WITHIN_MS.default);
    await settle();
    expect(await at.core.delivery.status(admin, at.tab.last)).toMatchObject({ outcome: 'outcome_unknown' });
  });
});
