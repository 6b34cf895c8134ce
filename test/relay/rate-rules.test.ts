/** Tests that a rate rule of the policy refuses calls beyond it, over every interface. */
import { describe, expect, it } from 'vitest';
import { createHttpCaller, createLinkCaller } from '../../src/clients/caller/index.ts';
import { postJson, startHttpRelay, tokenOf, type HttpRelay } from '../http/kit/http-relay.ts';
import { advertisement, connect, user } from '../kit/core.ts';

const INVOKE = '/connections/alice/tab/actions/open';
const TARGET = { userId: 'alice', clientId: 'tab', action: 'open' } as const;
/** A rule with a bucket that gets no token while a test runs. */
const SLOW = { name: 'slow', actions: ['open*'], burst: 2, perSecond: 0.001 };
const BODY = { wait_for: 'admitted' };

async function limited() {
  const relay = await startHttpRelay({ policy: { rules: [], scopes: [], userCapacity: null, rates: [SLOW] } });
  const actions = ['open', 'close'].map((name) => advertisement(name));
  const client = await connect(relay.callboard.core, user('alice'), { actions });
  const token = await tokenOf('alice', 'connect', 'invoke', 'host');
  const post = (path = INVOKE, body: object = BODY) => relay.ask(path, postJson(body, { token }));
  return { ...relay, client, token, post };
}

/** Takes the two tokens of alice. */
async function takeBurst({ post }: { readonly post: () => Promise<{ readonly status: number }> }): Promise<void> {
  for (let i = 0; i < 2; i++) expect((await post()).status).toBe(202);
}

function connectUrl({ linkUrl }: Pick<HttpRelay, 'linkUrl'>): string {
  return `${linkUrl.replace('http', 'ws')}/connect`;
}

describe('a call beyond a rate rule', () => {
  it('is refused over REST, GraphQL, links and by both caller libraries, and nothing runs', async () => {
    await using at = await limited();
    await takeBurst(at);
    const { token } = at;

    const problem = await at.post(INVOKE, { ...BODY, command_id: 'c9' });
    expect([problem.status, problem.json]).toMatchObject([429, { code: 'rate_limited', by: 'capacity' }]);
    expect(Number(problem.headers['retry-after'])).toBeGreaterThan(900);

    const input = '{ userId: "alice", clientId: "tab", action: "open" }';
    const query = `mutation { invokeAction(input: ${input}) { ... on Refusal { code by retryAfterMs } } }`;
    const typed = await at.ask('/graphql', postJson({ query }, { token }));
    const retryAfterMs: unknown = expect.any(Number);
    expect(typed.json).toEqual({ data: { invokeAction: { code: 'rate_limited', by: 'CAPACITY', retryAfterMs } } });

    const error = { code: 'rate_limited', by: 'capacity', retryAfterMs };
    await using overHttp = createHttpCaller({ url: at.url, token });
    await expect(overHttp.invoke(TARGET, {}, { waitFor: 'admitted' })).rejects.toMatchObject(error);
    await using overLink = createLinkCaller({ url: connectUrl({ linkUrl: at.url }), token });
    await expect(overLink.invoke(TARGET, {}, { waitFor: 'admitted' })).rejects.toMatchObject(error);

    const stored = await at.ask('/delivery/commands');
    expect(stored.json?.['items']).toHaveLength(2);
    const { text } = await at.ask('/metrics');
    expect(text).toContain('callboard_commands_refused_total{code="rate_limited"} 4\n');
  });

  it('is predicted by the preflight, which takes no token', async () => {
    await using at = await limited();
    const first = async () => (await at.post(`${INVOKE}/preflight`, {})).json?.['first_refusal'];
    for (let i = 0; i < 3; i++) expect(await first()).toBeNull();
    await takeBurst(at);
    expect(await first()).toMatchObject({ layer: 'rate', code: 'rate_limited' });
    const { json } = await at.post(`${INVOKE}/preflight`, {});
    const evidence = { rule: 'slow', burst: 2, perSecond: 0.001 };
    expect(json?.['layers']).toContainEqual(expect.objectContaining({ layer: 'rate', verdict: 'refuse', evidence }));
  });

  it('is refused for its caller and the actions of the rule only', async () => {
    await using at = await limited();
    await takeBurst(at);
    expect((await at.post(INVOKE.replace('open', 'close'))).status).toBe(202);
    // The administrator has a bucket of its own.
    expect((await at.ask(INVOKE, postJson(BODY))).status).toBe(202);
    expect((await at.post()).status).toBe(429);
  });

  it('counts for the owner of a site when a viewer invokes an action of the site', async () => {
    await using at = await limited();
    const { sites } = at.callboard.core;
    const capabilityProfile = { actionInvocation: true };
    await sites.register(user('alice'), { siteId: 'board', clientId: 'tab', actions: ['open'], capabilityProfile });
    const opened = await sites.open(user('alice'), 'board', {});
    const path = `/site-sessions/${opened?.view.session.sessionId}/actions/open`;
    const call = () => at.ask(path, postJson(BODY, { token: opened?.token ?? null }));
    for (let i = 0; i < 2; i++) expect((await call()).status).toBe(202);
    expect((await call()).json).toMatchObject({ code: 'rate_limited' });
    expect((await at.post()).json).toMatchObject({ code: 'rate_limited' });
  });

  it('attaches to its command if the command is known', async () => {
    await using at = await limited();
    for (const command_id of ['c1', 'c2']) expect((await at.post(INVOKE, { ...BODY, command_id })).status).toBe(202);
    expect((await at.post(INVOKE, { ...BODY, command_id: 'c3' })).status).toBe(429);
    const again = await at.post(INVOKE, { ...BODY, command_id: 'c1' });
    expect([again.status, again.json]).toMatchObject([202, { command_id: 'c1' }]);
  });
});
