/** Tests the spans of calls that the relay refuses, both of users and of a site's viewers. */
import { describe, expect, it } from 'vitest';
import { recordSpans } from '../kit/spans.ts';
import { disconnectHost, startBoardRelay, type BoardRelay } from './kit/board-relay.ts';
import { startTestRelay, type TestRelay } from './kit/test-relay.ts';
import { INVOKE, tracedRelay } from './kit/traced-relay.ts';

/** A policy under which nobody may invoke these actions. */
const CLOSED = {
  rules: [{ name: 'closed', effect: 'deny', actions: ['fails', 'open'] }],
  scopes: [],
  userCapacity: null,
} as const;

describe('the span of a refused call', () => {
  const refusals: readonly (readonly [string, (relay: TestRelay) => Promise<unknown>, string])[] = [
    ['no such client', (relay) => relay.post(INVOKE), 'server _OTHER not_connected !not_connected'],
    [
      'no such action',
      async (relay) => {
        await relay.client();
        await relay.post('/connections/alice/tab/actions/dance');
      },
      'server _OTHER action_not_advertised !action_not_advertised',
    ],
    ['another user', (relay) => relay.post(INVOKE, {}, 'bob'), 'server _OTHER not_found !not_found'],
    [
      'a reserved parameter',
      (relay) => relay.post(INVOKE, { params: { __cooperative_site_id: 'x' } }),
      'server _OTHER reserved_parameter !reserved_parameter',
    ],
  ];

  it.each(refusals)('%s', async (_, call, line) => {
    const { spans, relay } = await tracedRelay();
    await using _relay = relay;
    await call(relay);
    expect(await spans.drawn(1)).toEqual([line]);
  });

  it('a command id of another request: the first is not linked, since nothing of it is shown', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    await relay.client();
    await relay.post(INVOKE, { command_id: 'c1', wait_for: 'admitted' });
    await relay.post(INVOKE, { command_id: 'c1', params: { other: 1 } });
    expect(await spans.drawn(2)).toContain('server open command_conflict !command_conflict');
  });

  it('names who refused', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    await relay.post(INVOKE);
    expect(spans.ended()[0]?.attributes).toMatchObject({ 'callboard.refused_by': 'target' });
  });

  it('by the policy: the client is known to have the action, and nothing is below the call', async () => {
    const spans = recordSpans();
    await using relay = await startTestRelay({ policy: CLOSED }, { tracing: spans.api });
    const tab = await relay.client();
    expect(await relay.post(INVOKE)).toMatchObject({ status: 403 });
    expect(await spans.drawn(1)).toEqual(['server open policy_denied !policy_denied']);
    expect(spans.ended()[0]?.attributes).toMatchObject({ 'callboard.refused_by': 'policy' });
    expect(tab.seen('command')).toEqual([]);
  });
});

describe("the span of a viewer's call that is refused", () => {
  type Change = (at: BoardRelay) => Promise<unknown>;
  type Rule = readonly [name: string, action: string, expected: string, change: Change | null];
  const rules: readonly Rule[] = [
    [
      'the site does not offer the action',
      'secret',
      'server _OTHER site_action_denied !site_action_denied by site',
      null,
    ],
    ['the host is away', 'add', 'server _OTHER session_inactive !session_inactive by site', disconnectHost],
    ['the policy of the owner denies it', 'fails', 'server fails policy_denied !policy_denied by policy', null],
    [
      'the host does not have the action',
      'gone',
      'server _OTHER action_not_advertised !action_not_advertised by target',
      null,
    ],
  ];

  it.each(rules)('%s', async (_, action, expected, change) => {
    const spans = recordSpans();
    await using at = await startBoardRelay({ config: { policy: CLOSED }, tracing: spans.api });
    await change?.(at);
    await at.post(`/site-sessions/${at.session.session_id}/actions/${action}`, { params: {} }, 'viewer');
    const [line] = await spans.drawn(1);
    expect(`${line} by ${spans.ended()[0]?.attributes['callboard.refused_by']}`).toBe(expected);
    expect(spans.ended()).toHaveLength(1);
  });

  it('that the host itself refuses is one tree, in which the call and the dispatch name the refusal', async () => {
    const spans = recordSpans();
    await using at = await startBoardRelay({ tracing: spans.api });
    await at.post(`/site-sessions/${at.session.session_id}/actions/judged`, { params: {} }, 'viewer');
    expect(await spans.drawn(2)).toEqual([
      'server judged failed !client_denied',
      '  client callboard.dispatch failed !client_denied',
    ]);
  });
});
