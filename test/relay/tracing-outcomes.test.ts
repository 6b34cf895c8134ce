/** Tests the trees of spans of calls that were admitted: for each outcome, repeat and reconnect. */
import { describe, expect, it } from 'vitest';
import { RELAYS } from '../kit/store.ts';
import { until } from './kit/test-relay.ts';
import { INVOKE, tracedRelay } from './kit/traced-relay.ts';

describe('the spans of a call, by its outcome', () => {
  it('completed: the call, and below it the dispatch with the reports of the client', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    const tab = await relay.client();
    const waiting = relay.post(INVOKE, { command_id: 'c1' });
    await tab.next('command');
    tab.send({ type: 'ack', command_id: 'c1' });
    for (let i = 0; i < 2; i++) tab.send({ type: 'progress', command_id: 'c1' }, { i });
    tab.send({ type: 'result', command_id: 'c1' }, { ok: true });
    expect((await waiting).json).toMatchObject({ outcome: 'completed' });
    expect(await spans.drawn(2)).toEqual([
      'server open completed',
      '  client callboard.dispatch completed [acknowledged progress]',
    ]);
    const [call] = spans.ended().filter(({ kind }) => kind === 1);
    expect(call?.attributes).toEqual({
      'rpc.system.name': 'callboard',
      'rpc.method': 'open',
      'rpc.status_code': 'completed',
      'callboard.command_id': 'c1',
      'callboard.node_id': expect.any(String),
      'callboard.client_type': 'browser',
      'callboard.last_proven_stage': 'acknowledged',
      'callboard.execution': 'reported_by_client',
      'callboard.attempts': 1,
    });
    expect(call?.instrumentationScope.name).toBe('callboard');
    const nodes = new Set(spans.ended().map(({ attributes }) => attributes['callboard.node_id']));
    expect(nodes.size).toBe(RELAYS);
  });

  it('failed: both name the code of the error', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    const tab = await relay.client();
    const waiting = relay.post(INVOKE, { command_id: 'c1' });
    await tab.next('command');
    tab.send({ type: 'error', command_id: 'c1', code: 'approval_denied' });
    await waiting;
    expect(await spans.drawn(2)).toEqual([
      'server open failed !approval_denied',
      '  client callboard.dispatch failed !approval_denied',
    ]);
  });

  it('cancelled: before the dispatch there is no span below the call', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    const waiting = relay.post(INVOKE, { command_id: 'c1', connect_within_ms: 5_000 });
    await until(async () => (await relay.rest('/rpc/pending')).text.includes('"c1"'));
    await relay.post('/commands/alice/tab/c1/cancel');
    await waiting;
    // The relay does not know that the client has this action, so the span does not name it.
    expect(await spans.drawn(1)).toEqual(['server _OTHER cancelled']);
    expect(spans.ended()[0]?.attributes).toMatchObject({ 'rpc.method': '_OTHER', 'rpc.method_original': 'open' });
  });

  it('cancelled by the client after the dispatch', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    const tab = await relay.client();
    const waiting = relay.post(INVOKE, { command_id: 'c1' });
    await tab.next('command');
    await relay.post('/commands/alice/tab/c1/cancel');
    await tab.next('cancel');
    tab.send({ type: 'cancelled', command_id: 'c1' });
    await waiting;
    expect(await spans.drawn(2)).toEqual(['server open cancelled', '  client callboard.dispatch cancelled']);
  });

  it('expired: the client did not connect in time', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    const waiting = relay.post(INVOKE, { command_id: 'c1', connect_within_ms: 5_000 });
    await until(async () => (await relay.rest('/rpc/pending')).text.includes('"c1"'));
    await relay.clock.advance(5_000);
    await waiting;
    expect(await spans.drawn(1)).toEqual(['server _OTHER expired !connect_timeout']);
  });

  it('outcome_unknown: the client gave no answer, and its late result is a span of the same trace, once', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    const tab = await relay.client();
    const waiting = relay.post(INVOKE, { command_id: 'c1', respond_within_ms: 1_000 });
    await tab.next('command');
    await relay.clock.advance(1_000);
    expect((await waiting).json).toMatchObject({ outcome: 'outcome_unknown' });
    const ended = [
      'server open outcome_unknown !response_timeout',
      '  client callboard.dispatch outcome_unknown !response_timeout',
    ];
    expect(await spans.drawn(2)).toEqual(ended);
    for (const type of ['result', 'cancelled'] as const) {
      tab.send({ type, command_id: 'c1' });
      expect(await tab.next('result_ack')).toMatchObject({ recorded: 'late' });
    }
    expect(await spans.drawn(3)).toEqual([...ended, '  internal callboard.late_result outcome_unknown']);
  });
});

describe('requests for a command that another request admitted', () => {
  it('have spans of their own, with a link to the first', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    const tab = await relay.client();
    const first = relay.post(INVOKE, { command_id: 'c1' });
    await tab.next('command');
    const second = relay.post(INVOKE, { command_id: 'c1' });
    await until(async () => (await relay.rest('/rpc/pending/count')).json?.['count'] === 2);
    const third = relay.rest('/commands/alice/tab/c1?within_ms=10000', { requester: 'alice' });
    await until(async () => (await relay.rest('/rpc/pending/count')).json?.['count'] === 3);
    tab.send({ type: 'result', command_id: 'c1' }, { ok: true });
    await Promise.all([first, second, third]);
    await relay.post(INVOKE, { command_id: 'c1' });
    expect(await spans.drawn(5)).toEqual([
      'server open completed',
      '  client callboard.dispatch completed',
      'server open completed ~open',
      'server callboard.await completed ~open',
      'server open completed ~open',
    ]);
  });

  it('that only read it have none', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    await relay.client();
    await relay.post(INVOKE, { command_id: 'c1', wait_for: 'admitted' });
    await relay.rest('/commands/alice/tab/c1', { requester: 'alice' });
    expect((await spans.drawn(1)).filter((line) => line.startsWith('server'))).toEqual(['server open pending']);
  });
});

describe('a client that connects again', () => {
  it('as the same instance goes on: the first dispatch ends with its link, and a second span follows', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    const tab = await relay.client();
    const waiting = relay.post(INVOKE, { command_id: 'c1' });
    await tab.next('command');
    tab.ws.terminate();
    await until(() => spans.ended().length === 1);
    const again = await relay.client();
    again.send({ type: 'result', command_id: 'c1' });
    await waiting;
    expect(await spans.drawn(3)).toEqual([
      'server open completed',
      '  client callboard.dispatch !link_closed',
      '  client callboard.resume completed',
    ]);
  });

  it('as another instance replaces it: its command ends as unknown', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    const tab = await relay.client();
    const waiting = relay.post(INVOKE, { command_id: 'c1' });
    await tab.next('command');
    await relay.client({ instance_id: 'i2' });
    await until(() => spans.ended().length === 1);
    await relay.clock.advance(5_000);
    await waiting;
    expect(await spans.drawn(2)).toEqual([
      'server open outcome_unknown !instance_replaced',
      '  client callboard.dispatch !link_closed',
    ]);
  });
});
