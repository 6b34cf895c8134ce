/** Checks the Host header and the method of each request, and recognizes paths. Refuses requests that fail a check. */
import { fail } from '../core/errors.ts';
import type { UpgradeRefusal } from '../gateway/gateway.ts';
import { GRAPHQL_PATH, STREAM_PATH } from '../graphql/http/request.ts';
import type { HttpRequest } from '../web/request.ts';
import { MCP_PATH } from './agent-metadata.ts';
import type { RequestInfo } from './request-info.ts';

/** Matches a name or address with an optional port (RFC 9112, 3.2), or the empty host of a target without one. */
const HOST = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\dA-Fa-f:.]+\])(?::\d*)?$/;

/**
 * Throws `invalid_argument` if the Host header is missing, appears twice, or is not a valid host. Libraries build the
 * URL of a request from this header and would fail for an invalid host. If there are two, a proxy may have routed by
 * the other one. HTTP/1.1 requires the header (RFC 9112, 3.2); HTTP/1.0 does not.
 */
export function requireHost({ request, response }: RequestInfo): void {
  const fault = hostFault(request);
  if (fault === null) return;
  response.setHeader('connection', 'close');
  fail('invalid_argument', fault);
}

export function hostFault(request: HttpRequest): string | null {
  const { host } = request.headers;
  if (host === undefined) return request.httpVersionMinor === 0 ? null : 'A request needs a Host header.';
  if (hasTwoHosts(request)) return 'A request has one Host header.';
  return isHost(host) ? null : 'The Host header is not a valid host.';
}

/** Node drops every Host header but the first from `headers`, so this function reads the raw header lines. */
function hasTwoHosts({ rawHeaders }: HttpRequest): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts++;
  }
  return hosts > 1;
}

/**
 * The last host that was found valid. Nearly all requests have the same host, and parsing a URL costs more than all
 * other checks.
 */
let lastHost = '';

function isHost(host: string): boolean {
  if (host === '' || host === lastHost) return true;
  if (!HOST.test(host) || !URL.canParse(`http://${host}/`)) return false;
  lastHost = host;
  return true;
}

export function refuseExpectation({ response }: RequestInfo): never {
  response.setHeader('connection', 'close');
  fail('invalid_argument', 'Only the expectation 100-continue is supported.', { status: 417 });
}

export const NO_TUNNELS: UpgradeRefusal = {
  status: 405,
  code: 'method_not_allowed',
  detail: 'This server is not a proxy.',
  headers: ['Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS'],
};

export function isGraphql(path: string | null): boolean {
  return path === GRAPHQL_PATH || path === STREAM_PATH;
}

/** Whether a path is that of the MCP endpoint. Some hosts of agents append a slash to the address. */
export function isMcp(path: string | null): boolean {
  return path === MCP_PATH || path === `${MCP_PATH}/`;
}

export const MCP_TOKEN =
  'A bearer token of a user is needed. The command "callboard token --mcp --user <user>" prints one.';

export function isReading(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** Refuses a method that the route does not support. */
export function requireMethod({ method, response }: RequestInfo, methods: readonly string[]): void {
  if (methods.includes(method)) return;
  response.setHeader('allow', methods.join(', '));
  fail('method_not_allowed', `This path supports ${methods.join(' and ')} only.`);
}
