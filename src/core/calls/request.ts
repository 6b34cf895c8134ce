/** Checks the input of an invocation before anything is done for it, and computes the digest of what it asks for. */
import { NO_DIGEST, type WaitFor } from '../commands/command.ts';
import { collectInputErrors, fail, invalid, optional } from '../errors.ts';
import { id, isId, isName, isTrace, isWithin, name, trace, within } from '../ids.ts';
import {
  canonicalText,
  forEachName,
  isEmptyObject,
  isObjectText,
  longerThan,
  trustJson,
  type JsonText,
} from '../json.ts';
import { CONNECT_WITHIN_MS, DIGEST_BYTES, RESPOND_WITHIN_MS } from '../limits.ts';
import type { Crypto } from '../ports.ts';
import type { TraceFields } from '../trace-context.ts';
import type { CallSpan, InvokeRequest } from './call.ts';

/** An invocation whose inputs were all checked, with defaults filled in. */
export type CheckedInvoke = TraceFields & {
  readonly clientId: string;
  readonly action: string;
  readonly commandId: string | null;
  readonly namedInstanceId: string | null;
  readonly params: JsonText | null;
  readonly waitFor: WaitFor;
  readonly connectWithinMs: number;
  readonly respondWithinMs: number;
  /** The span of the call; null where the relay does not trace. */
  readonly span: CallSpan | null;
  /** The digest of what the invocation asks for; NO_DIGEST for an invocation without a command id. */
  readonly digest: string;
};

/**
 * The reserved prefix of parameter names, in any letter case. The relay adds its own parameters under it, so callers
 * may not use it.
 */
const RESERVED = '__cooperative_site_';

/** The site, session and grant that a call comes through. */
type SitePart = { readonly siteId: string; readonly sessionId: string; readonly grantId: string };

/**
 * Checks an invocation. Throws `reserved_parameter`, or one `invalid_argument` that names every wrong input. If the
 * call comes through a site, the relay appends its own parameters. The digest of such a call covers the session and the
 * grant, so that no viewer attaches to another viewer's command.
 */
export function checkInvoke(
  crypto: Crypto,
  request: InvokeRequest,
  { site = null, span = null }: { readonly site?: SitePart | null; readonly span?: CallSpan | null } = {},
): CheckedInvoke {
  if (!isValid(request)) throwInputErrors(request);
  const { clientId, action, params, commandId = null, instanceId: namedInstanceId = null } = request;
  if (params !== null && holdsReserved(params))
    fail('reserved_parameter', `Parameter names that begin with "${RESERVED}" are reserved for the relay.`);
  return {
    clientId,
    action,
    commandId,
    namedInstanceId,
    params: site ? withSite(params, site) : params,
    waitFor: request.waitFor ?? 'completed',
    connectWithinMs: request.connectWithinMs ?? CONNECT_WITHIN_MS.default,
    respondWithinMs: request.respondWithinMs ?? RESPOND_WITHIN_MS.default,
    ...traceOf(request, span),
    span,
    digest: commandId === null ? NO_DIGEST : crypto.sha256(digestedText({ action, params, namedInstanceId }, site)),
  };
}

const NO_TRACE = { traceId: null, parentSpanId: null, traceFlags: null, traceState: null };

/**
 * Returns the ids that the invocation names, or else the whole trace context of its request; the two are never mixed.
 * An invocation without either belongs to the trace that the relay records for it.
 */
function traceOf(request: InvokeRequest, span: CallSpan | null): TraceFields {
  const { traceId = null, parentSpanId = null, traceFlags = null, traceState = null, trace: context } = request;
  if (traceId !== null || parentSpanId !== null) return { traceId, parentSpanId, traceFlags, traceState };
  if (context) return context;
  return span === null || span.traceId === null ? NO_TRACE : { ...NO_TRACE, traceId: span.traceId };
}

/** Whether `throwInputErrors` would find nothing, without the cost of collecting errors. */
function isValid(request: InvokeRequest): boolean {
  const { commandId, instanceId, traceId, parentSpanId, params } = request;
  return (
    isId(request.clientId) &&
    isName(request.action) &&
    isAbsentOr(isId, commandId) &&
    isAbsentOr(isId, instanceId) &&
    isWithin(request.connectWithinMs, CONNECT_WITHIN_MS) &&
    isWithin(request.respondWithinMs, RESPOND_WITHIN_MS) &&
    isAbsentOr(isTrace, traceId) &&
    isAbsentOr(isTrace, parentSpanId) &&
    (params === null || isObjectText(params))
  );
}

function isAbsentOr(holds: (text: string) => boolean, text: string | null | undefined): boolean {
  return text === null || text === undefined || holds(text);
}

/** Throws one `invalid_argument` that names every wrong input. */
function throwInputErrors({ params, ...request }: InvokeRequest): void {
  const { check, throwIfAny } = collectInputErrors();
  check(() => id('client_id', request.clientId));
  check(() => name('action', request.action));
  check(() => optional(request.commandId, (text) => id('command_id', text)));
  check(() => optional(request.instanceId, (text) => id('instance_id', text)));
  check(() => within('connect_within_ms', request.connectWithinMs, CONNECT_WITHIN_MS));
  check(() => within('respond_within_ms', request.respondWithinMs, RESPOND_WITHIN_MS));
  check(() => optional(request.traceId, (text) => trace('trace_id', text)));
  check(() => optional(request.parentSpanId, (text) => trace('parent_span_id', text)));
  check(() => params === null || isObjectText(params) || invalid('params', 'expected an object'));
  throwIfAny();
}

/**
 * Returns the text whose digest decides whether two invocations of one id are the same: action, params, the named
 * instance, and for a call through a site its session and grant. Params of up to DIGEST_BYTES are compared by meaning
 * (`canonicalText`), larger ones by their exact text, because sorting them would take long.
 */
function digestedText(
  { action, params, namedInstanceId }: Pick<CheckedInvoke, 'action' | 'params' | 'namedInstanceId'>,
  site: SitePart | null,
): string {
  const canonicalParams = params === null ? '{}' : longerThan(params, DIGEST_BYTES) ? params : canonicalText(params);
  const rest = [action, namedInstanceId, ...(site ? [site.sessionId, site.grantId] : [])];
  return `${JSON.stringify(rest)}${canonicalParams}`;
}

/**
 * Whether the params hold a reserved name. Scans the names only if the text contains `__` or a `\u` escape, because
 * every spelling of a reserved name contains one of them.
 */
function holdsReserved(params: JsonText): boolean {
  if (!params.includes('__') && !params.includes('\\u')) return false;
  let found = false;
  forEachName(params, (name) => {
    found ||= isReserved(name);
  });
  return found;
}

/** Whether a name is reserved, in any letter case. Looks for `__` first, because that is faster. */
function isReserved(key: string): boolean {
  return key.startsWith('__') && key.toLowerCase().startsWith(RESERVED);
}

/** Appends the relay's parameters; the caller's text is unchanged. */
function withSite(params: JsonText | null, { sessionId, siteId }: SitePart): JsonText {
  const own = `"${RESERVED}session_id":${JSON.stringify(sessionId)},"${RESERVED}id":${JSON.stringify(siteId)}}`;
  if (params === null || isEmptyObject(params)) return trustJson(`{${own}`);
  return trustJson(`${params.slice(0, params.lastIndexOf('}'))},${own}`);
}
