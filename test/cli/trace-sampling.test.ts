/** Tests which traces `callboard serve` records, with the SDK of OpenTelemetry. */
import * as sdk from '@opentelemetry/sdk-trace';
import { trace } from '@opentelemetry/api';
import { describe, expect, it } from 'vitest';
import { rootRatioOf, samplerOf, samplingOf } from '../../src/cli/trace-export.ts';
import type { TraceContext } from '../../src/core/trace-context.ts';
import { decideRoots, createTracing, type TraceApi } from '../../src/platform/tracing.ts';
const SAMPLED: TraceContext = {
  traceId: '1'.repeat(32),
  parentSpanId: '2'.repeat(16),
  traceFlags: '01',
  traceState: null,
};
const UNSAMPLED: TraceContext = { ...SAMPLED, traceFlags: '00' };

/** Returns the tracing of a relay with this setting, and the number of times that it asked the SDK for a span. */
function tracingWith(sampler: string, ratio?: string) {
  const sampling = samplingOf({
    OTEL_TRACES_SAMPLER: sampler,
    ...(ratio !== undefined && { OTEL_TRACES_SAMPLER_ARG: ratio }),
  });
  const provider = new sdk.TracerProvider({ sampler: samplerOf(sdk, sampling) });
  const sdkTracer = provider.getTracer('test') as ReturnType<TraceApi['getTracer']>;
  const counted = { asked: 0 };
  const tracer: ReturnType<TraceApi['getTracer']> = {
    startSpan(...call) {
      counted.asked++;
      return sdkTracer.startSpan(...call);
    },
    startActiveSpan: sdkTracer.startActiveSpan.bind(sdkTracer),
  };
  const setSpanContext = trace.setSpanContext.bind(trace) as TraceApi['setSpanContext'];
  const api: TraceApi = { getTracer: () => decideRoots(tracer, rootRatioOf(sampling)), setSpanContext };
  const tracing = createTracing(api, { version: '1', namesUsers: false });
  if (!tracing) throw new Error('no tracing');
  return { counted, start: (parent: TraceContext | null) => tracing.start('server', 'work', parent) };
}

describe('a parent-based sampler', () => {
  it.each([['parentbased_always_off'], ['parentbased_traceidratio', '0']])(
    'declines new traces without asking the SDK: %s',
    (sampler, ratio?: string) => {
      const { counted, start } = tracingWith(sampler, ratio);
      expect(start(null)).toMatchObject({ recorded: false, declined: true, context: null });
      expect(counted.asked).toBe(0);
    },
  );

  it.each([['parentbased_always_off'], ['parentbased_always_on'], ['parentbased_traceidratio', '0.5']])(
    'does what the caller decided: %s',
    (sampler, ratio?: string) => {
      const { start } = tracingWith(sampler, ratio);
      expect(start(SAMPLED)).toMatchObject({ recorded: true, context: { traceId: SAMPLED.traceId } });
      expect(start(UNSAMPLED)).toMatchObject({ recorded: false, declined: true });
    },
  );

  it('records its ratio of the new traces, and the later spans of each', () => {
    const { counted, start } = tracingWith('parentbased_traceidratio', '0.25');
    const recorded = Array.from({ length: 4000 }, () => start(null)).filter((span) => span.recorded);
    // The bounds are four standard deviations of a binomial distribution away: sqrt(4000 * 0.25 * 0.75) is 27.4.
    expect(recorded.length).toBeGreaterThan(1000 - 110);
    expect(recorded.length).toBeLessThan(1000 + 110);
    expect(counted.asked).toBe(recorded.length);
    for (const { context } of recorded.slice(0, 20)) expect(start(context).recorded).toBe(true);
  });

  it('records every new trace at 1', () => {
    const { start } = tracingWith('parentbased_traceidratio', '1');
    expect(Array.from({ length: 50 }, () => start(null)).every((span) => span.recorded)).toBe(true);
  });
});

describe('a sampler that ignores the caller', () => {
  it('is asked for each span', () => {
    const { counted, start } = tracingWith('traceidratio', '0');
    expect(start(SAMPLED)).toMatchObject({ recorded: false, declined: true });
    expect(start(null)).toMatchObject({ recorded: false, declined: true });
    expect(counted.asked).toBe(2);
  });
});
