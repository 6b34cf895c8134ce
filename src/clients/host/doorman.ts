import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { problem, type Problem } from './problem.ts';

/** What of a request is looked at. */
export type Asking = Pick<IncomingMessage, 'headers' | 'rawHeaders'> & {
  readonly socket: Pick<Socket, 'remoteAddress'>;
};

export type Rules = {
  /** The port that is listened on: a Host header must name it. */
  readonly port: number;
  readonly token: string;
};

/**
 * Why this request is not let in, judged by its peer and headers alone, so before any of its body is read; null when it may come in. The
 * first three keep web pages out: a page of another name that was made to resolve to this machine (DNS rebinding) sends that name as Host,
 * and browsers send Origin with every request that can change something. Forwarded headers are never looked at.
 */
export function refusalOf(request: Asking, { port, token }: Rules): Problem | null {
  if (!isLoopback(request.socket.remoteAddress)) {
    return problem('forbidden', 'Only programs of this machine may ask here.');
  }
  if (!namesLoopback(request, port)) return problem('forbidden', 'The Host header does not name this server.');
  if (request.headers.origin !== undefined) return problem('forbidden', 'Web pages may not ask here.');
  if (!bears(request, token)) return problem('unauthenticated', 'The bearer token is missing or wrong.');
  return null;
}

function isLoopback(address: string | undefined): boolean {
  return address === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/i.test(address ?? '');
}

/** The raw headers are looked at, since of several Host headers Node shows the first only. */
function namesLoopback({ rawHeaders }: Asking, port: number): boolean {
  const hosts = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'host');
  const [host = ''] = hosts;
  const names = ['127.0.0.1', '[::1]', 'localhost'];
  const known = names.some((name) => host.toLowerCase() === `${name}:${port}`);
  const plain = port === 80 && names.includes(host.toLowerCase());
  return hosts.length === 1 && (known || plain);
}

/** In the same time whatever was sent: digests are compared, and those are of one length. */
function bears({ headers }: Asking, token: string): boolean {
  const [, given = ''] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
  return timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
