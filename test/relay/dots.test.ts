/** Tests that the ids `.` and `..`, which vanish from paths, are refused at each door. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Peer } from '../gateway/kit/test-gateway.ts';
import { postJson } from '../http/kit/http-relay.ts';
import { startTestRelay, type TestRelay } from './kit/test-relay.ts';

let at: TestRelay;
beforeAll(async () => {
  at = await startTestRelay();
  await at.client({ client_id: 'tab', payload: { actions: [{ name: 'open' }] } });
});
afterAll(() => at[Symbol.asyncDispose]());

const INVOKE = `mutation ($input: InvokeActionInput!) { invokeAction(input: $input) { ... on Refusal { code } ... on Invocation { commandId } } }`;
const SITE = `mutation ($id: ID!) { registerSite(input: { siteId: $id, clientId: "tab" }) { ... on Refusal { code } } }`;

it.each(['.', '..'])('%s is no id of a client or an instance in a hello', async (id) => {
  const token = (await at.token('alice')) ?? '';
  for (const wrong of [{ client_id: id }, { instance_id: id }]) {
    const peer = new Peer({ port: Number(new URL(at.linkUrl).port), peers: at.peers });
    await peer.opened;
    peer.send({ type: 'hello', token, client_id: 'c', instance_id: 'i', client_type: 'web', ...wrong });
    expect(await peer.next('refused')).toMatchObject({ frame: 'hello', code: 'invalid_argument' });
    await peer.closed;
  }
});

it.each(['.', '..'])('%s is no id in a report', async (id) => {
  const peer = await at.client({ client_id: 'reporter', payload: {} });
  const context = { context_id: 'c', status: 'idle', ownership: 'worker' };
  for (const wrong of [{ context_id: id }, { window_id: id }, { task_id: id }]) {
    peer.send({ type: 'report' }, { contexts: { set: [{ ...context, ...wrong }] } });
    expect(await peer.next('refused')).toMatchObject({ frame: 'report', code: 'invalid_argument' });
  }
  peer.ws.close();
  await peer.closed;
});

it.each(['.', '..'])('%s is no id in a call, over REST, GraphQL and a link', async (id) => {
  const action = '/connections/alice/tab/actions/open';
  for (const body of [{ command_id: id }, { instance_id: id }, { context_id: id }])
    expect((await at.rest(action, { ...postJson(body), requester: 'alice' })).status).toBe(400);
  const input = { userId: 'alice', clientId: 'tab', action: 'open' };
  for (const wrong of [{ clientId: id }, { commandId: id }, { instanceId: id }, { contextId: id }, { userId: id }]) {
    const answer = await at.graphql(INVOKE, { requester: 'admin', variables: { input: { ...input, ...wrong } } });
    expect(JSON.stringify(answer)).toMatch(/"code":"(invalid_argument|invalid_user)"/);
  }
  const requester = await at.caller('alice');
  for (const wrong of [{ client_id: id }, { command_id: id }, { context_id: id }]) {
    requester.send({ type: 'invoke', ref: 'r', client_id: 'tab', action: 'open', ...wrong });
    expect(await requester.next('refused')).toMatchObject({ ref: 'r', code: 'invalid_argument' });
  }
});

it.each(['.', '..'])('%s is no site and no user', async (id) => {
  const answer = await at.graphql(SITE, { requester: 'alice:host', variables: { id } });
  expect(JSON.stringify(answer)).toContain('"code":"invalid_argument"');
  expect((await at.rest('/users', { requester: id })).status).toBe(401);
});

it.each(['.', '..', ' . '])(
  'the description of the interface allows %j neither as a user nor in a stream',
  async (id) => {
    const { schemas } = (await at.rest('/openapi.json')).json?.['components'] as {
      schemas: Record<string, { pattern: string }>;
    };
    const allows = (schema: string, text: string): boolean =>
      new RegExp(schemas[schema]?.pattern ?? '', 'u').test(text);
    expect([allows('UserId', 'alice'), allows('UserId', id)]).toEqual([true, false]);
    expect([allows('StreamKey', 'alice/links'), allows('StreamKey', `${id}/links`)]).toEqual([true, false]);
  },
);
