/** The WebSocket endpoint: accepts upgrades to `/connect` and owns the open links. link.ts handles their frames. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Authenticator, Principal } from '../core/auth/principal.ts';
import type { Clock } from '../core/clock.ts';
import type { Core } from '../core/core.ts';
import type { Code } from '../core/errors.ts';
import { INBOUND_BYTES_PER_SECOND } from '../core/limits.ts';
import type { Log } from '../core/log.ts';
import type { Metrics } from '../core/metrics.ts';
import { ByteRates } from '../core/shares/byte-rate.ts';
import type { CloseReason } from '../protocol/close.ts';
import { statusOf } from '../protocol/codes.ts';
import { SUBPROTOCOL } from '../protocol/frame.ts';
import { ActionLists } from './action-lists.ts';
import { addressOf } from './address.ts';
import { offersSubprotocol, rejectUpgrade, type UpgradeRefusal } from './reject-upgrade.ts';
import { Link } from './link.ts';
import { foreignOrigin, originAllowed, type OriginRule } from '../web/origin-rule.ts';
import { createTurnEnd } from './frame-buffer.ts';
import type { GatewayParts, LinkPeer, OpenLink } from './parts.ts';
import { BEAT_MS } from './heartbeat.ts';
import { createSocketServer } from './socket.ts';

export type GatewayOptions = OriginRule & {
  readonly core: Core;
  readonly authenticator: Authenticator;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** The most sockets that may be open without `welcome` at the same time; default: the total of the share `links`. */
  readonly maxUnopened?: number;
  /** The inbound byte rates of users; default: INBOUND_BYTES_PER_SECOND for each user. */
  readonly inbound?: ByteRates;
  /** Called once for each welcomed link, with its socket and its principal. */
  readonly onWelcome?: (socket: Duplex, principal: Principal) => void;
};

export type CloseAllOptions = {
  /** Spreads the closes over this time, in milliseconds, so that the peers do not all reconnect at once. Default 0. */
  readonly spreadMs?: number;
};

/** The WebSocket sessions of clients and callers. */
export interface Gateway {
  /** Takes over an upgrade request for `/connect` and its socket. Every request gets a response. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /**
   * Refuses new links and closes the open ones. Resolves when all sockets are gone and core has recorded the end of
   * each link. Cannot be undone.
   */
  closeAll(reason: CloseReason, options?: CloseAllOptions): Promise<void>;
  /** The number of open sockets, welcomed or not. */
  readonly size: number;
  /** The number of welcomed links, by who is at the other end. */
  peers(): ReadonlyMap<LinkPeer, number>;
}

export function createGateway(options: GatewayOptions): Gateway {
  const { clock, log, core } = options;
  const { maxUnopened = core.shares.bounds.links.total ?? Infinity } = options;
  const links = new Set<OpenLink>();
  const allGone = Promise.withResolvers<void>();
  const server = createSocketServer();
  const refuse = (socket: Duplex, refusal: UpgradeRefusal): void => {
    log.debug({ status: refusal.status, code: refusal.code }, 'an upgrade was refused');
    rejectUpgrade(socket, refusal, clock);
  };
  server.on('wsClientError', (error, socket, request) => refuse(socket, badHandshake(error, request)));
  let beat = 0;
  let closing = false;
  const onDone = (link: OpenLink): void => {
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
