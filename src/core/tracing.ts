/** The port through which core records spans. `platform/tracing.ts` implements it over OpenTelemetry. */
import type { TraceContext } from './trace-context.ts';

/** `server`: work for a request that came in. `client`: a request to another process. `internal`: neither. */
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
  /** Whether a sampler decided against recording, which the rest of the call respects. False also without a sampler. */
  readonly declined: boolean;
  /** What later spans name as their parent; null unless the span is recorded. */
  readonly context: TraceContext | null;
  event(name: string): void;
  /** Names a span of another trace that this work belongs to. */
  link(to: TraceContext): void;
  /** Call it once. */
  end(how: SpanEnd): void;
}

export interface Tracing {
  /** Whether spans may name users and clients. */
  readonly namesUsers: boolean;
  /**
   * Starts a span. `parent` null: it begins a new trace. Whether it is recorded is decided outside of core; a parent
   * that is not sampled is respected there.
   */
  start(kind: SpanKind, name: string, parent: TraceContext | null): Span;
}
