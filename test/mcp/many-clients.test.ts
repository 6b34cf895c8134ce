/** Tests what agents are told if their user has more clients than are searched, and how often clients are read. */
import { beforeAll, describe, expect, it, afterAll } from 'vitest';
import { AGENT_CLIENTS } from '../../src/core/limits.ts';
import { silentLog } from '../../src/core/ports.ts';
import { trustJson } from '../../src/core/json.ts';
import { runBuiltin } from '../../src/mcp/builtin-tools.ts';
import { createCalls, liveClients, type AgentRequest } from '../../src/mcp/calls.ts';
import type { ToolResult } from '../../src/mcp/results.ts';
import { advertisement, connect, testCore, user, type TestClient, type TestCore } from '../kit/core.ts';
import { textOf } from './kit/agents.ts';

const alice = user('alice', 'connect', 'invoke', 'mcp');

/** Connects the client of this number: the first and each thousandth have the action `open`, all have `wait`. */
async function join({ core }: TestCore, n: number): Promise<TestClient> {
  const names = n % AGENT_CLIENTS === 0 ? ['open', 'wait'] : ['wait'];
  const clientId = `c${String(n).padStart(5, '0')}`;
  return connect(core, alice, { clientId, instanceId: `i${n}`, actions: names.map(advertisement) });
}

/** Calls a built-in tool. */
async function call({ core }: TestCore, name: string, args: object = {}): Promise<ToolResult> {
  const request: AgentRequest = {
    ...{ requester: alice, host: null, trace: undefined, notes: undefined, idempotencyKey: null, progress: null },
    signal: new AbortController().signal,
    clients: () => liveClients(core, alice),
    tells() {},
  };
  const parts = { core, calls: createCalls(core, silentLog) };
  const asked = { name, args: trustJson(JSON.stringify(args)), request, tools: async () => [] };
  const result = await runBuiltin(parts, asked);
  if (!result) throw new Error('there is no such tool');
  return result;
}

let relay: TestCore & AsyncDisposable;
let first: TestClient;
let unseen: TestClient;

async function complete(client: TestClient, answer: Promise<ToolResult>): Promise<ToolResult> {
  await expect.poll(() => client.sent.length).toBe(1);
  await client.result(client.last);
  return answer;
}

describe('with as many clients as are searched', () => {
  beforeAll(async () => {
    relay = await testCore();
    first = await join(relay, 0);
    for (let n = 1; n < AGENT_CLIENTS; n++) await join(relay, n);
  });

  it('nothing is said of others, and the only one that offers an action runs it', async () => {
    for (const [tool, args] of [
      ['list_clients', {}],
      ['find_actions', {}],
      ['describe_action', { action: 'wait' }],
    ] as const)
      expect((await call(relay, tool, args)).structuredContent).not.toHaveProperty('more_clients');
    const done = await complete(first, call(relay, 'call_action', { action: 'open' }));
    expect(done.structuredContent).toEqual({ ok: true });
  });
});

describe('with more clients than are searched', () => {
  beforeAll(async () => {
    unseen = await join(relay, AGENT_CLIENTS);
  });
  afterAll(() => relay[Symbol.asyncDispose]());

  it('the answers of tools say so', async () => {
    const listed = (await call(relay, 'list_clients')).structuredContent;
    expect(listed).toMatchObject({ more_clients: true, note: expect.stringContaining('only the first 1000') });
    expect(listed?.['clients']).toHaveLength(AGENT_CLIENTS);
    for (const [tool, args] of [
      ['find_actions', {}],
      ['describe_action', { action: 'wait' }],
    ] as const)
      expect((await call(relay, tool, args)).structuredContent).toMatchObject({ more_clients: true });
    const none = textOf(await call(relay, 'describe_action', { action: 'absent' }));
    expect(none).toMatch(/^not_connected: None of the first 1000 clients /);
  });

  it('no client is chosen for a call, because one that was not searched may offer the action too', async () => {
    expect(textOf(await call(relay, 'call_action', { action: 'open' }))).toMatch(
      /^ambiguous_client: Of the first 1000 clients, 1 clients offer [^]*not searched\.\nNothing ran\./,
    );
    expect(textOf(await call(relay, 'call_action', { action: 'absent' }))).toMatch(
      /^ambiguous_client: Of the first 1000 clients, 0 clients offer the action "absent"\. /,
    );
    expect(unseen.sent).toEqual([]);
  });

  it('each of them is reached by its id', async () => {
    const client = 'c01000';
    const described = await call(relay, 'describe_action', { action: 'open', client });
    expect(described.structuredContent).toMatchObject({ clients: [{ client }], clients_in_all: 1 });
    const done = await complete(unseen, call(relay, 'call_action', { action: 'open', client }));
    expect(done.structuredContent).toEqual({ ok: true });
  });
});
