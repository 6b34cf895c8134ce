import { performance } from 'node:perf_hooks';
import { subjectOf, type Principal } from '../core/auth/principal.ts';
import type { Log } from '../core/log.ts';
import type { Visit } from './visit.ts';

/** Paths that probes ask for all day. */
const PROBES: ReadonlySet<string | null> = new Set(['/healthz', '/readyz', '/metrics']);
const PATH_MAX = 512;

/**
 * Writes one line when the answer is over, or its stream ended. No headers and no query: a ticket may stand in it. Fill in `who` once it is
 * known.
 */
export function logAccess(visit: Visit, log: Log): { who: Principal | null } {
  const access: { who: Principal | null } = { who: null };
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
    };
    if (PROBES.has(path)) log.debug(fields, 'request');
    else log.info(fields, 'request');
  });
  return access;
}
