/**
 * The WebSocket endpoint: accepts or rejects upgrades to `/connect`, and owns the open links.
 *
 * link.ts runs each link.
 */
import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Authenticator, Principal } from '../core/auth/principal.ts';
import type { Core } from '../core/core.ts';
import type { Code } from '../core/errors.ts';
import { INBOUND_BYTES_PER_SECOND, PING_MS } from '../core/limits.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock, Log } from '../core/ports.ts';
import { ByteRates } from '../core/shares/turns.ts';
import { statusOf, type CloseReason } from '../protocol/codes.ts';
import { SUBPROTOCOL } from '../protocol/frames.ts';
import { addressOf } from '../web/forwarded.ts';
import { originRefusal, type OriginRule, type RefusalLog, type RefusalReason } from '../web/origin.ts';
import { BEAT_MS, Link, type GatewayServices } from './link.ts';
import { ActionLists } from './payloads.ts';
import type { LinkPeer } from './router.ts';
import { LinkSocket, createSocketServer, createTurnEnd, type MessageSocket } from './socket.ts';

export type GatewayOptions = OriginRule & {
  readonly core: Core;
  readonly authenticator: Authenticator;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** The most open sockets that are not welcomed yet. Default: the total of the share `links`. */
  readonly maxUnopened?: number;
  /** The inbound byte rates of users. Default: INBOUND_BYTES_PER_SECOND for each user. */
  readonly inbound?: ByteRates;
  /** The interval of pings, in milliseconds. Default: PING_MS. */
  readonly pingMs?: number;
  /** Called once for each welcomed link that began as an HTTP upgrade, with its connection and its principal. */
  readonly onWelcome?: (socket: Duplex, principal: Principal) => void;
  /** Logs refused upgrades. */
  readonly refused: RefusalLog;
};

/** The WebSocket sessions of clients and callers. */
export interface Gateway {
  /** Takes over an upgrade request for `/connect` and its socket. Every request gets a response. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /**
   * Takes over an open socket. Returns false, without touching the socket, if the gateway accepts no new links.
   * `address`: the address of the peer.
   */
  accept(socket: MessageSocket, address: string): boolean;
  /**
   * Refuses new links, and closes the open ones over `spreadMs` milliseconds (default 0), so that the peers do not
   * reconnect all at once. Resolves when all sockets are gone and core has recorded the end of each link. This cannot
   * be undone.
   */
  closeAll(reason: CloseReason, options?: { readonly spreadMs?: number }): Promise<void>;
  /** Closes the links that a revocation covers, with `forbidden`. Returns how many were closed. */
  endRevoked(isCovered: (principal: Principal, clientId: string | null) => boolean): number;
  /** Closes the links with a request of a caller in progress, because what they would be sent may be lost. */
  endRequests(): void;
  /** The number of open sockets, welcomed or not. */
  readonly size: number;
  /** The number of welcomed links of each kind of peer. */
  peers(): ReadonlyMap<LinkPeer, number>;
}

export function createGateway(options: GatewayOptions): Gateway {
  const { clock, core } = options;
  const { maxUnopened = core.shares.bounds.links.total ?? Infinity } = options;
  const links = new Set<Link>();
  const allGone = Promise.withResolvers<void>();
  const server = createSocketServer();
  const refuse = (request: IncomingMessage, socket: Duplex, { reason, ...refusal }: ReasonedRefusal): void => {
    options.refused(request, { reason, address: addressOf(request, options.trustProxy) });
    rejectUpgrade(socket, refusal, clock);
  };
  server.on('wsClientError', (error, socket, request) => refuse(request, socket, badHandshake(error, request)));
  let beat = 0;
  let closing = false;
  const onDone = (link: Link): void => {
    links.delete(link);
    if (closing && links.size === 0) allGone.resolve();
  };
  const services: GatewayServices = {
    inbound: new ByteRates(clock, INBOUND_BYTES_PER_SECOND),
    pingMs: PING_MS,
    ...options,
    onWelcome: (socket, principal) =>
      socket instanceof LinkSocket && socket.raw && options.onWelcome?.(socket.raw, principal),
    turnEnd: createTurnEnd(core.loop),
    crypto: core.crypto,
    actionLists: new ActionLists(),
    beat: () => beat,
    onDone,
  };
  const stopBeat = clock.every(BEAT_MS, () => {
    beat++;
    for (const link of links) link.onBeat();
  });

  const stopHomes = core.onHome((concerns) => {
    for (const link of links) link.tellHome(concerns);
  });
  const stopPauses = core.pausedClients.onChange((concerns) => {
    for (const link of links) link.tellPause(concerns);
  });

  const add = (socket: MessageSocket, address: string): void => void links.add(new Link(socket, address, services));
  const busy = (): ReasonedRefusal | null => {
    if (closing) return DRAINING;
    return links.size - core.shares.used('links') >= maxUnopened ? FULL : null;
  };

  return {
    upgrade(request, socket, head) {
      const refusal = busy() ?? refusalOf(request, options);
      if (refusal) return refuse(request, socket, refusal);
      server.handleUpgrade(request, socket, head, (ws) => {
        ws.raw = socket;
        add(ws, addressOf(request, options.trustProxy));
      });
    },
    accept(socket, address) {
      if (busy()) return false;
      add(socket, address);
      return true;
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
      stopHomes();
      stopPauses();
    },
    endRevoked(isCovered) {
      let ended = 0;
      for (const link of links) if (link.endIfRevoked(isCovered)) ended++;
      return ended;
    },
    endRequests() {
      for (const link of links) link.endRequests();
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

type ReasonedRefusal = UpgradeRefusal & { readonly reason: RefusalReason };

const DRAINING = upgradeRefusal('draining', 'draining', 'This node takes no new links.');
const FULL = {
  ...upgradeRefusal('too_many_sockets', 'store_full', 'Too many sockets are waiting for their hello.'),
  share: 'links',
};
const OTHER_PROTOCOL = upgradeRefusal(
  'subprotocol',
  'invalid_argument',
  `The client must offer the subprotocol ${SUBPROTOCOL}.`,
);

/** Returns the response to a handshake that `ws` rejects. */
function badHandshake(error: Error, { method }: IncomingMessage): ReasonedRefusal {
  const [code, detail, header] =
    method === 'GET'
      ? (['invalid_argument', `${error.message}.`, 'Sec-WebSocket-Version: 13'] as const)
      : (['method_not_allowed', 'A WebSocket handshake must use GET.', 'Allow: GET'] as const);
  return { ...upgradeRefusal('handshake', code, detail), headers: [header] };
}

function upgradeRefusal(reason: RefusalReason, code: Code, detail: string): ReasonedRefusal {
  return { reason, code, detail, status: statusOf(code) };
}

function refusalOf(request: IncomingMessage, rule: OriginRule): ReasonedRefusal | null {
  const refusal = originRefusal(request, rule);
  if (refusal !== null) return upgradeRefusal(refusal.reason, 'forbidden', refusal.detail);
  return offersSubprotocol(request) ? null : OTHER_PROTOCOL;
}

export type UpgradeRefusal = {
  readonly status: number;
  readonly code: Code;
  readonly detail: string;
  /** The name of the share that has no room. */
  readonly share?: string;
  /** Additional header lines, each `Name: value`. */
  readonly headers?: readonly string[];
};

/** How long a peer may take to close its side of a socket after the response, in milliseconds. */
const LINGER_MS = 1_000;

/**
 * Rejects a request on a raw socket with a problem+json response, like the HTTP handlers, and discards further bytes
 * from the peer. Closes the relay's side of the socket. After LINGER_MS, closes the peer's side as well if it is still
 * open.
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
  // If unread bytes remained, the operating system would reset the connection, and the peer would lose the response.
  socket.resume();
}

/** Whether the client offers the subprotocol that this relay supports. */
function offersSubprotocol(request: IncomingMessage): boolean {
  const offered = request.headers['sec-websocket-protocol'] ?? '';
  return offered.split(',').some((name) => name.trim() === SUBPROTOCOL);
}
