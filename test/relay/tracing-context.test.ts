/** Tests the trace contexts that callers give: what clients and log lines get of them, and what spans do not show. */
import { describe, expect, it } from 'vitest';
import { AlwaysOffSampler } from '@opentelemetry/sdk-trace';
import { recordSpans } from '../kit/spans.ts';
import { startTestRelay, until, type TestRelay } from './kit/test-relay.ts';
import { INVOKE, SPAN, TRACE, tracedRelay } from './kit/traced-relay.ts';

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
