/** The spans of calls, as trees: for each outcome, refusal, repeat and replacement. */
import { describe, expect, inject, it } from 'vitest';
import { AlwaysOffSampler } from '@opentelemetry/sdk-trace';
import { createLinkCaller } from '../../src/clients/caller/index.ts';
import { createRuntime } from '../../src/clients/runtime/index.ts';
import { recordSpans } from '../kit/spans.ts';
import { startTestRelay, until, type TestRelay } from './kit/test-relay.ts';

const INVOKE = '/connections/alice/tab/actions/open';
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const KEY = { userId: 'alice', clientId: 'tab', commandId: 'c1' };

async function tracedRelay(): Promise<{ readonly spans: ReturnType<typeof recordSpans>; readonly relay: TestRelay }> {
  const spans = recordSpans();
  return { spans, relay: await startTestRelay({}, { tracing: spans.api }) };
}

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
    expect(nodes.size).toBe(inject('topology') === 'shared-two' ? 2 : 1);
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
    // The client is not known to have this action.
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

describe('the trace of a caller', () => {
  it('is continued by W3C headers, and the client gets the span of the dispatch', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    const tab = await relay.client();
    const headers = { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'vendor=1' };
    const path = INVOKE;
    const token = await relay.token('alice');
    const body = JSON.stringify({ command_id: 'c1' });
    const waiting = relay.ask(path, {
      method: 'POST',
      body,
      token,
      headers: { 'content-type': 'application/json', ...headers },
    });
    const frame = await tab.next('command');
    tab.send({ type: 'result', command_id: 'c1' });
    await waiting;
    await spans.drawn(2);
    const [call, dispatch] = ['open', 'callboard.dispatch'].map((name) =>
      spans.ended().find((span) => span.name === name),
    );
    expect(call?.parentSpanContext).toMatchObject({ traceId: TRACE, spanId: SPAN });
    expect(call?.spanContext().traceState?.serialize()).toBe('vendor=1');
    expect(frame).toMatchObject({
      trace_id: TRACE,
      parent_span_id: dispatch?.spanContext().spanId,
      trace_flags: '01',
      trace_state: 'vendor=1',
    });
    // History keeps what the caller gave.
    const history = await relay.rest('/history/command/alice/c1');
    expect(history.json).toMatchObject({ items: [{ trace_id: TRACE, parent_span_id: SPAN }, {}] });
  });

  it('that is not sampled is respected: nothing is recorded, and the client gets its flags', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    const tab = await relay.client();
    const caller = await relay.caller('alice');
    caller.send({
      type: 'invoke',
      ref: 'r1',
      client_id: 'tab',
      action: 'open',
      trace_id: TRACE,
      parent_span_id: SPAN,
      trace_flags: '00',
    });
    const frame = await tab.next('command');
    expect(frame).toMatchObject({ trace_id: TRACE, trace_flags: '00' });
    tab.send({ type: 'result', command_id: frame.command_id });
    await caller.next('outcome');
    expect(await spans.drawn(0)).toEqual([]);
  });

  it('absent, and declined by the sampler: no node records anything, and the client gets its flags', async () => {
    const spans = recordSpans(new AlwaysOffSampler());
    await using relay = await startTestRelay({}, { tracing: spans.api });
    const tab = await relay.client();
    const waiting = relay.post(INVOKE, { command_id: 'c1' });
    const frame = await tab.next('command');
    expect(frame).toMatchObject({ trace_flags: '00' });
    expect(frame).not.toHaveProperty('trace_id');
    tab.send({ type: 'result', command_id: 'c1' });
    expect((await waiting).json).toMatchObject({ outcome: 'completed' });
    expect(await spans.drawn(0)).toEqual([]);
  });

  it('with ids of another kind stays text: the relay begins a trace, which names that text', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    const tab = await relay.client();
    const waiting = relay.post(INVOKE, { command_id: 'c1', trace_id: 'order-7' });
    const frame = await tab.next('command');
    expect(frame).toMatchObject({ trace_id: 'order-7' });
    expect(frame).not.toHaveProperty('parent_span_id');
    tab.send({ type: 'result', command_id: 'c1' });
    await waiting;
    expect(await spans.drawn(2)).toHaveLength(2);
    const call = spans.ended().find(({ name }) => name === 'open');
    expect(call?.attributes).toMatchObject({ 'callboard.caller_trace_id': 'order-7' });
  });

  it('absent: history names the trace that the relay began', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    await relay.client();
    await relay.post(INVOKE, { command_id: 'c1', wait_for: 'admitted' });
    await spans.drawn(1);
    const history = await relay.rest('/history/command/alice/c1');
    const call = spans.ended().find(({ name }) => name === 'open');
    expect(history.json).toMatchObject({ items: [{ trace_id: call?.spanContext().traceId, parent_span_id: null }] });
  });
});

describe('a call from library to library', () => {
  it('is one tree over the caller, the relay and the client, which the handler continues', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    const url = (at: string): string => `${at.replace('http', 'ws')}/connect`;
    const token = (await relay.token('alice')) ?? '';
    const runtime = createRuntime({
      ...{ url: url(relay.linkUrl), token, clientId: 'tab', clientType: 'web' },
      tracing: spans.api,
    });
    runtime.handle('open', {}, () => ({ ok: true }));
    runtime.handle('fail', {}, () => {
      throw new Error('no');
    });
    runtime.connect();
    await runtime.ready();
    const caller = createLinkCaller({ url: url(relay.url), token, tracing: spans.api });
    await using __ = {
      [Symbol.asyncDispose]: () => Promise.all([caller.close(), runtime.close({ withinMs: 0 })]).then(() => {}),
    };
    const target = { userId: 'alice', clientId: 'tab' };
    expect(await caller.invoke({ ...target, action: 'open' }, {}, { commandId: 'c1' })).toMatchObject({
      outcome: 'completed',
    });
    expect(await spans.drawn(4)).toEqual([
      'client open completed',
      '  server open completed',
      '    client callboard.dispatch completed [acknowledged]',
      '      server open completed',
    ]);
    await caller.invoke({ ...target, action: 'fail' }, {}, { commandId: 'c2' });
    expect((await spans.drawn(8)).slice(4)).toEqual([
      'client fail failed !handler_failed',
      '  server fail failed !handler_failed',
      '    client callboard.dispatch failed !handler_failed [acknowledged]',
      '      server fail failed !handler_failed',
    ]);
    await expect(caller.invoke({ ...target, action: 'none' })).rejects.toMatchObject({ code: 'action_not_advertised' });
    expect((await spans.drawn(10)).slice(8)).toEqual([
      'client none action_not_advertised !action_not_advertised',
      '  server _OTHER action_not_advertised !action_not_advertised',
    ]);
    await caller.await(KEY);
    expect((await spans.drawn(12)).slice(10)).toEqual([
      'client callboard.await completed',
      '  server callboard.await completed ~open',
    ]);
  });
});

describe('log lines', () => {
  const lineOf = (relay: TestRelay, path: string): Record<string, unknown> | undefined =>
    relay.lines.map((line) => JSON.parse(line)).find((line) => line.msg === 'request' && line.path === path);

  it('of a call name its span; where nothing is traced, they name what the caller gave', async () => {
    const { spans, relay } = await tracedRelay();
    await using _ = relay;
    await relay.post(INVOKE, { command_id: 'c1' });
    await until(() => lineOf(relay, INVOKE) !== undefined);
    const { traceId, spanId } = spans.ended()[0]?.spanContext() ?? {};
    expect(lineOf(relay, INVOKE)).toMatchObject({ trace_id: traceId, span_id: spanId, trace_flags: '01' });

    await using plain = await startTestRelay();
    const headers = { traceparent: `00-${TRACE}-${SPAN}-00` };
    await plain.rest('/users', { headers });
    await until(() => lineOf(plain, '/users') !== undefined);
    expect(lineOf(plain, '/users')).toMatchObject({ trace_id: TRACE, span_id: SPAN, trace_flags: '00' });
    await plain.rest('/actions');
    await until(() => lineOf(plain, '/actions') !== undefined);
    expect(lineOf(plain, '/actions')).not.toHaveProperty('trace_id');
  });
});

describe('personal data', () => {
  it('is in no span unless the operator asks for it', async () => {
    for (const traceIds of [false, true]) {
      const spans = recordSpans();
      await using relay = await startTestRelay({ traceIds }, { tracing: spans.api });
      const tab = await relay.client();
      const waiting = relay.post(INVOKE, { command_id: 'c1', params: { text: 's3cret' } });
      await tab.next('command');
      tab.send({ type: 'result', command_id: 'c1' }, { text: 's3cret' });
      await waiting;
      await spans.drawn(2);
      const shown = JSON.stringify(spans.ended().map(({ attributes, events, name }) => ({ attributes, events, name })));
      expect(shown).not.toContain('s3cret');
      expect(shown.includes('alice')).toBe(traceIds);
      expect(shown.includes('"callboard.client_id":"tab"')).toBe(traceIds);
    }
  });
});
