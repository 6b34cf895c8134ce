import type { IncomingMessage } from 'node:http';

/** The peer's address; a proxy's word for it only where a proxy is trusted. The nearest proxy appends the address that it saw: only the last one counts. */
export function addressOf(request: IncomingMessage, trustProxy: boolean): string {
  const forwarded = trustProxy ? request.headers['x-forwarded-for'] : undefined;
  const text = Array.isArray(forwarded) ? forwarded.join(',') : (forwarded ?? '');
  return text.split(',').at(-1)?.trim().slice(0, 64) || (request.socket.remoteAddress ?? '');
}
