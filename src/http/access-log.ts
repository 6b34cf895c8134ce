/** Writes the access log: one line per request, which must not contain headers, queries or tokens. */
import { subjectOf, type Principal } from '../core/auth/principal.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock, Log } from '../core/ports.ts';
import { traceContextOf, traceLogFields } from '../core/trace-context.ts';
import { emptyNotes, type RequestNotes } from '../web/request-notes.ts';
import type { HttpRequest, HttpResponse, HttpSocket } from '../web/request.ts';
import type { RequestInfo } from './request-info.ts';

/** Paths that health checks and scrapers poll. Their requests are logged at the level `debug`. */
const PROBES: ReadonlySet<string | null> = new Set(['/healthz', '/readyz', '/metrics']);
/** The maximum number of characters of a path in a log line. */
const PATH_MAX = 512;

type AccessLogOptions = {
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'observe'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Called once, when the response has closed. */
  readonly ended: (socket: HttpSocket, response: HttpResponse) => void;
};

/** What a log line states about a request. Authentication sets `requester`, and the handlers set the notes. */
export type AccessEntry = RequestNotes & { requester: Principal | null };

/**
 * Returns the entry of a request. When its response (or stream) closes, writes the access log line and measures the
 * request by its route.
 */
export function logAccess(info: RequestInfo, { log, metrics, clock, ended }: AccessLogOptions): AccessEntry {
  const access: AccessEntry = { requester: null, ...emptyNotes(info.id) };
  const started = clock.monotonic();
  // Destructured here so that the closure does not keep `info` alive: a stream may be open for days.
  const { id, method, path, address, request, response } = info;
  const { socket } = request;
  access.trace = traceContextOf(request.headers) ?? null;
  response.on('close', () => {
    ended(socket, response);
    const ms = clock.monotonic() - started;
    if (access.route !== null) metrics.observe('http_seconds', ms, access.route);
    const status = response.headersSent ? response.statusCode : null;
    const shared = sharedFields(request, { method, path, status, address }, access);
    const { commandId, trace } = access;
    const fields = {
      id,
      ms: Math.round(ms),
      ...(commandId !== null && { commandId }),
      ...(trace !== null && traceLogFields(trace)),
    };
    if (PROBES.has(path)) log.debug(fields, 'request', shared);
    else log.info(fields, 'request', shared);
  });
  return access;
}

type Answered = Pick<RequestInfo, 'method' | 'path' | 'address'> & { readonly status: number | null };
type SharedFields = Answered & { readonly requester: string | null; readonly outcome?: string; readonly code?: string };
type LineNotes = Pick<AccessEntry, 'requester' | 'outcome' | 'code'>;
type LastLine = { readonly of: Answered; readonly notes: LineNotes; readonly fields: SharedFields };

/** The fields of the last log line of each socket. Most lines of a socket differ only in id and time. */
const lastLines = new WeakMap<HttpSocket, LastLine>();

/**
 * Returns the fields that describe this request: the same object as for the socket's last request if they are equal, so
 * that the log can reuse their text.
 */
function sharedFields({ socket, url = '' }: HttpRequest, of: Answered, notes: LineNotes): SharedFields {
  const last = lastLines.get(socket);
  if (last && isLike(last, of, notes)) return last.fields;
  const { requester, outcome, code } = notes;
  const fields = {
    ...of,
    path: of.path?.slice(0, PATH_MAX) ?? null,
    requester: requester === null ? null : subjectOf(requester),
    ...(outcome !== null && { outcome }),
    ...(code !== null && { code }),
  };
  // Not kept for a long target: `path` is a part of it, and a part keeps the whole text in memory.
  if (url.length <= PATH_MAX) lastLines.set(socket, { of, notes, fields });
  return fields;
}

function isLike({ of, notes }: LastLine, now: Answered, { requester, outcome, code }: LineNotes): boolean {
  const isSame = of.path === now.path && of.method === now.method && of.status === now.status;
  const areSame = notes.requester === requester && notes.outcome === outcome && notes.code === code;
  return isSame && areSame && of.address === now.address;
}

/** Returns the name under which the metrics count a path: its own for a probe, and `other` for all other paths. */
export function fixedRouteOf(path: string | null): string {
  return path !== null && PROBES.has(path) ? path : 'other';
}
