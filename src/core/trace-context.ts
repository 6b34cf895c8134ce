/** Reads and writes W3C Trace Context: the ids by which a request belongs to a trace. */

/** The trace context of a request, valid by the W3C rules. */
export type TraceContext = {
  /** The id of the trace: 32 hexadecimal digits in lower case, not all zero. */
  readonly traceId: string;
  /** The id of the span that contains the request: 16 hexadecimal digits in lower case, not all zero. */
  readonly parentSpanId: string;
  /**
   * The trace flags as two hexadecimal digits. From a header, only the flags of version 00 are kept (`sampled` and
   * `random`).
   */
  readonly traceFlags: string;
  /** The text of `tracestate`, at most 512 characters; null if there is none. */
  readonly traceState: string | null;
};

const PARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const ZEROS = /^0+$/;
const SAMPLED_AND_RANDOM = 0b11;

const KEY = /^[a-z0-9][a-z0-9_*/@-]{0,255}$/;
const VALUE = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
/** The most members, and the most characters, of a `tracestate` that are kept. W3C Trace Context defines both. */
const STATE_MEMBERS = 32;
const STATE_CHARS = 512;
/** If a `tracestate` is too long, members longer than this are dropped first. In characters. */
const LONG_MEMBER_CHARS = 128;

type Headers = { readonly [name: string]: string | readonly string[] | undefined };

/**
 * Reads the trace context from the headers `traceparent` and `tracestate`. Undefined if `traceparent` is absent or
 * malformed. A malformed `tracestate` is ignored.
 */
export function traceContextOf(headers: Headers): TraceContext | undefined {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== 'string') return undefined;
  const [, version = 'ff', traceId = '', parentSpanId = '', flags = '', rest] = PARENT.exec(traceparent.trim()) ?? [];
  // Versions after 00 may append members. Version 00 has none, and `ff` is not a valid version.
  if (version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  if (ZEROS.test(traceId) || ZEROS.test(parentSpanId)) return undefined;
  const known = Number.parseInt(flags, 16) & SAMPLED_AND_RANDOM;
  return {
    traceId,
    parentSpanId,
    traceFlags: known.toString(16).padStart(2, '0'),
    traceState: typeof tracestate === 'string' ? traceStateOf(tracestate) : null,
  };
}

/**
 * The trace fields of a caller's request: ids of W3C Trace Context, or any other texts. A field is null if the caller
 * did not give it.
 */
export type TraceFields = {
  readonly traceId: string | null;
  readonly parentSpanId: string | null;
  /** The trace flags of W3C Trace Context, two hexadecimal digits. */
  readonly traceFlags: string | null;
  /** The `tracestate` of W3C Trace Context, at most 512 characters. */
  readonly traceState: string | null;
};

const TRACE_ID = /^[0-9a-f]{32}$/;
const SPAN_ID = /^[0-9a-f]{16}$/;
const FLAGS = /^[0-9a-f]{2}$/;
const SAMPLED = '01';

/**
 * Returns the trace context of the fields; null if the ids are not ids of W3C Trace Context. Without valid flags the
 * trace counts as sampled, because a caller who names a span expects to find the relay's spans below it.
 */
export function traceContextIn({ traceId, parentSpanId, traceFlags, traceState }: TraceFields): TraceContext | null {
  if (traceId === null || parentSpanId === null || !TRACE_ID.test(traceId) || !SPAN_ID.test(parentSpanId)) return null;
  if (ZEROS.test(traceId) || ZEROS.test(parentSpanId)) return null;
  const flags = traceFlags !== null && FLAGS.test(traceFlags) ? traceFlags : SAMPLED;
  return { traceId, parentSpanId, traceFlags: flags, traceState };
}

/** Returns the `tracestate` of a frame; null if it is absent or malformed. */
export function traceStateIn(text: string | undefined): string | null {
  return text === undefined ? null : traceStateOf(text);
}

/** Returns the trace flags, two hexadecimal digits; null if the text is absent or malformed. */
export function traceFlagsIn(text: string | undefined): string | null {
  return text !== undefined && FLAGS.test(text) ? text : null;
}

/** Whether the flags say that the trace is recorded. */
export function isSampled(traceFlags: string): boolean {
  return (Number.parseInt(traceFlags, 16) & 1) === 1;
}

/** Returns the text of a `traceparent` header, version 00. */
export function traceparentOf({ traceId, parentSpanId, traceFlags }: TraceContext): string {
  return `00-${traceId}-${parentSpanId}-${traceFlags}`;
}

/** Reads a text that `traceparentOf` wrote. Cuts it by position, because splitting takes several times as long. */
export function readTraceparent(text: string, traceState: string | null): TraceContext {
  return { traceId: text.slice(3, 35), parentSpanId: text.slice(36, 52), traceFlags: text.slice(53, 55), traceState };
}

/** Stored in place of a `traceparent` if a sampler declined the call. No node records a span of that call. */
export const DECLINED = '00';

/** The fields of a log line that belongs to a trace. OpenTelemetry defines their names. */
type TraceLogFields = { readonly trace_id?: string; readonly span_id?: string; readonly trace_flags?: string };

export function traceLogFields(context: TraceContext | null | undefined): TraceLogFields {
  if (!context) return {};
  return { trace_id: context.traceId, span_id: context.parentSpanId, trace_flags: context.traceFlags };
}

/**
 * Returns the trace fields of a log line about a command: those of its call's span or, if there is none, of its
 * caller's trace.
 */
export function commandTraceFields({
  callSpan,
  ...given
}: TraceFields & { readonly callSpan: string | null }): TraceLogFields {
  if (callSpan !== null && callSpan !== DECLINED) return traceLogFields(readTraceparent(callSpan, null));
  return given.traceId === null ? {} : { trace_id: given.traceId };
}

/** Shortens a `tracestate` to its bounds. Null if it is empty or malformed. */
function traceStateOf(text: string): string | null {
  const members = text
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '');
  const keys = new Set(members.map((member) => member.slice(0, Math.max(0, member.indexOf('=')))));
  const valid = members.length <= STATE_MEMBERS && keys.size === members.length && members.every(isMember);
  return (valid && shortened(members).join(',')) || null;
}

function isMember(member: string): boolean {
  const cut = member.indexOf('=');
  return cut > 0 && KEY.test(member.slice(0, cut)) && VALUE.test(member.slice(cut + 1));
}

/** Drops the long members first, then members from the end, until the list fits. */
function shortened(members: readonly string[]): readonly string[] {
  const fits = (list: readonly string[]): boolean => list.join(',').length <= STATE_CHARS;
  let kept = fits(members) ? members : members.filter(({ length }) => length <= LONG_MEMBER_CHARS);
  while (!fits(kept)) kept = kept.slice(0, -1);
  return kept;
}
