/** The types through which the gateway and its links use each other. Contains no code. */
import type { Duplex } from 'node:stream';
import type { Authenticator, Principal } from '../core/auth/principal.ts';
import type { Clock } from '../core/clock.ts';
import type { ClientType } from '../core/connections/connection.ts';
import type { Core } from '../core/core.ts';
import type { Log } from '../core/log.ts';
import type { Metrics } from '../core/metrics.ts';
import type { ByteRates } from '../core/shares/byte-rate.ts';
import type { CloseReason } from '../protocol/close.ts';
import type { ActionLists } from './action-lists.ts';
import type { TurnEnd } from './frame-buffer.ts';

/** Who is at the other end of a link: a client of this type, or a caller. */
export type LinkPeer = ClientType | 'caller';

/** An open link, as the gateway uses it. */
export interface OpenLink {
  /** Who is at the other end; null before `welcome`. */
  readonly peer: LinkPeer | null;
  /** Sends `bye` and closes. */
  close(reason: CloseReason): void;
  /** Called once per gateway beat (BEAT_MS). */
  onBeat(): void;
}

/** The dependencies that all links of a gateway share. */
export type GatewayParts = {
  readonly core: Core;
  readonly authenticator: Authenticator;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly turnEnd: TurnEnd;
  /** The number of the current beat; it grows by one every BEAT_MS. */
  readonly beat: () => number;
  /** The inbound byte rates of users. */
  readonly inbound: ByteRates;
  /** The lists of actions that clients advertised most recently. */
  readonly actionLists: ActionLists;
  /** Called once for each welcomed link, with its socket and its principal. */
  readonly onWelcome: (socket: Duplex, principal: Principal) => void;
  /**
   * Called once for each link, when its socket is gone and core has recorded its end. All links share one function, so
   * no link holds a promise of its own.
   */
  readonly onDone: (link: OpenLink) => void;
};
