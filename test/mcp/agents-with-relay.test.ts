/** Tests the bridge with agents of both generations of the SDK: in memory, over HTTP and over `callboard mcp`. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, vi } from 'vitest';
import { rawJson, type Runtime } from '../../src/clients/runtime/index.ts';
import { BUILTIN_TOOLS } from '../../src/mcp/builtin-tools.ts';
import { startRealRelay, type RealRelay } from '../clients/kit/real-relay.ts';
import {
  GENERATIONS,
  callTool,
  connectClient,
  inMemory,
  overHttp,
  overStdio,
  postText,
  textOf,
  type Agent,
  type Generation,
} from './kit/agents.ts';

const BIN = join(import.meta.dirname, '..', '..', 'src', 'bin.ts');

function lamp(runtime: Runtime): void {
  const schema = {
    type: 'object',
    properties: { level: { type: 'integer' } },
    required: ['level'],
    additionalProperties: false,
  } as const;
  runtime.handle('lamp.set', { summary: 'Sets the lamp.', schema, effects: { destructive: false } }, (params) => ({
    set: params,
  }));
  runtime.handle('lamp.break', { summary: 'Fails.' }, () => {
    throw new Error('the bulb\tis broken');
  });
  runtime.handle('lamp.nothing', {}, () => undefined);
}

const at = async (relay: RealRelay) => ({ url: relay.url, token: await relay.token('alice', 'invoke') });
const WAYS: Readonly<Record<string, (generation: Generation, relay: RealRelay) => Promise<Agent>>> = {
  'in memory': (generation, relay) => inMemory(generation, relay.callboard),
  'over HTTP': async (generation, relay) => overHttp(generation, await at(relay)),
  'over callboard mcp': async (generation, relay) => overStdio(generation, await at(relay), BIN),
};

describe.each(Object.keys(WAYS))('an agent %s', (way) => {
  describe.each(GENERATIONS)('with %s', (generation) => {
    it('lists the tools, calls them and learns how each call ended', async () => {
      await using relay = await startRealRelay({ mcp: 'on' });
      await using _desk = await connectClient(relay, lamp);
      await using agent = await WAYS[way]!(generation, relay);
      const tools = await agent.list();
      const own = ['lamp_break', 'lamp_nothing', 'lamp_set'];
      expect(tools.map(({ name }) => name)).toEqual([...BUILTIN_TOOLS.map(({ name }) => name), ...own]);
      const set = tools.at(-1);
      expect(set).toMatchObject({ title: 'lamp.set', annotations: { destructiveHint: false, readOnlyHint: false } });
      expect(set?.inputSchema).toMatchObject({ required: ['level'], additionalProperties: false });

      const done = await agent.call('lamp_set', { level: 3 });
      expect(done).toMatchObject({ structuredContent: { set: { level: 3 } } });
      expect(done.isError ?? false).toBe(false);
      expect(JSON.parse(textOf(done))).toEqual({ set: { level: 3 } });
      expect(textOf(await agent.call('lamp_nothing'))).toContain('returned nothing');

      const failed = await agent.call('lamp_break');
      expect(failed).toMatchObject({ isError: true });
      expect(failed.structuredContent).toBeUndefined();
      expect(textOf(failed)).toMatch(
        /^handler_failed: the client says: "the bulb is broken"\n.*\nThe last stage that is proven: (acknowledged|dispatched)/,
      );
      expect(textOf(failed)).toContain('It ran, as the client reports.');

      const refused = await agent.call('lamp_set', { level: 'high' });
      expect(textOf(refused)).toMatch(/^arguments_invalid: .*\n[^]*Nothing ran\./);
      const gone = await agent.call('door_open');
      expect(textOf(gone)).toMatch(/^not_connected: [^]*Nothing ran\./);
    });

    it('finds, describes and calls actions by the built-in tools', async () => {
      await using relay = await startRealRelay({ mcp: 'on' });
      await using _desk = await connectClient(relay, lamp);
      await using agent = await WAYS[way]!(generation, relay);
      expect(await agent.call('list_clients')).toMatchObject({
        structuredContent: { clients: [{ client: 'desk', client_type: 'browser', actions: 3, contexts: [] }] },
      });
      expect(await agent.call('find_actions', { query: 'sets LAMP' })).toMatchObject({
        structuredContent: {
          actions: [{ action: 'lamp.set', tool: 'lamp_set', says: 'From the client "desk": Sets the lamp.' }],
        },
      });
      expect(await agent.call('describe_action', { action: 'lamp.set' })).toMatchObject({
        structuredContent: { clients: [{ client: 'desk', schema: { required: ['level'] } }], clients_in_all: 1 },
      });
      const called = await agent.call('call_action', { action: 'lamp.set', params: { level: 4 }, client: 'desk' });
      expect(called).toMatchObject({ structuredContent: { set: { level: 4 } } });
      const command = called._meta?.['callboard/command'] as { command_id: string };
      expect(await agent.call('get_command', { command_id: command.command_id })).toMatchObject({
        structuredContent: { action: 'lamp.set', outcome: 'completed', client: 'desk', result: { set: { level: 4 } } },
      });
      expect(await agent.call('await_command', command)).toMatchObject({ structuredContent: { set: { level: 4 } } });
      expect(await agent.call('cancel_command', command)).toMatchObject({ structuredContent: { state: 'too_late' } });
      const asked = { action: 'lamp.set', client: 'desk', params: { level: 1 } };
      expect(await agent.call('preflight', asked)).toMatchObject({ structuredContent: { would_admit: 'pass' } });
      expect(textOf(await agent.call('get_command', { command_id: 'none' }))).toMatch(/^not_found/);
      expect(textOf(await agent.call('call_action', {}))).toMatch(/^invalid_argument: action/);
    });
  });
});

it.each([
  ['tools/list', (agent: Agent) => agent.list()],
  ['a tool of an action', (agent: Agent) => agent.call('lamp_set', { level: 1 })],
  ['call_action', (agent: Agent) => agent.call('call_action', { action: 'lamp.nothing' })],
  ['find_actions', (agent: Agent) => agent.call('find_actions')],
])('%s reads the clients of the user once', async (_, request) => {
  await using relay = await startRealRelay({ mcp: 'on' });
  await using _desk = await connectClient(relay, lamp);
  await using agent = await overHttp('SDK 2 at 2026-07-28', await at(relay));
  const lists = vi.spyOn(relay.callboard.core.connections, 'list');
  await request(agent);
  expect(lists).toHaveBeenCalledTimes(1);
});

describe('with several clients that offer an action', () => {
  it('a call that names none is refused with the list, and one that names a client reaches it alone', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    const ran: string[] = [];
    const define = (id: string) => (runtime: Runtime) => void runtime.handle('where', {}, () => (ran.push(id), id));
    await using _desk = await connectClient(relay, define('desk'));
    await using _kitchen = await connectClient(relay, define('kitchen'), { clientId: 'kitchen' });
    await using agent = await overHttp('SDK 2 at 2026-07-28', await at(relay));
    expect(textOf(await agent.call('where'))).toMatch(
      /^ambiguous_client: Clients that offer the action "where": 2 \("desk" \(browser\), "kitchen" \(browser\)\)\.\nNothing ran\./,
    );
    expect(ran).toEqual([]);
    expect(textOf(await agent.call('where', { client: 'kitchen' }))).toBe('kitchen');
    expect(textOf(await agent.call('where', { client: 'attic' }))).toMatch(/^not_connected: /);
    expect(textOf(await agent.call('where', { client: 'a b' }))).toMatch(/^invalid_argument: client/);
    expect(ran).toEqual(['kitchen']);
  });
});

describe('with clients that report contexts', () => {
  it('a call names one, runs in it alone, and is refused when it is gone', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    const ran: (string | null)[] = [];
    const tabs = (...ids: string[]) =>
      ids.map((contextId) => ({ contextId, status: 'active', ownership: 'user-owned' }) as const);
    const define = (runtime: Runtime) =>
      void runtime.handle('look', {}, (_, { contextId }) => (ran.push(contextId), contextId));
    await using desk = await connectClient(relay, define);
    await using kitchen = await connectClient(relay, define, { clientId: 'kitchen' });
    desk.reportContexts(tabs('tab-1', 'tab-2'));
    kitchen.reportContexts(tabs('tab-3'));
    await using agent = await overHttp('SDK 2 at 2026-07-28', await at(relay));
    const contexts = async () => {
      const { structuredContent } = await agent.call('list_clients');
      const clients = structuredContent?.['clients'] as { contexts: { context_id: string }[] }[];
      return clients.flatMap((client) => client.contexts.map(({ context_id }) => context_id));
    };
    await expect.poll(contexts).toEqual(['tab-1', 'tab-2', 'tab-3']);
    expect(textOf(await agent.call('look', { context_id: 'tab-2', client: 'desk' }))).toBe('tab-2');
    expect(textOf(await agent.call('look', { context_id: 'tab-3' }))).toBe('tab-3');
    desk.reportContexts({ removed: ['tab-2'] });
    await expect.poll(contexts).toEqual(['tab-1', 'tab-3']);
    const gone = textOf(await agent.call('look', { context_id: 'tab-2', client: 'desk', n: 1 }));
    expect(gone).toMatch(/^context_gone: [^]*Nothing ran\./);
    const both = '2 ("desk" (browser), "kitchen" (browser))';
    expect(textOf(await agent.call('look', { context_id: 'tab-9' }))).toContain(
      `ambiguous_client: Clients that offer the action "look": ${both}. None of them reports this context.\n`,
    );
    kitchen.reportContexts(tabs('tab-1', 'tab-3'));
    await expect.poll(contexts).toEqual(['tab-1', 'tab-1', 'tab-3']);
    expect(textOf(await agent.call('look', { context_id: 'tab-1' }))).toContain(
      `ambiguous_client: Clients that offer the action "look" and report this context: ${both}.\n`,
    );
    expect(ran).toEqual(['tab-2', 'tab-3']);
  });
});

/** Connects a client whose action `big` keeps the texts of its params, and answers with a number of twenty digits. */
async function connectBig(relay: RealRelay) {
  const texts: string[] = [];
  const desk = await connectClient(relay, (runtime) =>
    runtime.handle('big', {}, (_, { paramsText }) => (texts.push(paramsText), rawJson('[98765432109876543210]'))),
  );
  return { texts, [Symbol.asyncDispose]: () => desk[Symbol.asyncDispose]() };
}

it('numbers of params and results keep their digits, in both protocols', async () => {
  await using relay = await startRealRelay({ mcp: 'on' });
  await using desk = await connectBig(relay);
  const { url, token } = await at(relay);
  const text = '{ "n":12345678901234567890 }';
  const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"big","arguments":${text}}}`;
  const answer = await postText({ url, token }, call);
  expect(answer.text).toContain('[98765432109876543210]');
  const modern = await callTool({ url, token }, 'big', { n: 1 });
  expect(modern.text).toContain('[98765432109876543210]');
  expect(desk.texts).toEqual([text, '{"n":1}']);
});

it('`callboard mcp` passes numbers on with their digits, and answers a line that is no message', async () => {
  await using relay = await startRealRelay({ mcp: 'on' });
  await using desk = await connectBig(relay);
  const { url, token } = await at(relay);
  const env = { PATH: process.env['PATH'] ?? '', CALLBOARD_URL: url, CALLBOARD_TOKEN: token };
  const pump = spawn(process.execPath, [BIN, 'mcp'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const params = `{"name":"big","arguments":{"n":12345678901234567890}}`;
  pump.stdin.end(`no JSON\n\n{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}\n`);
  const lines = (await text(pump.stdout)).trimEnd().split('\n');
  expect(lines).toHaveLength(2);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ id: null, error: { code: -32_700 } });
  expect(lines[1]).toContain('[98765432109876543210]');
  expect(desk.texts).toEqual(['{"n":12345678901234567890}']);
});
