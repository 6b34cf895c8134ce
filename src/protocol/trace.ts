/**
 * The part of `@opentelemetry/api` that Callboard uses, as types, and an implementation of its contexts and
 * `tracestate` lists. The `trace` object of that package fits these types, and so may any other object: nothing here
 * imports a package.
 */

/** What identifies a span to other processes. `traceFlags`: the lowest bit says whether the span is sampled. */
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

/** An immutable map, which carries the parent span. */
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
  /** Starts a span. Without a context, it is a child of the span that is active, if there is one. */
  startSpan(name: string, options: SpanOptionsLike, context?: ContextLike): SpanLike;
  /** Starts a span and calls the function, in which that span is active. Returns what the function returns. */
  startActiveSpan<T>(name: string, options: SpanOptionsLike, context: ContextLike, run: (span: SpanLike) => T): T;
}

/** The `trace` object of `@opentelemetry/api` 1.9 or later, or an object of the same form. */
export interface TraceApi {
  getTracer(name: string, version?: string): TracerLike;
  setSpanContext(context: ContextLike, spanContext: SpanContextLike): ContextLike;
}

/** The kinds of spans, and the status of a failed one, as the API numbers them. */
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

/** A context that holds one value more than another context. */
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

/** A context without a span: a span that is started in it begins a new trace. */
export const NO_PARENT: ContextLike = {
  getValue: () => undefined,
  setValue: (key, value) => new WithValue(key, value, NO_PARENT),
  deleteValue: () => NO_PARENT,
};

// The `tracestate` list of W3C Trace Context in the form that OpenTelemetry hands to samplers and exporters.

/** Reads a valid list. Immutable: `set` and `unset` return another list, and a set member comes first. */
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
