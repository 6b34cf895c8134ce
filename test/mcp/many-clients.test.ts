/**
 * Tests what agents are told if their user has more clients than are searched: by the list of tools, by each tool that
 * looks at clients, and by the refusals of calls.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AGENT_CLIENTS } from '../../src/core/limits.ts';
import type { ToolResult } from '../../src/mcp/results.ts';
import { MORE_META } from '../../src/mcp/server.ts';
import { advertisement, connect, testCore, user, type TestClient, type TestCore } from '../kit/core.ts';
import { inMemory, textOf, type Agent } from './kit/agents.ts';

const alice = user('alice', 'connect', 'invoke', 'mcp');

let relay: TestCore & AsyncDisposable;
let agent: Agent;
let first: TestClient;

beforeAll(async () => {
  relay = await testCore();
  first = await join(0, 'open', 'wait');
  for (let n = 1; n < AGENT_CLIENTS; n++) await join(n, 'wait');
  agent = await inMemory('SDK 1', relay);
});

afterAll(async () => {
  await agent[Symbol.asyncDispose]();
  await relay[Symbol.asyncDispose]();
});

/** Connects the client of this number with these actions. */
function join(n: number, ...actions: readonly string[]): Promise<TestClient> {
  const clientId = `c${String(n).padStart(5, '0')}`;
  return connect(relay.core, alice, { clientId, instanceId: `i${n}`, actions: actions.map(advertisement) });
}

/** Lets the client complete the command of a call. */
async function complete(client: TestClient, answer: Promise<ToolResult>): Promise<ToolResult> {
  const before = client.sent.length;
  await expect.poll(() => client.sent.length).toBe(before + 1);
  await client.result(client.last);
  return answer;
}

const LOOKING = [
  ['list_clients', {}],
  ['find_actions', {}],
  ['describe_action', { action: 'wait' }],
] as const;

describe('with as many clients as are searched', () => {
  it('nothing is said of others, and the only one that offers an action runs it', async () => {
    expect(await agent.listMeta()).not.toHaveProperty([MORE_META]);
    for (const [tool, args] of LOOKING)
      expect((await agent.call(tool, args)).structuredContent).not.toHaveProperty('more_clients');
    expect(textOf(await agent.call('absent'))).toMatch(/^not_connected: No connected client offers the tool "absent"/);
    const done = await complete(first, agent.call('open'));
    expect(done.structuredContent).toEqual({ ok: true });
  });

  it('a call that many of them may run is refused with their number and the first of them', async () => {
    const said = textOf(await agent.call('wait'));
    expect(said).toContain('ambiguous_client: Clients that offer the action "wait": 1000 ("c00000" (browser), ');
    expect(said).toContain('"c00019" (browser) and 980 more).\nNothing ran.');
    expect(said).not.toContain('c00020');
  });
});

describe('with more clients than are searched', () => {
  let unseen: TestClient;

  beforeAll(async () => {
    unseen = await join(AGENT_CLIENTS, 'open', 'hidden');
  });

  it('the list of tools and the answers of tools say so', async () => {
    expect(await agent.listMeta()).toMatchObject({ [MORE_META]: true });
    expect((await agent.list()).map(({ name }) => name)).not.toContain('hidden');
    for (const [tool, args] of LOOKING)
      expect((await agent.call(tool, args)).structuredContent).toMatchObject({
        more_clients: true,
        note: expect.stringContaining('only the first 1000'),
      });
    const listed = (await agent.call('list_clients')).structuredContent;
    expect(listed?.['clients']).toHaveLength(AGENT_CLIENTS);
    const none = textOf(await agent.call('describe_action', { action: 'hidden' }));
    expect(none).toMatch(/^not_connected: None of the first 1000 clients offers this action/);
  });

  it('a tool that none of those searched has is refused with the way to call it', async () => {
    const said = textOf(await agent.call('hidden'));
    expect(said).toMatch(/^not_connected: None of the first 1000 clients offers the tool "hidden"[^]*Nothing ran\./);
    expect(said).toContain('use call_action and pass client');
    const done = await complete(unseen, agent.call('call_action', { action: 'hidden', client: 'c01000' }));
    expect(done.structuredContent).toEqual({ ok: true });
  });

  it('no client is chosen for a call, because one that was not searched may offer the action too', async () => {
    const before = [first.sent.length, unseen.sent.length];
    const searched = 'Only the first 1000 clients of the user were searched.\nNothing ran.';
    const one = 'Clients that offer the action "open": 1 ("c00000" (browser)).';
    expect(textOf(await agent.call('open'))).toContain(`ambiguous_client: ${one} ${searched}`);
    const none = 'Clients that offer the action "absent": 0.';
    const absent = await agent.call('call_action', { action: 'absent' });
    expect(textOf(absent)).toContain(`ambiguous_client: ${none} ${searched}`);
    expect([first.sent.length, unseen.sent.length]).toEqual(before);
  });

  it('each of them is reached by its id', async () => {
    const client = 'c01000';
    const described = await agent.call('describe_action', { action: 'open', client });
    expect(described.structuredContent).toMatchObject({ clients: [{ client }], clients_in_all: 1 });
    const done = await complete(unseen, agent.call('open', { client }));
    expect(done.structuredContent).toEqual({ ok: true });
  });
});
