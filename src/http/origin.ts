/** Adds CORS headers for allowed origins, and refuses browser requests from all others. It does not authenticate. */
import { fail } from '../core/errors.ts';
import { foreignOrigin, originAllowed, type OriginRule } from '../web/origin-rule.ts';
import type { RequestInfo } from './request-info.ts';

const METHODS = 'GET, HEAD, POST, PUT, DELETE';
/**
 * The request headers that pages may send: the relay's own, those of W3C Trace Context, and those that Apollo's clients
 * add.
 */
const REQUEST_HEADERS = [
  'authorization',
  'content-type',
  'accept',
  'last-event-id',
  'x-callboard-csrf',
  'x-graphql-event-stream-token',
  'traceparent',
  'tracestate',
  'apollographql-client-name',
  'apollographql-client-version',
  'apollo-require-preflight',
  'x-apollo-operation-name',
].join(', ');
const EXPOSED = 'retry-after, www-authenticate, x-request-id';

/** Adds CORS headers for allowed origins. Returns true if the request was a preflight, which is then answered. */
export function crossOrigin({ request, response }: RequestInfo, rule: OriginRule): boolean {
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
 * Refuses browser requests from pages of a foreign origin. Requests of other programs have neither `Origin` nor
 * `Sec-Fetch-Site` and pass. A browser's ambient credentials grant nothing anyway, because only the Authorization
 * header counts.
 */
export function requireOwnPage({ request }: RequestInfo, rule: OriginRule): void {
  if (!originAllowed(request, rule)) fail('forbidden', foreignOrigin(request, rule));
  const crossSite = request.headers['sec-fetch-site'] === 'cross-site';
  if (crossSite && request.headers.origin === undefined) fail('forbidden', 'Cross-site requests are refused.');
}
