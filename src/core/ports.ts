/**
 * The ports through which core uses the platform: clock, random ids and digests, log, trace spans, event loop, and
 * process figures.
 */
import type { TraceContext } from './trace-context.ts';

/** Cancels a timer or removes a listener. Idempotent. */
export type Cancel = () => void;

/**
 * Time. `now`: wall time in epoch milliseconds, which may be set forward or back by any amount. `monotonic`: elapsed
 * milliseconds, with fractions, since an arbitrary start; it never goes back and does not change with the wall clock.
 * Rates, cooldowns and lifetimes of cached values use `monotonic`. Times that people or other processes read use `now`.
 * Timers use monotonic time. A callback of `after` runs at most once, and never before `after` has returned.
 */
export interface Clock {
  now(): number;
  monotonic(): number;
  after(ms: number, run: () => void): Cancel;
  every(ms: number, run: () => void): Cancel;
}

/**
 * Randomness and digests. They are a port because core imports no `node:` module. All methods are synchronous. All
 * except `random*` are pure.
 */
export interface Crypto {
  /** Returns a UUID of version 7. Such ids sort by the millisecond in which they were made. */
  randomId(): string;
  /** Returns 256 random bits as base64url (43 characters). */
  randomToken(): string;
  /** Returns a random whole number from 0 to `below` - 1. */
  randomInt(below: number): number;
  /** Returns the SHA-256 of the text as base64url (43 characters). */
  sha256(text: string): string;
  /** Returns the HMAC-SHA-256 of the text with the deployment's cursor key, as base64url (43 characters). */
  sign(text: string): string;
  /**
   * Whether two texts are equal. The time it takes does not depend on where they differ. Texts of different lengths are
   * unequal.
   */
  equal(a: string, b: string): boolean;
  toBase64Url(text: string): string;
  /** Decodes base64url. Undefined if the text is not base64url, or its bytes are not UTF-8. */
  fromBase64Url(text: string): string | undefined;
}

/**
 * Writes one log line. `shared`: fields that several lines have in common. A log checks such an object only once, so it
 * must not change after its first line.
 */
type WriteLine = (fields: Record<string, unknown>, message: string, shared?: Record<string, unknown>) => void;

/** Structured logging. Log fields never contain a token or a payload. */
export interface Log {
  readonly debug: WriteLine;
  readonly info: WriteLine;
  readonly warn: WriteLine;
  readonly error: WriteLine;
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * What a span covers. `server`: handling an incoming request. `client`: a request to another process. `internal`: other
 * work.
 */
export type SpanKind = 'server' | 'client' | 'internal';
export type SpanAttributes = { [name: string]: string | number | boolean };

/** How a span ends. */
export type SpanEnd = {
  /** Replaces the name with which the span was started. */
  readonly name?: string;
  /** Whether the span is marked as failed. */
  readonly failed: boolean;
  readonly attributes: SpanAttributes;
};

/** One piece of work. If the span is not recorded, its methods do nothing. */
export interface Span {
  readonly recorded: boolean;
  /**
   * Whether a sampler decided not to record this span. If so, no later span of the call is recorded either. False if
   * there is no sampler.
   */
  readonly declined: boolean;
  /** The context that child spans name as their parent; null if this span is not recorded. */
  readonly context: TraceContext | null;
  event(name: string): void;
  /** Links this span to a span of another trace that is about the same work. */
  link(to: TraceContext): void;
  /** Ends the span. Call it once. */
  end(how: SpanEnd): void;
}

/** Records trace spans. `platform/tracing.ts` implements this port over OpenTelemetry. */
export interface Tracing {
  /** Whether spans may contain the names of users and clients. */
  readonly namesUsers: boolean;
  /**
   * Starts a span. If `parent` is null, the span begins a new trace. The implementation decides whether the span is
   * recorded. It never records the child of a parent that is not sampled.
   */
  start(kind: SpanKind, name: string, parent: TraceContext | null): Span;
}

/**
 * The event loop of the process. With it, work waits for the end of a turn, or for other work. Tests implement this
 * port to decide when the work continues.
 */
export interface EventLoop {
  /** Calls `run` once, after the loop has handled the input and timers that are ready now. Never in the same tick. */
  afterOthers(run: () => void): void;
  /**
   * Calls `run` once at the end of this turn of the loop, after the input and timers of the turn. Calls run in the
   * order in which they were requested, never in the same tick.
   */
  atTurnEnd(run: () => void): void;
}

/**
 * Figures of a process. `memoryBytes`: its resident memory. `loopDelayMs`: how late its event loop runs, in
 * milliseconds: the 99th percentile of measuring timers; null before the first measurement.
 */
export type ProcessFigures = { readonly memoryBytes: number; readonly loopDelayMs: number | null };

/** Measures the process in which core runs. */
export interface ProcessMeter {
  /** Returns the figures. The delay is measured since the last call. */
  take(): ProcessFigures;
}
