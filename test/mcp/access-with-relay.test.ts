/**
 * Tests who may use the bridge and what each agent sees: tokens, policies, other users, and metadata for authorization.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { main } from '../../src/cli/main.ts';
import { signToken } from '../../src/http/tokens.ts';
import type { Tool } from '../../src/mcp/tools.ts';
import { startRealRelay, type RealRelay } from '../clients/kit/real-relay.ts';
import { callTool, connectClient, overHttp, post, recordOf, textOf, type RawAnswer } from './kit/agents.ts';
import { TOKEN_SECONDS } from '../kit/patience.ts';
import { until } from '../relay/kit/test-relay.ts';

type Answer = RawAnswer;
const at = (relay: RealRelay, token: string | null) => ({ url: relay.url, token });
const problem = ({ text }: Answer): any => JSON.parse(text);
const list = async (relay: RealRelay, token: string): Promise<readonly Tool[]> =>
  (await post(at(relay, token), { method: 'tools/list' })).result.tools;

describe('the token of an agent', () => {
  it('is that of a user: other tokens are refused with a sentence that says what is needed', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    const asked = async (token: string | null) => {
      const answer = await post(at(relay, token), { method: 'tools/list' });
      return [answer.status, problem(answer).code, problem(answer).detail];
    };
    expect(await asked(null)).toEqual([401, 'unauthenticated', expect.any(String)]);
    expect(await asked(relay.admin)).toEqual([403, 'forbidden', expect.stringContaining('callboard token --mcp')]);
    expect(await asked(await relay.token('alice', 'connect'))).toEqual([
      403,
      'forbidden',
      expect.stringContaining('invoke'),
    ]);
    for (const scope of ['invoke', 'mcp']) expect(await list(relay, await relay.token('alice', scope))).toHaveLength(8);
  });

  it('with the scope mcp alone opens nothing else', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    const token = await relay.token('alice', 'mcp');
    const headers = { authorization: `Bearer ${token}` };
    for (const path of ['/connections', '/commands', '/users/alice'])
      expect((await fetch(relay.url + path, { headers })).status).toBe(403);
    const invoked = await fetch(`${relay.url}/connections/alice/desk/actions/open`, { method: 'POST', headers });
    expect(invoked.status).toBe(403);
  });

  it('of `callboard token --mcp --actions` sees and calls these actions only, and reads no result of others', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    await using _desk = await connectClient(relay, (runtime) => {
      runtime.handle('tab.open', {}, () => 'opened');
      runtime.handle('pay.now', {}, () => 'secret receipt');
    });
    const token = await printed(relay, ['--mcp', '--user', 'alice', '--actions', 'tab.*, note.*']);
    expect((await list(relay, token)).map(({ name }) => name).slice(8)).toEqual(['tab_open']);
    expect(textOf((await callTool(at(relay, token), 'tab_open')).result)).toBe('opened');
    const calls: [string, object][] = [
      ['pay_now', {}],
      ['call_action', { action: 'pay.now', client: 'desk' }],
    ];
    for (const [tool, args] of calls) {
      const said = textOf((await callTool(at(relay, token), tool, { ...args })).result);
      expect(said).toMatch(/^(not_connected|policy_denied)[^]*Nothing ran/);
    }
    const other = await callTool(at(relay, await relay.token('alice', 'invoke')), 'pay_now');
    const command = other.result._meta['callboard/command'];
    expect(textOf((await callTool(at(relay, token), 'get_command', command)).result)).toMatch(/^not_found/);
    expect(textOf((await callTool(at(relay, token), 'describe_action', { action: 'pay.now' })).result)).toMatch(
      /^not_connected/,
    );
    const rest = await relay.token('alice', 'invoke');
    expect(JSON.stringify(await list(relay, rest))).toContain('pay_now');
  });

  it('that limits actions lists no clients without one of them, nor the titles of their tabs', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    await using desk = await connectClient(relay, (runtime) => runtime.handle('pay.now', {}, () => 'paid'));
    const clients = async (token: string): Promise<string> =>
      textOf((await callTool(at(relay, token), 'list_clients')).result);
    desk.reportContexts([{ contextId: 'c1', status: 'active', ownership: 'user-owned', title: 'My bank' }]);
    const limited = await printed(relay, ['--mcp', '--user', 'alice', '--actions', 'tab.*']);
    const all = await relay.token('alice', 'mcp');
    await until(async () => (await clients(all)).includes('My bank'));
    expect(await clients(limited)).not.toMatch(/desk|bank/);
    expect(await clients(await printed(relay, ['--mcp', '--user', 'alice', '--actions', 'pay.*']))).toContain(
      'My bank',
    );
  });

  it('that limits actions limits them over REST too, and a malformed limit is refused', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    const sign = (actions: unknown) =>
      signToken({
        ...{ secret: relay.secret, user: 'alice', scopes: ['invoke'], ttlSeconds: TOKEN_SECONDS, now: Date.now() },
        actions: actions as string[],
      });
    const invoke = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` };
      const answer = await fetch(`${relay.url}/connections/alice/desk/actions/pay.now`, { method: 'POST', headers });
      return [answer.status, ((await answer.json()) as { code: string }).code];
    };
    expect(await invoke(await sign(['tab.*']))).toEqual([403, 'policy_denied']);
    expect(await invoke(await sign(['pay.*']))).toEqual([409, 'not_connected']);
    expect(await invoke(await sign('pay.*'))).toEqual([401, 'unauthenticated']);
    expect(await invoke(await sign([]))).toEqual([403, 'policy_denied']);
  });
});

/** Runs `callboard token` with the secret of the relay. Returns what it prints. */
async function printed(relay: RealRelay, argv: readonly string[]): Promise<string> {
  let out = '';
  const io = {
    env: { CALLBOARD_SECRET: relay.secret },
    print: (text: string) => void (out += text),
    complain: (text: string) => void (out += text),
    onStop() {},
  };
  const exit = await main(['token', ...argv], io);
  expect([exit, out]).toEqual([0, expect.stringMatching(/^ey/)]);
  return out.trim();
}

describe('a policy', () => {
  it('can deny agents an action that the user may invoke otherwise', async () => {
    const rule = { name: 'no agents', effect: 'deny', callers: ['mcp'], actions: ['pay.*'] } as const;
    await using relay = await startRealRelay({ mcp: 'on', policy: { rules: [rule], scopes: [], userCapacity: null } });
    await using _desk = await connectClient(relay, (runtime) => runtime.handle('pay.now', {}, () => 'paid'));
    const token = await relay.token('alice', 'invoke');
    expect(await list(relay, token)).toHaveLength(8);
    const said = textOf(
      (await callTool(at(relay, token), 'call_action', { action: 'pay.now', client: 'desk' })).result,
    );
    expect(said).toMatch(/^policy_denied: .*no agents/);
    const headers = { authorization: `Bearer ${token}` };
    const rest = await fetch(`${relay.url}/connections/alice/desk/actions/pay.now`, { method: 'POST', headers });
    expect(await rest.json()).toMatchObject({ outcome: 'completed', result: 'paid' });
  });
});

describe('whatever two users advertise', () => {
  it('each agent can call each tool that it is shown, and nothing of the other user appears', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    const name = fc.stringMatching(/^[a-z][a-z0-9_.:-]{0,60}$/);
    const spec = fc.record({
      name,
      summary: fc.string({ unit: 'binary', maxLength: 40 }),
      schema: fc.constantFrom(
        {},
        true,
        { type: 'object' },
        { type: 'object', properties: { client: { type: 'string' } } },
        { anyOf: [{ type: 'object' }] },
      ),
    });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(spec, { maxLength: 12, selector: (one) => one.name }), async (specs) => {
        const define = (mark: string) => (runtime: Awaited<ReturnType<typeof connectClient>>) => {
          for (const { name: action, summary, schema } of specs)
            runtime.handle(`${mark}.${action}`, { summary: `${mark} ${summary}`, schema }, () => `${mark} ran`);
        };
        const [alice, bob] = [`alice-${++run}`, `bob-${run}`];
        await using _a = await connectClient(relay, define('MINE'), { user: alice, clientId: 'MINE-desk' });
        await using _b = await connectClient(relay, define('HERS'), { user: bob, clientId: 'HERS-desk' });
        for (const [user, own, other] of [
          [alice, 'MINE', 'HERS'],
          [bob, 'HERS', 'MINE'],
        ] as const) {
          const token = await relay.token(user, 'invoke');
          const tools = (await list(relay, token)).slice(8);
          expect(tools.length).toBe(specs.length);
          const texts = [JSON.stringify(tools)];
          for (const { name: tool, inputSchema } of tools) {
            const args = inputSchema['required'] ? { params: {} } : {};
            const said = textOf((await callTool(at(relay, token), tool, args)).result);
            expect(said).toBe(`${own} ran`);
            texts.push(said);
          }
          for (const tool of ['list_clients', 'find_actions'])
            texts.push((await callTool(at(relay, token), tool)).text);
          for (const action of specs.map((one) => `${other}.${one.name}`).slice(0, 2)) {
            const calls = [
              ['call_action', { action, client: `${other}-desk` }],
              ['call_action', { action }],
              ['describe_action', { action }],
            ] as const;
            for (const [tool, args] of calls) {
              const said = textOf((await callTool(at(relay, token), tool, args)).result);
              expect(said).toMatch(/^not_connected/);
              expect(said).not.toMatch(/ran$/);
            }
          }
          for (const text of texts) expect(text).not.toContain(other);
        }
      }),
      { numRuns: 8 },
    );
  });
});

describe('authorization', () => {
  it('the metadata has the address that RFC 9728 gives it, and one below the base path', async () => {
    const { createCallboard } = await import('../../src/callboard.ts');
    const secret = 'a secret of more than thirty-two bytes';
    const auth = { secret, issuer: 'https://id.example', audience: 'https://relay.example/mcp' };
    await using relay = createCallboard({ config: { mcp: 'on', basePath: '/base', auth } });
    const { origin } = new URL(await relay.listen());
    for (const path of [
      '/.well-known/oauth-protected-resource/base/mcp',
      '/base/.well-known/oauth-protected-resource/mcp',
    ]) {
      const metadata = await (await fetch(`${origin}${path}`)).json();
      expect(metadata).toMatchObject({ resource: `${origin}/base/mcp` });
    }
  });

  it('an issuer is named to agents without a token, and only then', async () => {
    const auth = { issuer: 'https://id.example', audience: 'https://relay.example/mcp' };
    const { createCallboard } = await import('../../src/callboard.ts');
    const secret = 'a secret of more than thirty-two bytes';
    await using relay = createCallboard({ config: { mcp: 'on', auth: { secret, ...auth } } });
    const url = await relay.listen();
    const refused = await post({ url, token: null }, { method: 'tools/list' });
    const metadata = `${url}/.well-known/oauth-protected-resource/mcp`;
    expect(refused.headers['www-authenticate']).toBe(`Bearer resource_metadata="${metadata}", scope="mcp"`);
    expect(await (await fetch(metadata)).json()).toEqual({
      resource: `${url}/mcp`,
      authorization_servers: ['https://id.example'],
      scopes_supported: ['mcp'],
      bearer_methods_supported: ['header'],
      resource_name: 'callboard',
    });
    const sign = (audience: string) =>
      signToken({
        secret,
        user: 'alice',
        scopes: ['invoke'],
        ttlSeconds: TOKEN_SECONDS,
        now: Date.now(),
        issuer: auth.issuer,
        audience,
      });
    expect((await post({ url, token: await sign('https://other.example') }, { method: 'tools/list' })).status).toBe(
      401,
    );
    expect((await post({ url, token: await sign(auth.audience) }, { method: 'tools/list' })).status).toBe(200);
    const elsewhere = await fetch(`${url}/users`);
    expect(elsewhere.headers.get('www-authenticate')).toBe('Bearer');

    await using plain = await startRealRelay({ mcp: 'on' });
    const unnamed = await post(at(plain, null), { method: 'tools/list' });
    expect(unnamed.headers['www-authenticate']).toBe('Bearer');
    expect((await fetch(`${plain.url}/.well-known/oauth-protected-resource/mcp`)).status).toBe(404);
  });

  it('pages of other origins are refused, and other methods than POST', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    const token = await relay.token('alice', 'invoke');
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      origin: 'https://evil.example',
    };
    expect((await fetch(`${relay.url}/mcp`, { method: 'POST', headers, body: '{}' })).status).toBe(403);
    const got = await fetch(`${relay.url}/mcp`, { headers: { authorization: `Bearer ${token}` } });
    expect([got.status, got.headers.get('allow')]).toEqual([405, 'POST']);
  });

  it('a relay without the setting has no such path', async () => {
    await using relay = await startRealRelay();
    expect((await post(at(relay, await relay.token('alice', 'invoke')), { method: 'tools/list' })).status).toBe(404);
  });
});

describe('the record of a call', () => {
  it('names the program of the agent, in both generations', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    await using _desk = await connectClient(relay, (runtime) => runtime.handle('open', {}, () => 'ok'));
    const token = await relay.token('alice', 'invoke');
    for (const [generation, host] of [
      ['SDK 1', 'old-host'],
      ['SDK 2 at 2026-07-28', 'new-host'],
    ] as const) {
      await using agent = await overHttp(generation, { url: relay.url, token });
      const command = await recordOf(relay.callboard.core, await agent.call('open', { by: host }));
      expect(command?.caller).toMatchObject({ kind: 'user', name: 'alice', label: { kind: 'mcp', name: host } });
    }
  });

  it('belongs to the trace that the agent names', async () => {
    await using relay = await startRealRelay({ mcp: 'on' });
    await using _desk = await connectClient(relay, (runtime) => runtime.handle('open', {}, () => 'ok'));
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const token = await relay.token('alice', 'invoke');
    const { result } = await callTool(at(relay, token), 'open', {}, { meta: { traceparent } });
    const command = await recordOf(relay.callboard.core, result);
    expect(command).toMatchObject({ traceId: '0af7651916cd43dd8448eb211c80319c', parentSpanId: 'b7ad6b7169203331' });
  });
});
