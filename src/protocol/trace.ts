/**
 * The types of `@opentelemetry/api` that Callboard uses, and an own implementation of its contexts and `tracestate`
 * lists. Imports no package: the `trace` object of that package fits these types.
 */

/** The identity of a span for other processes. `traceFlags`: its lowest bit says whether the span is sampled. */
export type SpanContextLike = {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  readonly isRemote?: boolean;
  readonly traceState?: TraceStateLike;
};

/** The members of a `tracestate` list. */
interface TraceStateLike {
  set(key: string, value: string): TraceStateLike;
  unset(key: string): TraceStateLike;
  get(key: string): string | undefined;
  serialize(): string;
}

/** An immutable map that carries the parent span. */
export interface ContextLike {
  getValue(key: symbol): unknown;
  setValue(key: symbol, value: unknown): ContextLike;
  deleteValue(key: symbol): ContextLike;
}

type SpanValue = string | number | boolean;
export type SpanValues = { [name: string]: SpanValue };

export interface SpanLike {
  spanContext(): SpanContextLike;
  setAttributes(values: SpanValues): unknown;
  addEvent(name: string): unknown;
  addLink(link: { context: SpanContextLike }): unknown;
  setStatus(status: { code: number }): unknown;
  updateName(name: string): unknown;
  end(): void;
  isRecording(): boolean;
}

/** The options of a new span. `kind`: SERVER, CLIENT or INTERNAL. */
type SpanOptionsLike = { kind: number; attributes?: SpanValues };

export interface TracerLike {
  /** Starts a span. If `context` is absent, the active span is its parent; if there is none, a new trace begins. */
  startSpan(name: string, options: SpanOptionsLike, context?: ContextLike): SpanLike;
  /** Starts a span, makes it the active one, and calls `run`. Returns the result of `run`. */
  startActiveSpan<T>(name: string, options: SpanOptionsLike, context: ContextLike, run: (span: SpanLike) => T): T;
}

/** The `trace` object of `@opentelemetry/api` 1.9 or later, or an object with the same methods. */
export interface TraceApi {
  getTracer(name: string, version?: string): TracerLike;
  setSpanContext(context: ContextLike, spanContext: SpanContextLike): ContextLike;
}

/** The numbers that the API gives to the kinds of spans and to the status of a failed span. */
export const INTERNAL = 0;
export const SERVER = 1;
export const CLIENT = 2;
export const STATUS_ERROR = 2;

const TRACE_ID = /^(?!0+$)[0-9a-f]{32}$/;
const SPAN_ID = /^(?!0+$)[0-9a-f]{16}$/;

/** Whether both are ids of W3C Trace Context: 32 and 16 hexadecimal digits in lower case, not all zero. */
export function isTraceContext(traceId: string, spanId: string): boolean {
  return TRACE_ID.test(traceId) && SPAN_ID.test(spanId);
}

/** A context that adds one value to another context. */
class WithValue implements ContextLike {
  readonly #key: symbol;
  readonly #value: unknown;
  readonly #below: ContextLike;

  constructor(key: symbol, value: unknown, below: ContextLike) {
    this.#key = key;
    this.#value = value;
    this.#below = below;
  }

  getValue(key: symbol): unknown {
    return key === this.#key ? this.#value : this.#below.getValue(key);
  }

  setValue(key: symbol, value: unknown): ContextLike {
    return new WithValue(key, value, this);
  }

  deleteValue(key: symbol): ContextLike {
    return new WithValue(key, undefined, this);
  }
}

/** A context without a span. A span that is started in it begins a new trace. */
export const NO_PARENT: ContextLike = {
  getValue: () => undefined,
  setValue: (key, value) => new WithValue(key, value, NO_PARENT),
  deleteValue: () => NO_PARENT,
};

// The `tracestate` of W3C Trace Context, in the form that OpenTelemetry passes to samplers and exporters.

/** Parses a valid list. Immutable: `set` and `unset` return a new list, and a member that was set comes first. */
export function traceStateOf(text: string): TraceStateLike {
  const members = text.split(',');
  const without = (key: string): readonly string[] => members.filter((member) => !member.startsWith(`${key}=`));
  return {
    get: (key) => members.find((member) => member.startsWith(`${key}=`))?.slice(key.length + 1),
    set: (key, value) => traceStateOf([`${key}=${value}`, ...without(key)].join(',')),
    unset: (key) => traceStateOf(without(key).join(',')),
    serialize: () => text,
  };
}
