/** The access log: one line per request. It must not contain headers, queries or tokens. */
import { performance } from 'node:perf_hooks';
import { subjectOf, type Principal } from '../core/auth/principal.ts';
import type { Log } from '../core/log.ts';
import { emptyNotes, type RequestNotes } from '../web/request-notes.ts';
import type { RequestInfo } from './request-info.ts';

/** Paths that health checks and scrapers poll; their requests are logged at the level debug. */
const PROBES: ReadonlySet<string | null> = new Set(['/healthz', '/readyz', '/metrics']);
const PATH_MAX = 512;

/** `requester` is set once the request is authenticated; the handlers fill in the notes. */
export type AccessEntry = RequestNotes & { requester: Principal | null };

/**
 * Writes one access log line when the response closes (for a stream: when it ends), with the command id, its outcome
 * and an error code if there are any. The line has no headers and no query, because a query may contain a ticket.
 */
export function logAccess(info: RequestInfo, log: Log): AccessEntry {
  const access: AccessEntry = { requester: null, ...emptyNotes() };
  const started = performance.now();
  // Destructured here: a stream may be open for days, and the closure would keep the rest of the request info alive.
  const { id, method, path, address, response } = info;
  response.on('close', () => {
    const fields = {
      id,
      method,
      path: path?.slice(0, PATH_MAX) ?? null,
      status: response.headersSent ? response.statusCode : null,
      ms: Math.round(performance.now() - started),
      address,
      requester: access.requester === null ? null : subjectOf(access.requester),
      ...notesIn(access),
    };
    if (PROBES.has(path)) log.debug(fields, 'request');
    else log.info(fields, 'request');
  });
  return access;
}

/** The notes that are not null. */
function notesIn({ commandId, outcome, code }: RequestNotes): Partial<RequestNotes> {
  return {
    ...(commandId !== null && { commandId }),
    ...(outcome !== null && { outcome }),
    ...(code !== null && { code }),
  };
}
