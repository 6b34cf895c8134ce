/**
 * Tests the arguments of tools: unknown ones are refused, and each text names an argument as the tool that is called
 * does.
 */
import { describe, expect, it } from 'vitest';
import { startTestRelay, type TestRelay, type Welcomed } from '../relay/kit/test-relay.ts';
import { callTool, post, textOf } from './kit/agents.ts';

const OWN = ['client', 'context_id', 'repeat_of', 'respond_within_ms'];

/** An action with these params. */
function action(name: string, params: readonly string[]) {
  const properties = Object.fromEntries(params.map((param) => [param, {}]));
  return { name, schema: { type: 'object', properties } };
}

const ACTIONS = [
  action('plain', ['level']),
  // Takes each own argument of its tool as `callboard_...`.
  action('named', OWN),
  // Leaves its tool no name for an own argument.
  action('full', [...OWN, ...OWN.map((name) => `callboard_${name}`)]),
  { name: 'combined', schema: { oneOf: [{ required: ['a'] }, { required: ['b'] }] } },
];

type Args = Readonly<Record<string, unknown>>;
type At = {
  readonly relay: TestRelay;
  readonly tab: Welcomed;
  /** Calls a tool and returns the text of its result. */
  readonly say: (tool: string, args?: Args) => Promise<string>;
};

async function start(): Promise<At & AsyncDisposable> {
  const relay = await startTestRelay({ mcp: 'on' });
  const tab = await relay.client({ payload: { actions: ACTIONS } });
  const at = { url: relay.url, token: await relay.token('alice:invoke') };
  const say = async (tool: string, args: Args = {}): Promise<string> => textOf((await callTool(at, tool, args)).result);
  return { relay, tab, say, [Symbol.asyncDispose]: () => relay[Symbol.asyncDispose]() };
}

/** Calls a tool, lets the client stay silent, and returns the text of the result. */
async function silent({ relay, tab, say }: At, tool: string, args: Args): Promise<string> {
  const said = say(tool, args);
  await tab.next('command');
  await relay.clock.advance(31_000);
  return said;
}

const idIn = (text: string): string => /"(mcp-[^"]+)"/.exec(text)?.[1] ?? '';

describe('an argument that a tool does not take', () => {
  it.each([
    ['call_action', { action: 'plain', level: 3 }, '"level"'],
    ['preflight', { action: 'plain', client: 'tab', repeat_of: 'c1' }, '"repeat_of"'],
    ['await_command', { id: 'c1', command: 'c1' }, '"id", "command"'],
    ['cancel_command', { command_id: 'c1', why: '' }, '"why"'],
    ['get_command', { command_id: 'c1', 'line\nfeed': 1 }, '"line feed"'],
    ['find_actions', { words: 'x' }, '"words"'],
    ['describe_action', { action: 'plain', name: 'x' }, '"name"'],
    ['combined', { params: { a: 1 }, b: 2 }, '"b"'],
  ])('%s refuses by its name', async (tool, args, names) => {
    await using at = await start();
    const said = await at.say(tool, args);
    expect(said).toContain(`invalid_argument: ${tool} does not take ${names}.\nNothing ran.\nIt takes `);
    expect(said.includes('members of params')).toBe(['call_action', 'preflight', 'combined'].includes(tool));
    expect(at.tab.seen('command')).toEqual([]);
  });

  it('is refused by a tool without arguments, and many of them are not repeated to the agent', async () => {
    await using at = await start();
    expect(await at.say('list_clients', { x: 1 })).toMatch(/does not take "x"\.\nNothing ran\.\nIt takes none\.$/);
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`${n}-${'x'.repeat(1_000)}`, n]));
    const said = await at.say('list_clients', many);
    expect(said).toContain(' and 95 more.');
    expect(said.length).toBeLessThan(600);
  });

  it('is passed on as a param where the action may have any', async () => {
    await using at = await start();
    const answer = at.say('plain', { level: 1, more: 2 });
    const { command_id } = await at.tab.next('command');
    at.tab.send({ type: 'result', command_id }, { ok: true });
    expect(await answer).toBe('{"ok":true}');
  });
});

describe('an argument that should be a text', () => {
  it.each([
    ['describe_action', { action: 'plain', client: 7 }, 'client'],
    ['call_action', { action: ['plain'] }, 'action'],
    ['find_actions', { query: ['plain'] }, 'query'],
  ])('is refused by %s if it is none', async (tool, args, name) => {
    await using at = await start();
    expect(await at.say(tool, args)).toMatch(`invalid_argument: ${name}: expected a text.`);
  });

  it('is absent if it is null', async () => {
    await using at = await start();
    expect(await at.say('describe_action', { action: 'plain', client: null })).toContain('"clients_in_all":1');
  });
});

describe('a tool whose action has params with the names of own arguments', () => {
  it('says how its client is chosen', async () => {
    await using at = await start();
    await at.relay.client({ client_id: 'other', payload: { actions: ACTIONS } });
    expect(await at.say('plain')).toMatch(/^ambiguous_client: [^]*To choose a client, pass client\./);
    expect(await at.say('call_action', { action: 'named' })).toContain('To choose a client, pass client.');
    expect(await at.say('named')).toContain('To choose a client, pass callboard_client.');
    expect(await at.say('full')).toContain('To choose a client, use call_action and pass client.');
  });

  it('names the wrong ones as the agent gave them', async () => {
    await using at = await start();
    const wrong = {
      callboard_client: ['a b', /^invalid_argument: callboard_client: [^]*Nothing ran/],
      callboard_respond_within_ms: [5, /^invalid_argument: callboard_respond_within_ms: /],
      callboard_repeat_of: ['x', /^invalid_argument: callboard_repeat_of: [^]*Leave callboard_repeat_of out/],
    } as const;
    for (const [name, [value, says]] of Object.entries(wrong))
      expect(await at.say('named', { [name]: value })).toMatch(says);
    const context = { callboard_client: 'tab', callboard_context_id: 'a b' };
    expect(await at.say('named', context)).toMatch(/^invalid_argument: callboard_context_id: /);
    const preflight = { action: 'plain', client: 'a b', context_id: 'a b' };
    expect(await at.say('preflight', preflight)).toMatch(/^invalid_argument: client: /);
  });

  it('says without which argument its client would run it', async () => {
    await using at = await start();
    const said = await at.say('named', { callboard_client: 'tab', callboard_context_id: 'tab-1' });
    expect(said).toMatch(/^context_unsupported: [^]*without callboard_context_id/);
  });

  it('says how it is run once more after an unknown outcome, as await_command does', async () => {
    await using at = await start();
    const unknown = await silent(at, 'named', { client: 1 });
    const id = idIn(unknown);
    expect(unknown).toContain(`To run it once more all the same, pass callboard_repeat_of: "${id}".`);
    expect(await at.say('named', { client: 1 })).toMatch(
      new RegExp(`^repeat_refused: [^]*pass callboard_repeat_of: "${id}"`),
    );
    const awaited = await at.say('await_command', { command_id: id, client: 'tab' });
    expect(awaited).toContain(`To run it once more all the same, use call_action and pass repeat_of: "${id}".`);
    const again = at.say('call_action', { action: 'named', params: { client: 1 }, repeat_of: id });
    const { command_id } = await at.tab.next('command');
    at.tab.send({ type: 'result', command_id }, { ok: true });
    expect(await again).toBe('{"ok":true}');
  });

  it('refers to call_action where it has no name for the argument', async () => {
    await using at = await start();
    const unknown = await silent(at, 'full', { client: 1 });
    expect(unknown).toContain(`use call_action and pass repeat_of: "${idIn(unknown)}"`);
  });
});

it('the schema of each tool has exactly the arguments that it takes', async () => {
  await using at = await start();
  const to = { url: at.relay.url, token: await at.relay.token('alice:invoke') };
  const { result } = await post(to, { method: 'tools/list' });
  const names = (tool: string): readonly string[] =>
    Object.keys(result.tools.find(({ name }: { name: string }) => name === tool).inputSchema.properties);
  expect(names('named')).toEqual([...OWN, ...OWN.map((name) => `callboard_${name}`)]);
  expect(names('plain')).toEqual(['level', ...OWN]);
  expect(names('combined')).toEqual(['params', ...OWN]);
});
