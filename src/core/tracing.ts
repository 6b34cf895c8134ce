/** The port through which core records spans. `platform/tracing.ts` implements it over OpenTelemetry. */
import type { TraceContext } from './trace-context.ts';

/**
 * What a span covers. `server`: work for a request that came in. `client`: a request to another process. `internal`:
 * other work.
 */
export type SpanKind = 'server' | 'client' | 'internal';
export type SpanAttributes = { [name: string]: string | number | boolean };

/** How a span ends. */
export type SpanEnd = {
  /** Replaces the name that the span was started with. */
  readonly name?: string;
  /** Whether the work failed, as far as this span tells. */
  readonly failed: boolean;
  readonly attributes: SpanAttributes;
};

/** One piece of work. Methods have no effect on a span that is not recorded. */
export interface Span {
  readonly recorded: boolean;
  /**
   * Whether a sampler decided not to record this span. The rest of the call follows that decision. Also false if there
   * is no sampler.
   */
  readonly declined: boolean;
  /** The context that later spans name as their parent; null if the span is not recorded. */
  readonly context: TraceContext | null;
  event(name: string): void;
  /** Links this span to a span of another trace, which is about the same work. */
  link(to: TraceContext): void;
  /** Ends the span. Call it once. */
  end(how: SpanEnd): void;
}

export interface Tracing {
  /** Whether spans may name users and clients. */
  readonly namesUsers: boolean;
  /**
   * Starts a span. If `parent` is null, the span begins a new trace. The implementation decides whether the span is
   * recorded, and does not record the child of a parent that is not sampled.
   */
  start(kind: SpanKind, name: string, parent: TraceContext | null): Span;
}
