import type { InvokeRequest } from '../core.ts';
import type { Crypto } from '../crypto.ts';
import type { WaitFor } from '../delivery/waiter.ts';
import { fail, invalid } from '../errors.ts';
import { collectFaults, optional } from '../faults.ts';
import { id, name, trace } from '../ids.ts';
import { canonicalJson, trustJson, type JsonText } from '../json.ts';
import { CONNECT_WITHIN_MS, RESPOND_WITHIN_MS } from '../limits.ts';
import { within } from '../range.ts';

/** An invocation whose every input was checked, with defaults filled in. */
export type CheckedInvoke = {
  readonly clientId: string;
  readonly action: string;
  readonly commandId: string | null;
  readonly namedInstanceId: string | null;
  readonly params: JsonText | null;
  readonly waitFor: WaitFor;
  readonly connectWithinMs: number;
  readonly respondWithinMs: number;
  readonly traceId: string | null;
  readonly parentSpanId: string | null;
  readonly digest: string;
};

/** A caller's parameters that begin so, in any letter case, are refused: the relay adds its own under this name. */
const RESERVED = '__cooperative_site_';

/** Through which session of which site a call comes, and by whose grant. */
export type SitePart = { readonly siteId: string; readonly sessionId: string; readonly grantId: string };

/**
 * Throws `reserved_parameter`, or one `invalid_argument` that names every wrong input. A call through a site is given the relay's own
 * parameters last; its digest tells sessions and grants apart, so that no viewer attaches to another's command.
 */
export function checkInvoke(crypto: Crypto, request: InvokeRequest, site: SitePart | null = null): CheckedInvoke {
  const { check, throwIfAny } = collectFaults();
  const checked = {
    clientId: check(() => id('client_id', request.clientId)) ?? '',
    action: check(() => name('action', request.action)) ?? '',
    commandId: check(() => optional(request.commandId, (text) => id('command_id', text))) ?? null,
    namedInstanceId: check(() => optional(request.instanceId, (text) => id('instance_id', text))) ?? null,
    params: request.params,
    waitFor: request.waitFor ?? 'completed',
    connectWithinMs: check(() => within('connect_within_ms', request.connectWithinMs, CONNECT_WITHIN_MS)) ?? 0,
    respondWithinMs: check(() => within('respond_within_ms', request.respondWithinMs, RESPOND_WITHIN_MS)) ?? 0,
    traceId: check(() => optional(request.traceId, (text) => trace('trace_id', text))) ?? null,
    parentSpanId: check(() => optional(request.parentSpanId, (text) => trace('parent_span_id', text))) ?? null,
  };
  const params = check(() => readParams(request.params, request.paramsValue));
  throwIfAny();
  const reserved = Object.keys(params ?? {}).find(isReserved);
  if (reserved !== undefined) fail('reserved_parameter', `Parameters that begin "${RESERVED}" are the relay's own.`);
  const { action, namedInstanceId } = checked;
  const digested = [action, params ?? {}, namedInstanceId, ...(site ? [site.sessionId, site.grantId] : [])];
  const digest = crypto.sha256(canonicalJson(digested));
  return { ...checked, params: site ? withSite(request.params, params ?? {}, site) : request.params, digest };
}

/** The letters are compared only where the first one fits. */
function isReserved(key: string): boolean {
  return key.startsWith('__') && key.toLowerCase().startsWith(RESERVED);
}

/** What the caller wrote stays as it is written. */
function withSite(text: JsonText | null, params: Record<string, unknown>, { sessionId, siteId }: SitePart): JsonText {
  const own = `"${RESERVED}session_id":${JSON.stringify(sessionId)},"${RESERVED}id":${JSON.stringify(siteId)}}`;
  if (text === null || Object.keys(params).length === 0) return trustJson(`{${own}`);
  return trustJson(`${text.slice(0, text.lastIndexOf('}'))},${own}`);
}

function readParams(text: JsonText | null, known: unknown): Record<string, unknown> {
  if (text === null) return {};
  const value: unknown = known === undefined ? parse(text) : known;
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : invalid('params', 'expected an object');
}

function parse(text: JsonText): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return invalid('params', 'expected JSON');
  }
}
