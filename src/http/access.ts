import { performance } from 'node:perf_hooks';
import { subjectOf, type Principal } from '../core/auth/principal.ts';
import type { Log } from '../core/log.ts';
import { emptyNotes, type RequestNotes } from '../graphql/request-notes.ts';
import type { Visit } from './visit.ts';

/** Paths that probes ask for all day. */
const PROBES: ReadonlySet<string | null> = new Set(['/healthz', '/readyz', '/metrics']);
const PATH_MAX = 512;

/** `who` is filled in once it is known, the notes while the request is handled. */
export type Access = RequestNotes & { who: Principal | null };

/**
 * Writes one line when the answer is over, or its stream ended: with the command id, its outcome and a code where there is one. No headers
 * and no query: a ticket may stand in it.
 */
export function logAccess(visit: Visit, log: Log): Access {
  const access: Access = { who: null, ...emptyNotes() };
  const started = performance.now();
  // Taken apart here: a stream may be open for days, and what else the visit holds would be kept as long.
  const { id, method, path, address, response } = visit;
  response.on('close', () => {
    const fields = {
      id,
      method,
      path: path?.slice(0, PATH_MAX) ?? null,
      status: response.headersSent ? response.statusCode : null,
      ms: Math.round(performance.now() - started),
      address,
      who: access.who === null ? null : subjectOf(access.who),
      ...notesIn(access),
    };
    if (PROBES.has(path)) log.debug(fields, 'request');
    else log.info(fields, 'request');
  });
  return access;
}

/** What is null is left out. */
function notesIn({ commandId, outcome, code }: RequestNotes): Partial<RequestNotes> {
  return {
    ...(commandId !== null && { commandId }),
    ...(outcome !== null && { outcome }),
    ...(code !== null && { code }),
  };
}
