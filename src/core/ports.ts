/**
 * The ports through which core reaches the platform: clock, random ids and digests, log, spans, the event loop, and
 * figures of the process.
 */
import type { TraceContext } from './trace-context.ts';

/** Cancels the timer or the listener that it was returned for. Idempotent. */
export type Cancel = () => void;

/**
 * Time as a port. `now` is wall time in epoch milliseconds; it may be set forward or back by any amount. `monotonic` is
 * the time that elapsed since an arbitrary start, in milliseconds with fractions: it never goes back, and a step of the
 * wall clock does not change it. Rates, cooldowns and lifetimes of cached values are measured by `monotonic`. Times
 * that other processes or people read come from `now`. Timers use monotonic time too. A callback of `after` runs at
 * most once and never before `after` has returned.
 */
export interface Clock {
  now(): number;
  monotonic(): number;
  after(ms: number, run: () => void): Cancel;
  every(ms: number, run: () => void): Cancel;
}

/**
 * Randomness and digests as a port, so that core imports no `node:` module. All methods are synchronous; all but
 * `random*` are pure.
 */
export interface Crypto {
  /** Returns a time-ordered UUID (version 7): ids sort by the millisecond of their creation. */
  randomId(): string;
  /** Returns 256 random bits as base64url (43 characters). */
  randomToken(): string;
  /** Returns a random whole number from 0 to `below` - 1. */
  randomInt(below: number): number;
  /** Returns the SHA-256 of the text as base64url (43 characters). */
  sha256(text: string): string;
  /** Returns the HMAC-SHA-256 of the text under the deployment's cursor key, as base64url (43 characters). */
  sign(text: string): string;
  /** Compares in a time that does not depend on where the texts differ. Texts of different length are unequal. */
  equal(a: string, b: string): boolean;
  toBase64Url(text: string): string;
  /** Decodes base64url. Undefined if the text is not base64url of UTF-8. */
  fromBase64Url(text: string): string | undefined;
}

/**
 * Writes one line. `shared`: further fields, which several lines have in common. A log examines them once for each
 * object, so the object must not change after its first line.
 */
type WriteLine = (fields: Record<string, unknown>, message: string, shared?: Record<string, unknown>) => void;

/** The port for structured logging. Fields never hold a token or a payload. */
export interface Log {
  readonly debug: WriteLine;
  readonly info: WriteLine;
  readonly warn: WriteLine;
  readonly error: WriteLine;
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

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
  /** Whether the span is marked as failed. */
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

/** The port through which core records spans. `platform/tracing.ts` implements it over OpenTelemetry. */
export interface Tracing {
  /** Whether spans may name users and clients. */
  readonly namesUsers: boolean;
  /**
   * Starts a span. If `parent` is null, the span begins a new trace. The implementation decides whether the span is
   * recorded, and does not record the child of a parent that is not sampled.
   */
  start(kind: SpanKind, name: string, parent: TraceContext | null): Span;
}

/** The event loop of the process: lets work wait for the end of a turn, or for other work. Tests implement this port to decide when it continues. */
export interface EventLoop {
  /**
   * Calls `run` once, after the loop has handled the input and the timers that are ready now. Never in the same tick.
   */
  afterOthers(run: () => void): void;
  /**
   * Calls `run` once, at the end of this turn of the loop: after the input and the timers that it has handled, in the
   * order of the calls. Never in the same tick.
   */
  atTurnEnd(run: () => void): void;
}

/**
 * Figures of a process. `memoryBytes`: its resident memory. `loopDelayMs`: how late its event loop ran, in
 * milliseconds: 99 % of the timers that measured it were at most this late. Null before the first measurement.
 */
export type ProcessFigures = { readonly memoryBytes: number; readonly loopDelayMs: number | null };

/** The port for figures of the process that core runs in. */
export interface ProcessMeter {
  /** Returns the figures now. The delay is that since the last call. */
  take(): ProcessFigures;
}
