/** Tests the history of links, over every interface. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { meanwhile } from '../kit/clock.ts';
import { startTestRelay, until, type TestRelay } from './kit/test-relay.ts';

let at: TestRelay;
beforeEach(async () => {
  at = await startTestRelay();
});
afterEach(() => at[Symbol.asyncDispose]());

const LINKS = `query ($kinds: [MessageKind!]) { messages(stream: "alice/links", kinds: $kinds) { nodes {
  kind clientId instanceId payload(include: true) payloadState payloadBytes
  link { clientType nodeId epoch cause openMs previousInstanceId } } completeness { complete } } }`;

async function rows(variables: Record<string, unknown> = {}, requester = 'admin'): Promise<any[]> {
  const { data } = await at.graphql(LINKS, { variables, requester });
  return data?.['messages']?.nodes ?? [];
}

describe('the link history of a user', () => {
  it('has each link that opened and ended, to be read by the user and by administrators', async () => {
    const first = await at.client({ client_id: 'tab', instance_id: 'i1', client_type: 'mobile' });
    await at.clock.advance(1_500);
    const second = await at.client({ client_id: 'tab', instance_id: 'i2', client_type: 'mobile' });
    await first.next('bye');
    await at.clock.advance(2_500);
    second.ws.close();
    await until(async () => (await rows()).length === 4);
    const found = await rows();
    const tab = { clientId: 'tab', payload: null, payloadState: 'NONE', payloadBytes: 0 };
    const ofLink = { clientType: 'MOBILE', nodeId: expect.any(String), epoch: expect.any(Number) };
    expect(found).toEqual([
      {
        ...tab,
        kind: 'LINK_OPENED',
        instanceId: 'i1',
        link: { ...ofLink, cause: null, openMs: null, previousInstanceId: null },
      },
      {
        ...tab,
        kind: 'LINK_REPLACED',
        instanceId: 'i1',
        link: { ...ofLink, cause: 'REPLACED', openMs: expect.any(Number), previousInstanceId: null },
      },
      {
        ...tab,
        kind: 'LINK_OPENED',
        instanceId: 'i2',
        link: { ...ofLink, cause: 'REPLACED', openMs: null, previousInstanceId: 'i1' },
      },
      {
        ...tab,
        kind: 'LINK_CLOSED',
        instanceId: 'i2',
        link: { ...ofLink, cause: 'CLIENT_CLOSED', openMs: expect.any(Number), previousInstanceId: null },
      },
    ]);
    expect(found[1].link.openMs).toBeGreaterThanOrEqual(1_500);
    expect(found[3].link.openMs).toBeGreaterThanOrEqual(2_500);
    expect(await rows({}, 'alice')).toEqual(found);
    expect(await rows({ kinds: ['LINK_CLOSED'] })).toEqual([found[3]]);
    expect((await at.graphql(LINKS, { requester: 'bob' })).code).toBe('not_found');
    const rest = await at.rest('/history/messages?stream=alice/links&kinds=link_closed,link_replaced');
    expect(JSON.parse(rest.text).items).toMatchObject([
      {
        kind: 'link_replaced',
        client_id: 'tab',
        instance_id: 'i1',
        link: { cause: 'replaced', client_type: 'mobile' },
      },
      {
        kind: 'link_closed',
        instance_id: 'i2',
        link: { epoch: found[3].link.epoch, open_ms: found[3].link.openMs, previous_instance_id: null },
      },
    ]);
    const streams = await at.rest('/history/streams?user_id=alice');
    expect(JSON.parse(streams.text).items).toEqual([]);
  });

  it('names the cause of an end that an operator asked for', async () => {
    const tab = await at.client({ client_id: 'tab' });
    // The relay polls until the node of the client has closed the link.
    const { disconnectClient } = await meanwhile(
      at.clock,
      at.data('mutation { disconnectClient(userId: "alice", clientId: "tab", reason: "a test of it") { __typename } }'),
    );
    expect(disconnectClient).toBeTruthy();
    await tab.next('bye');
    await until(async () => (await rows()).length === 2);
    expect((await rows())[1]).toMatchObject({ kind: 'LINK_CLOSED', link: { cause: 'OPERATOR' } });
  });

  it('leaves the history of a command to its client’s own stream', async () => {
    const tab = await at.client({ client_id: 'tab' });
    await at.post('/connections/alice/tab/actions/open', { command_id: 'c1', wait_for: 'admitted' });
    await tab.next('command');
    const { messages } = await at.data('{ messages(stream: "alice/clients/tab") { nodes { kind link { epoch } } } }');
    expect(messages.nodes).toEqual([{ kind: 'COMMAND', link: null }]);
    expect((await rows()).map(({ kind }) => kind)).toEqual(['LINK_OPENED']);
  });
});
