/** Checks that every request must pass before routing, and the refusals for requests that fail them. */
import { fail } from '../core/errors.ts';
import type { Turned } from '../gateway/doorstep.ts';
import type { Visit } from './visit.ts';

/** HTTP/1.1 requires the Host header (RFC 9112, 3.2); HTTP/1.0 does not have it. */
export function requireHost({ request, response }: Visit): void {
  if (request.headers.host !== undefined || request.httpVersionMinor === 0) return;
  response.setHeader('connection', 'close');
  fail('invalid_argument', 'A request needs a Host header.');
}

export function refuseExpectation({ response }: Visit): never {
  response.setHeader('connection', 'close');
  fail('invalid_argument', 'Only the expectation 100-continue is supported.', { status: 417 });
}

export const NO_TUNNELS: Turned = {
  status: 405,
  code: 'method_not_allowed',
  detail: 'This server is not a proxy.',
  headers: ['Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS'],
};

export function isGraphql(path: string | null): boolean {
  return path === '/graphql' || path === '/graphql/stream';
}

export function isReading(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

export function requireReading({ method, response }: Visit): void {
  if (isReading(method)) return;
  response.setHeader('allow', 'GET, HEAD');
  fail('method_not_allowed', 'This path supports GET and HEAD only.');
}
