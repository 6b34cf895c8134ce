/**
 * Determines a request's peer address and the origins under which the peer reached the relay, from the socket and from
 * the forwarding headers of trusted proxies.
 */
import { isIP } from 'node:net';
import type { HttpRequest } from './request.ts';

/**
 * How many proxies before the relay are trusted, whose forwarding headers are then read. `false` or 0: none. A number:
 * that many proxies. Each of them appends one value to the lists in these headers, so the values are counted from the
 * right. `true`: one proxy. Then the peer is the last address in X-Forwarded-For, and of every other header the first
 * value counts, which describes the browser's own request.
 */
export type ProxyTrust = boolean | number;

/** The maximum number of characters of an address or a host that are read. */
const TEXT_MAX = 300;

/**
 * Returns the peer's address: the one that the outermost trusted proxy saw, or the address of the socket if no proxy is
 * trusted or names one.
 */
export function addressOf(request: HttpRequest, trust: ProxyTrust): string {
  const { remoteAddress = '' } = request.socket;
  if (!trust) return remoteAddress;
  const listed = valuesIn(request.headers['x-forwarded-for']);
  const said = listed.length > 0 ? counted(listed, Number(trust)) : element(request, Number(trust)).get('for');
  return ipOf(said ?? '') ?? remoteAddress;
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

/**
 * Returns the origins under which the requester reached the relay, the most likely one first. There are two if a proxy
 * sends a port separately from a host without a port: the browser may have used that port, or the port may be one
 * inside the deployment. Empty without a valid host.
 */
export function ownOrigins(request: HttpRequest, trust: ProxyTrust): readonly string[] {
  const encrypted = 'encrypted' in request.socket && request.socket.encrypted === true;
  const { proto, host, port } = trust ? forwardedBy(request, trust) : NOTHING;
  const scheme = proto ?? (encrypted || port === '443' ? 'https' : 'http');
  const name = host ?? request.headers.host ?? '';
  const hosts = port === undefined || /:\d+$/.test(name) ? [name] : [name, `${name}:${port}`];
  return hosts.flatMap((text) => originAt(scheme, text) ?? []);
}

type Forwarded = {
  readonly proto?: string | undefined;
  readonly host?: string | undefined;
  readonly port?: string | undefined;
};

const NOTHING: Forwarded = {};

/** Reads what the proxies report about the browser's request. X-Forwarded-* takes precedence over `Forwarded`. */
function forwardedBy(request: HttpRequest, trust: ProxyTrust): Forwarded {
  const hops = trust === true ? Infinity : Number(trust);
  const { headers } = request;
  const said = element(request, hops);
  const proto = counted(valuesIn(headers['x-forwarded-proto']), hops) ?? said.get('proto');
  const port = counted(valuesIn(headers['x-forwarded-port']), hops);
  return {
    // For a WebSocket, a proxy may send `ws` or `wss`. The page that opened the WebSocket has an `http` or `https`
    // origin.
    proto: /^(?:http|ws)(s?)$/i
      .exec(proto ?? '')?.[1]
      ?.replace(/^/, 'http')
      .toLowerCase(),
    host: counted(valuesIn(headers['x-forwarded-host']), hops) ?? said.get('host'),
    port: port !== undefined && /^\d{1,5}$/.test(port) ? port : undefined,
  };
}

/**
 * Returns the parameters of one element of `Forwarded` (RFC 7239): the element that the outermost of `hops` proxies
 * added.
 */
function element({ headers }: HttpRequest, hops: number): ReadonlyMap<string, string> {
  const text = counted(valuesIn(headers.forwarded), hops) ?? '';
  const parameters = text.matchAll(/(?:^|;)\s*([a-z]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;"]*))/gi);
  return new Map(
    [...parameters].map(([, name = '', quoted, token = '']) => [
      name.toLowerCase(),
      quoted === undefined ? token.trim() : quoted.replaceAll(/\\(.)/g, '$1'),
    ]),
  );
}

/** Splits a header to which each proxy appends a value after a comma. A comma in quotes is part of a value. */
function valuesIn(header: string | string[] | undefined): readonly string[] {
  if (header === undefined) return [];
  const text = Array.isArray(header) ? header.join(',') : header;
  const values = text.match(/(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g) ?? [];
  return values.map((value) => value.trim()).filter((value) => value !== '');
}

/** Returns the value that the outermost of `hops` proxies added, or the first value if there are fewer than `hops`. */
function counted(values: readonly string[], hops: number): string | undefined {
  return values[Math.max(0, values.length - hops)]?.slice(0, TEXT_MAX);
}

/** Returns the IP address in a text, without the port and the brackets that some proxies write; null if there is none. */
function ipOf(text: string): string | null {
  const [, bracketed, bare] = /^(?:\[([^\]]+)\](?::\d+)?|([\d.]+):\d+)$/.exec(text) ?? [];
  const address = bracketed ?? bare ?? text;
  return isIP(address) === 0 ? null : address;
}

/**
 * Returns the origin with this scheme and host, written as browsers write it: in lower case, and without the default
 * port. Null if the host is not valid.
 */
function originAt(scheme: string, host: string): string | null {
  return host === '' || /[\s/?#@\\]/.test(host) ? null : (URL.parse(`${scheme}://${host}`)?.origin ?? null);
}
