/**
 * The WebSocket endpoint: accepts or rejects upgrades to `/connect`, finds out the addresses of peers, and owns the
 * open links. link.ts runs each of them.
 */
import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Authenticator, Principal } from '../core/auth/principal.ts';
import type { Core } from '../core/core.ts';
import type { Code } from '../core/errors.ts';
import { INBOUND_BYTES_PER_SECOND } from '../core/limits.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock, Log } from '../core/ports.ts';
import { ByteRates } from '../core/shares/turns.ts';
import { statusOf, type CloseReason } from '../protocol/codes.ts';
import { SUBPROTOCOL } from '../protocol/frames.ts';
import { foreignOrigin, originAllowed, type OriginRule } from '../web/exchange.ts';
import { BEAT_MS, Link, type GatewayParts } from './link.ts';
import { ActionLists } from './payloads.ts';
import type { LinkPeer } from './router.ts';
import { createSocketServer, createTurnEnd } from './socket.ts';

export type GatewayOptions = OriginRule & {
  readonly core: Core;
  readonly authenticator: Authenticator;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** The most open sockets that are not welcomed yet; default: the total of the share `links`. */
  readonly maxUnopened?: number;
  /** The inbound byte rates of users; default: INBOUND_BYTES_PER_SECOND for each user. */
  readonly inbound?: ByteRates;
  /** Called once for each welcomed link, with its socket and its principal. */
  readonly onWelcome?: (socket: Duplex, principal: Principal) => void;
};

/** The WebSocket sessions of clients and callers. */
export interface Gateway {
  /** Takes over an upgrade request for `/connect` and its socket. Every request gets a response. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /**
   * Refuses new links and closes the open ones, spread over `spreadMs` milliseconds (default 0), so that the peers do
   * not all reconnect at once. Resolves when all sockets are gone and core has recorded the end of each link. Cannot be
   * undone.
   */
  closeAll(reason: CloseReason, options?: { readonly spreadMs?: number }): Promise<void>;
  /** The number of open sockets, welcomed or not. */
  readonly size: number;
  /** The number of welcomed links, by who is at the other end. */
  peers(): ReadonlyMap<LinkPeer, number>;
}

export function createGateway(options: GatewayOptions): Gateway {
  const { clock, log, core } = options;
  const { maxUnopened = core.shares.bounds.links.total ?? Infinity } = options;
  const links = new Set<Link>();
  const allGone = Promise.withResolvers<void>();
  const server = createSocketServer();
  const refuse = (socket: Duplex, refusal: UpgradeRefusal): void => {
    log.debug({ status: refusal.status, code: refusal.code }, 'an upgrade was refused');
    rejectUpgrade(socket, refusal, clock);
  };
  server.on('wsClientError', (error, socket, request) => refuse(socket, badHandshake(error, request)));
  let beat = 0;
  let closing = false;
  const onDone = (link: Link): void => {
    links.delete(link);
    if (closing && links.size === 0) allGone.resolve();
  };
  const parts: GatewayParts = {
    onWelcome() {},
    inbound: new ByteRates(clock, INBOUND_BYTES_PER_SECOND),
    ...options,
    turnEnd: createTurnEnd(),
    actionLists: new ActionLists(),
    beat: () => beat,
    onDone,
  };
  const stopBeat = clock.every(BEAT_MS, () => {
    beat++;
    for (const link of links) link.onBeat();
  });

  return {
    upgrade(request, socket, head) {
      const refusal = closing
        ? DRAINING
        : links.size - core.shares.used('links') >= maxUnopened
          ? FULL
          : refusalOf(request, options);
      if (!refusal)
        return server.handleUpgrade(
          request,
          socket,
          head,
          (ws) => void links.add(new Link(ws, { socket, address: addressOf(request, options.trustProxy) }, parts)),
        );
      refuse(socket, refusal);
    },
    async closeAll(reason, { spreadMs = 0 } = {}) {
      closing = true;
      const all = [...links];
      all.forEach((link, index) => {
        const wait = (spreadMs * index) / all.length;
        if (wait === 0) link.close(reason);
        else clock.after(wait, () => link.close(reason));
      });
      if (all.length > 0) await allGone.promise;
      stopBeat();
    },
    get size() {
      return links.size;
    },
    peers() {
      const counts = new Map<LinkPeer, number>();
      for (const { peer } of links) if (peer !== null) counts.set(peer, (counts.get(peer) ?? 0) + 1);
      return counts;
    },
  };
}

const DRAINING = upgradeRefusal('draining', 'This node takes no new links.');
const FULL = { ...upgradeRefusal('store_full', 'Too many sockets are waiting for their hello.'), share: 'links' };
const OTHER_PROTOCOL = upgradeRefusal('invalid_argument', `The client must offer the subprotocol ${SUBPROTOCOL}.`);

/** Returns the answer to a handshake that `ws` rejects. */
function badHandshake(error: Error, { method }: IncomingMessage): UpgradeRefusal {
  if (method !== 'GET')
    return { ...upgradeRefusal('method_not_allowed', 'A WebSocket handshake must use GET.'), headers: ['Allow: GET'] };
  return { ...upgradeRefusal('invalid_argument', `${error.message}.`), headers: ['Sec-WebSocket-Version: 13'] };
}

function upgradeRefusal(code: Code, detail: string): UpgradeRefusal {
  return { code, detail, status: statusOf(code) };
}

function refusalOf(request: IncomingMessage, rule: OriginRule): UpgradeRefusal | null {
  if (!originAllowed(request, rule)) return upgradeRefusal('forbidden', foreignOrigin(request, rule));
  return offersSubprotocol(request) ? null : OTHER_PROTOCOL;
}

/**
 * Returns the peer's address. With `trustProxy`, it is the last value of X-Forwarded-For, because the nearest proxy
 * appends the address that it saw; at most 64 characters of it are used.
 */
export function addressOf(request: IncomingMessage, trustProxy: boolean): string {
  const { remoteAddress = '' } = request.socket;
  const forwarded = trustProxy ? request.headers['x-forwarded-for'] : undefined;
  if (forwarded === undefined) return remoteAddress;
  const text = Array.isArray(forwarded) ? forwarded.join(',') : forwarded;
  return text.split(',').at(-1)?.trim().slice(0, 64) || remoteAddress;
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

export type UpgradeRefusal = {
  readonly status: number;
  readonly code: Code;
  readonly detail: string;
  /** The name of the share that is used up. */
  readonly share?: string;
  /** Additional header lines, each `Name: value`. */
  readonly headers?: readonly string[];
};

/** How long a peer may take to close its side of a socket after the last answer, in milliseconds. */
const LINGER_MS = 1_000;

/**
 * Rejects a request on a raw socket with a problem+json response, as the HTTP handlers do, and discards further bytes
 * from the peer. Closes the relay's side of the socket, and after LINGER_MS also the peer's side, if it is still open.
 */
export function rejectUpgrade(
  socket: Duplex,
  { status, code, detail, share, headers = [] }: UpgradeRefusal,
  clock: Clock,
): void {
  const title = STATUS_CODES[status] ?? 'Refused';
  const body = JSON.stringify({ type: 'about:blank', title, status, code, detail, share });
  const head = [
    `HTTP/1.1 ${status} ${title}`,
    'Connection: close',
    'Content-Type: application/problem+json',
    'Cache-Control: no-store',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(status === 429 || status === 503 ? ['Retry-After: 1'] : []),
    ...headers,
  ];
  socket.on('error', () => socket.destroy());
  socket.once(
    'close',
    clock.after(LINGER_MS, () => socket.destroy()),
  );
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  // With unread bytes the operating system would reset the connection, and the peer would lose the response.
  socket.resume();
}

/** Whether the client offers the subprotocol that this relay supports. */
function offersSubprotocol(request: IncomingMessage): boolean {
  const offered = request.headers['sec-websocket-protocol'] ?? '';
  return offered.split(',').some((name) => name.trim() === SUBPROTOCOL);
}
