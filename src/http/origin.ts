import { fail } from '../core/errors.ts';
import { originAllowed, type OriginRule } from '../gateway/origin.ts';
import type { Visit } from './visit.ts';

const METHODS = 'GET, HEAD, POST, PUT, DELETE';
const REQUEST_HEADERS =
  'authorization, content-type, accept, last-event-id, x-callboard-csrf, x-graphql-event-stream-token';
const EXPOSED = 'retry-after, www-authenticate, x-request-id';

/** Lets pages of the allowed origins read the answer. Returns true when that was all: a preflight, now answered. */
export function crossOrigin({ request, response }: Visit, rule: OriginRule): boolean {
  const { origin } = request.headers;
  if (origin === undefined || !originAllowed(request, rule)) return false;
  response.setHeader('access-control-allow-origin', origin);
  response.setHeader('access-control-expose-headers', EXPOSED);
  if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return false;
  response.setHeader('access-control-allow-methods', METHODS);
  response.setHeader('access-control-allow-headers', REQUEST_HEADERS);
  response.setHeader('access-control-max-age', '600');
  response.writeHead(204).end();
  return true;
}

/**
 * Refuses what a browser sends for a page of a foreign origin. Requests of programs carry neither header and pass: nothing here is
 * granted to a browser's ambient credentials anyway, since only the Authorization header counts.
 */
export function requireOwnPage({ request }: Visit, rule: OriginRule): void {
  if (!originAllowed(request, rule)) fail('forbidden', 'Pages of this origin may not ask here.');
  const crossSite = request.headers['sec-fetch-site'] === 'cross-site';
  if (crossSite && request.headers.origin === undefined)
    fail('forbidden', 'Requests from other sites are not answered.');
}
