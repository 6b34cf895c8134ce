/** Refuses requests to the control server that do not come from an authorized program on this machine. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { problem, type Problem } from './problems.ts';

/** The members of a request that are checked. */
type RequestHead = Pick<IncomingMessage, 'headers' | 'rawHeaders'> & {
  readonly socket: Pick<Socket, 'remoteAddress'>;
};

/** `port`: the port on which the server listens. The Host header must name it. */
type Rules = { readonly port: number; readonly token: string };

/**
 * Checks a request by its peer address and headers, before its body is read. Returns the refusal, or null if the
 * request is accepted. The first three checks keep out other machines and web pages: the peer must be on this machine,
 * the Host header must name it, and there must be no Origin header. A web page whose host name was made to resolve to
 * this machine (DNS rebinding) still sends its own name as Host, and browsers send Origin with every request that can
 * change state. Headers of proxies are ignored.
 */
export function refusalOf(request: RequestHead, { port, token }: Rules): Problem | null {
  if (!isLoopback(request.socket.remoteAddress)) {
    return problem('forbidden', 'Only programs on this machine may send requests.');
  }
  if (!namesLoopback(request, port)) return problem('forbidden', 'The Host header does not name this server.');
  if (request.headers.origin !== undefined) return problem('forbidden', 'Web pages may not send requests.');
  if (!bears(request, token)) return problem('unauthenticated', 'The bearer token is missing or wrong.');
  return null;
}

function isLoopback(address: string | undefined): boolean {
  return address === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/i.test(address ?? '');
}

/**
 * Whether the request has exactly one Host header, and this header names this machine and the server's port. Reads the
 * raw headers, because `headers` keeps only the first of several Host headers.
 */
function namesLoopback({ rawHeaders }: RequestHead, port: number): boolean {
  const hosts = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'host');
  const [host = ''] = hosts;
  const names = ['127.0.0.1', '[::1]', 'localhost'];
  const known = names.some((name) => host.toLowerCase() === `${name}:${port}`);
  const plain = port === 80 && names.includes(host.toLowerCase());
  return hosts.length === 1 && (known || plain);
}

/** Whether the request has the token. Compares digests of equal length in constant time. */
function bears({ headers }: RequestHead, token: string): boolean {
  const [, given = ''] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
  return timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
