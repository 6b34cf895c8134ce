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
import { addressOf } from './address.ts';
import { offersSubprotocol, turnAway, type Turned } from './doorstep.ts';
import { Link } from './link.ts';
import { originAllowed, type OriginRule } from './origin.ts';
import { createTurnEnd } from './outbox.ts';
import type { LinkParts, OpenLink } from './parts.ts';
import { BEAT_MS } from './pulse.ts';
import { createSocketServer } from './socket.ts';

export type GatewayOptions = OriginRule & {
  readonly core: Core;
  readonly authenticator: Authenticator;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** Sockets at once that were not welcomed yet; default: as many as the total of the share `links`. */
  readonly maxUnopened?: number;
  /** What users may send a second; default INBOUND_BYTES_PER_SECOND for each. */
  readonly inbound?: ByteRates;
  /** Called once for each link that is welcomed, with its socket and whose it is. */
  readonly onWelcome?: (socket: Duplex, principal: Principal) => void;
};

export type CloseAllOptions = {
  /** Closes the links one after another over this time, milliseconds, so that they do not all come back at once. Default 0. */
  readonly spreadMs?: number;
};

/** The WebSocket sessions of clients and callers. */
export interface Gateway {
  /** Takes over a request for `/connect` with its socket, answered in any case. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Takes no new links, closes those there are, and resolves once all are gone and core knows. Final. */
  closeAll(reason: CloseReason, options?: CloseAllOptions): Promise<void>;
  /** Open sockets. */
  readonly size: number;
}

export function createGateway(options: GatewayOptions): Gateway {
  const { clock, log, core } = options;
  const { maxUnopened = core.shares.bounds.links.total ?? Infinity } = options;
  const links = new Set<OpenLink>();
  const allGone = Promise.withResolvers<void>();
  const server = createSocketServer();
  const refuse = (socket: Duplex, turned: Turned): void => {
    log.debug({ status: turned.status, code: turned.code }, 'an upgrade was refused');
    turnAway(socket, turned, clock);
  };
  server.on('wsClientError', (error, socket, request) => refuse(socket, badHandshake(error, request)));
  let beat = 0;
  let closing = false;
  const onDone = (link: OpenLink): void => {
    links.delete(link);
    if (closing && links.size === 0) allGone.resolve();
  };
  const parts: LinkParts = {
    onWelcome() {},
    inbound: new ByteRates(clock, INBOUND_BYTES_PER_SECOND),
    ...options,
    turnEnd: createTurnEnd(),
    beat: () => beat,
    onDone,
  };
  const stopBeating = clock.every(BEAT_MS, () => {
    beat++;
    for (const link of links) link.onBeat();
  });

  return {
    upgrade(request, socket, head) {
      const turned = closing
        ? DRAINING
        : links.size - core.shares.used('links') >= maxUnopened
          ? FULL
          : turnedAway(request, options);
      if (!turned)
        return server.handleUpgrade(
          request,
          socket,
          head,
          (ws) => void links.add(new Link(ws, { socket, address: addressOf(request, options.trustProxy) }, parts)),
        );
      refuse(socket, turned);
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
      stopBeating();
    },
    get size() {
      return links.size;
    },
  };
}

const DRAINING = turned('draining', 'This node takes no new links.');
const FULL = { ...turned('store_full', 'As many sockets as may be wait for their hello.'), share: 'links' };
const FOREIGN = turned('forbidden', 'Pages of this origin may not connect.');
const OTHER_PROTOCOL = turned('invalid_argument', `The subprotocol ${SUBPROTOCOL} must be offered.`);

/** What `ws` found wrong. */
function badHandshake(error: Error, { method }: IncomingMessage): Turned {
  if (method !== 'GET')
    return { ...turned('method_not_allowed', 'A WebSocket begins with GET.'), headers: ['Allow: GET'] };
  return { ...turned('invalid_argument', `${error.message}.`), headers: ['Sec-WebSocket-Version: 13'] };
}

function turned(code: Code, detail: string): Turned {
  return { code, detail, status: statusOf(code) };
}

function turnedAway(request: IncomingMessage, rule: OriginRule): Turned | null {
  if (!originAllowed(request, rule)) return FOREIGN;
  return offersSubprotocol(request) ? null : OTHER_PROTOCOL;
}
