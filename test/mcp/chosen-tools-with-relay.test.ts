/** Tests lists that agents chose small, by the address of the endpoint and by claims of their tokens. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readToolChoice } from '../../src/core/auth/principal.ts';
import { signToken } from '../../src/http/tokens.ts';
import { BUILTIN_TOOLS } from '../../src/mcp/builtin-tools.ts';
import { startRealRelay, type RealRelay } from '../clients/kit/real-relay.ts';
import { TOKEN_SECONDS } from '../kit/patience.ts';
import { GENERATIONS, callTool, connectClient, overHttp, overStdio, post, postText, textOf } from './kit/agents.ts';

const BIN = join(import.meta.dirname, '..', '..', 'src', 'bin.ts');
const BUILTIN = BUILTIN_TOOLS.map(({ name }) => name);
const OWN = ['desk_open', 'kiosk_open', 'kiosk_print'];

/** Starts a relay with a client of three actions, and counts what runs. */
async function started() {
  const relay = await startRealRelay({ mcp: 'on', label: 'Shop floor' });
  const ran: string[] = [];
  const desk = await connectClient(relay, (runtime) => {
    for (const name of OWN) runtime.handle(name.replace('_', '.'), {}, () => void ran.push(name));
  });
  const end = async (): Promise<void> => {
    await desk[Symbol.asyncDispose]();
    await relay[Symbol.asyncDispose]();
  };
  return { relay, ran, [Symbol.asyncDispose]: end };
}

function signed(relay: RealRelay, claims: { tools?: string; prefix?: string } = {}): Promise<string> {
  const token = { secret: relay.secret, user: 'alice', scopes: ['invoke'], ttlSeconds: TOKEN_SECONDS };
  return signToken({ ...token, now: Date.now(), ...claims });
}

const CHOICES = [
  ['', [...BUILTIN, ...OWN]],
  ['tools=builtin', BUILTIN],
  ['tools=actions', OWN],
  ['prefix=kiosk_', [...BUILTIN, 'kiosk_open', 'kiosk_print']],
  ['tools=actions&prefix=kiosk_', ['kiosk_open', 'kiosk_print']],
  ['tools=actions&prefix=none_&other=1', []],
] as const;

const named = (tools: readonly { readonly name: string }[]) => tools.map(({ name }) => name);

it.each(CHOICES)('the address chooses: %s', async (query, expected) => {
  await using one = await started();
  const { relay } = one;
  const token = await signed(relay);
  for (const generation of GENERATIONS) {
    await using agent = await overHttp(generation, { url: relay.url, token, query });
    expect(named(await agent.list())).toEqual(expected);
  }
});

it.each(CHOICES)('the claims of a token choose, and `callboard mcp` does: %s', async (query, expected) => {
  await using one = await started();
  const { relay } = one;
  const claims: { tools?: string; prefix?: string; other?: string } = Object.fromEntries(new URLSearchParams(query));
  delete claims.other;
  const token = await signed(relay, claims);
  const { tools } = (await post({ url: relay.url, token }, { method: 'tools/list' })).result;
  expect(named(tools)).toEqual(expected);
  const flags = Object.entries(claims).flatMap(([name, value]) => [`--${name}`, value]);
  const own = { url: relay.url, token: await signed(relay), flags };
  await using agent = await overStdio('SDK 1', own, BIN);
  expect(named(await agent.list())).toEqual(expected);
});

describe('a call', () => {
  it('of a tool that was not chosen is refused, says so, and nothing runs', async () => {
    await using one = await started();
    const { relay, ran } = one;
    const at = { url: relay.url, token: await signed(relay, { tools: 'actions', prefix: 'kiosk_' }) };
    for (const [name, args] of [
      ['desk_open', {}],
      ['call_action', { action: 'desk.open' }],
      ['absent', {}],
    ] as const) {
      const said = textOf((await callTool(at, name, args)).result);
      expect(said).toMatch(/^invalid_argument: The tool "\w+" is not in the list [^]*Nothing ran\./);
    }
    expect(ran).toEqual([]);
    expect((await callTool(at, 'kiosk_open')).result.isError ?? false).toBe(false);
    expect(ran).toEqual(['kiosk_open']);
  });

  it('has to be chosen by both, the address and the token', async () => {
    await using one = await started();
    const { relay } = one;
    const token = await signed(relay, { tools: 'actions' });
    await using agent = await overHttp('SDK 1', { url: relay.url, token, query: 'prefix=desk' });
    expect(named(await agent.list())).toEqual(['desk_open']);
    await using none = await overHttp('SDK 1', { url: relay.url, token, query: 'tools=builtin' });
    expect(await none.list()).toEqual([]);
  });
});

describe('a wrong choice', () => {
  it.each([
    ['tools=none', 'tools: expected builtin or actions'],
    ['tools=', 'tools: expected builtin or actions'],
    ['prefix=a.b', 'prefix: expected 1 to 40 letters'],
    ['prefix=', 'prefix: expected 1 to 40 letters'],
    ['tools=builtin&prefix=kiosk_', 'prefix: concerns the tools of actions'],
    ['tools=actions&tools=builtin', 'tools: It is given more than once'],
  ])('in the address is an error that names it: %s', async (query, says) => {
    await using relay = await startRealRelay({ mcp: 'on' });
    const at = { url: relay.url, token: await signed(relay), query };
    const answer = await postText(at, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
    expect([answer.status, JSON.parse(answer.text).code]).toEqual([400, 'invalid_argument']);
    expect(answer.text).toContain(says);
  });

  it('in a token is refused as a wrong token', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    const at = { url: relay.url, token: await signed(relay, { tools: 'none' }) };
    const answer = await post(at, { method: 'tools/list' });
    expect([answer.status, answer.text]).toEqual([401, expect.stringContaining('callboard_tools: expected builtin')]);
  });

  it('is what has another form than a name', () => {
    expect(readToolChoice(7, undefined)).toMatch(/^tools:/);
    expect(readToolChoice(undefined, 'x'.repeat(41))).toMatch(/^prefix:/);
    expect(readToolChoice(undefined, 'x'.repeat(40))).toEqual({ tools: 'all', prefix: 'x'.repeat(40) });
  });
});

it('a relay with a label has its name, so that hosts tell relays apart', async () => {
  await using one = await started();
  const { relay } = one;
  const at = { url: relay.url, token: await signed(relay) };
  const discovered = await post(at, { method: 'server/discover' });
  expect(discovered.result._meta['io.modelcontextprotocol/serverInfo']).toMatchObject({
    ...{ name: 'callboard', title: 'Shop floor' },
  });
});

it('instructions name the built-in tools only if they are chosen', async () => {
  await using one = await started();
  const { relay } = one;
  const instructions = async (claims: object) =>
    (await post({ url: relay.url, token: await signed(relay, claims) }, { method: 'server/discover' })).result
      .instructions;
  expect(await instructions({})).toContain('await_command');
  expect(await instructions({ tools: 'actions' })).not.toContain('await_command');
});
