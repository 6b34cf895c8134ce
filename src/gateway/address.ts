/**
 * Finds the address that a request came from, also behind a trusted proxy, and the network under which it is counted.
 */
import type { IncomingMessage } from 'node:http';

/**
 * Returns the peer's address. With `trustProxy`, it is the last value of X-Forwarded-For, because the nearest proxy
 * appends the address that it saw; at most 64 characters of it are used.
 */
export function addressOf(request: IncomingMessage, trustProxy: boolean): string {
  const forwarded = trustProxy ? request.headers['x-forwarded-for'] : undefined;
  const text = Array.isArray(forwarded) ? forwarded.join(',') : (forwarded ?? '');
  return text.split(',').at(-1)?.trim().slice(0, 64) || (request.socket.remoteAddress ?? '');
}

/**
 * Returns the key under which a peer is counted: its IPv4 address, or the /64 network of its IPv6 address, because one
 * machine usually owns a whole /64. A text that is not an address is its own key.
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const [, mapped] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? [];
  if (mapped !== undefined) return mapped;
  const [front = '', back] = address.replace(/%.*$/, '').split('::');
  const groups = front === '' ? [] : front.split(':');
  const behind = back ? back.split(':') : [];
  const zeros = back === undefined ? 0 : Math.max(0, 8 - groups.length - behind.length);
  const all = [...groups, ...Array.from({ length: zeros }, () => '0'), ...behind];
  if (all.length !== 8 || !all.every((group) => /^[\da-f]{1,4}$/i.test(group))) return address;
  const network = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
}
