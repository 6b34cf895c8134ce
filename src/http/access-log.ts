/** The access log: one line per request. It must not contain headers, queries or tokens. */
import { performance } from 'node:perf_hooks';
import { subjectOf, type Principal } from '../core/auth/principal.ts';
import type { Log } from '../core/log.ts';
import type { Metrics } from '../core/metrics.ts';
import { traceContextOf, traceLogFields, type TraceLogFields } from '../core/trace-context.ts';
import { emptyNotes, type RequestNotes } from '../web/request-notes.ts';
import type { RequestInfo } from './request-info.ts';

/** The paths that health checks and scrapers poll; their requests are logged at the level debug. */
const PROBES: ReadonlySet<string | null> = new Set(['/healthz', '/readyz', '/metrics']);
/** The greatest number of characters of a path that a line of the log shows. */
const PATH_MAX = 512;

export type AccessLogParts = {
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'observe'>;
  /** Called once, when the response has closed. */
  readonly ended: () => void;
};

/**
 * What a log line says of a request. `requester` is set once the request is authenticated; the handlers fill in the
 * notes.
 */
export type AccessEntry = RequestNotes & { requester: Principal | null };

/**
 * Writes one access log line when the response closes; the response of a stream closes when the stream ends. Also
 * measures the duration of the request by its route. The line has no headers and no query, because a query may contain
 * a ticket.
 */
export function logAccess(info: RequestInfo, { log, metrics, ended }: AccessLogParts): AccessEntry {
  const access: AccessEntry = { requester: null, ...emptyNotes(info.id) };
  const started = performance.now();
  // Destructured here, because a stream may be open for days and the closure would keep the rest of the request info
  // alive.
  const { id, method, path, address, request, response } = info;
  access.trace = traceContextOf(request.headers) ?? null;
  response.on('close', () => {
    ended();
    const ms = performance.now() - started;
    if (access.route !== null) metrics.observe('http_seconds', ms, access.route);
    const fields = {
      id,
      method,
      path: path?.slice(0, PATH_MAX) ?? null,
      status: response.headersSent ? response.statusCode : null,
      ms: Math.round(ms),
      address,
      requester: access.requester === null ? null : subjectOf(access.requester),
      ...notesIn(access),
    };
    if (PROBES.has(path)) log.debug(fields, 'request');
    else log.info(fields, 'request');
  });
  return access;
}

/**
 * Returns the name in the metrics for a request to a fixed path. The start page, the client files and others share one
 * name.
 */
export function fixedRouteOf(path: string | null): string {
  return path !== null && PROBES.has(path) ? path : 'other';
}

/** Returns the notes that are not null, for the log line. */
function notesIn({ commandId, outcome, code, trace }: RequestNotes): Partial<RequestNotes> & TraceLogFields {
  return {
    ...(commandId !== null && { commandId }),
    ...(outcome !== null && { outcome }),
    ...(code !== null && { code }),
    ...traceLogFields(trace),
  };
}
