/**
 * Adds CORS headers for allowed origins, and refuses requests from pages of other origins. It does not authenticate.
 */
import { fail } from '../core/errors.ts';
import { originRefusal, type OriginRule, type RefusalLog } from '../web/origin.ts';
import type { RequestInfo } from './request-info.ts';

const METHODS = 'GET, HEAD, POST, PUT, DELETE';
/** The request headers that pages may send: those of the relay, W3C Trace Context, MCP and Apollo's clients. */
const REQUEST_HEADERS = [
  ...['authorization', 'content-type', 'accept', 'last-event-id', 'x-callboard-csrf', 'x-graphql-event-stream-token'],
  ...['traceparent', 'tracestate', 'mcp-protocol-version', 'mcp-session-id', 'mcp-method', 'mcp-name'],
  ...['apollographql-client-name', 'apollographql-client-version'],
  ...['apollo-require-preflight', 'x-apollo-operation-name'],
].join(', ');
const EXPOSED = 'retry-after, www-authenticate, x-request-id, mcp-session-id';

/**
 * Adds CORS headers for allowed origins. Returns true if the request was a preflight request, which it has then
 * answered.
 */
export function crossOrigin({ request, response }: RequestInfo, rule: OriginRule): boolean {
  const { origin } = request.headers;
  if (origin === undefined || originRefusal(request, rule) !== null) return false;
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
 * Refuses requests from pages of other origins. Programs other than browsers send neither `Origin` nor
 * `Sec-Fetch-Site`, and are not refused. Cookies and other credentials that a browser adds by itself grant nothing,
 * because only the Authorization header counts.
 */
export function requireOwnPage({ request, address }: RequestInfo, { origins, refused }: OwnPageOptions): void {
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (origin === undefined) {
    if (site !== 'cross-site') return;
    refused(request, { reason: 'cross_site', address });
    fail('forbidden', 'Cross-site requests are refused.');
  }
  const refusal = originRefusal(request, origins);
  if (refusal === null) return;
  refused(request, { reason: refusal.reason, address });
  fail('forbidden', refusal.detail);
}

type OwnPageOptions = { readonly origins: OriginRule; /** Logs the refusal. */ readonly refused: RefusalLog };
