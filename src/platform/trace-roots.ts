/** Wraps a tracer of OpenTelemetry and decides which new traces it records. Records nothing itself. */
import { NO_PARENT, type SpanLike, type TracerLike } from '../protocol/trace-api.ts';

/**
 * Returns a tracer that records the fraction `ratio` (0 to 1) of the new traces. If `ratio` is null, `tracer` itself
 * decides. Otherwise the decision is made before `tracer` is asked. For a call that is not recorded, asking would cost
 * more than the rest of its tracing. Only `startSpan` decides: the relay starts its spans in no other way.
 */
export function decideRoots(tracer: TracerLike, ratio: number | null): TracerLike {
  if (ratio === null) return tracer;
  return {
    startSpan: (name, options, context) =>
      context === NO_PARENT && Math.random() >= ratio ? DECLINED : tracer.startSpan(name, options, context),
    startActiveSpan: (name, options, context, run) => tracer.startActiveSpan(name, options, context, run),
  };
}

/**
 * A span that is not recorded. Its ids are valid, which tells the relay that a sampler has decided. They are sent to
 * nobody.
 */
const DECLINED: SpanLike = {
  spanContext: () => ({ traceId: 'f'.repeat(32), spanId: 'f'.repeat(16), traceFlags: 0 }),
  isRecording: () => false,
  setAttributes() {},
  addEvent() {},
  addLink() {},
  setStatus() {},
  updateName() {},
  end() {},
};
