import type { Duplex } from 'node:stream';
import type { Authenticator, Principal } from '../core/auth/principal.ts';
import type { Clock } from '../core/clock.ts';
import type { Core } from '../core/core.ts';
import type { Log } from '../core/log.ts';
import type { Metrics } from '../core/metrics.ts';
import type { ByteRates } from '../core/shares/byte-rate.ts';
import type { CloseReason } from '../protocol/close.ts';
import type { TurnEnd } from './outbox.ts';

/** A link as its gateway holds it. */
export interface OpenLink {
  /** Says `bye` and closes. */
  close(reason: CloseReason): void;
  /** The gateway's beat. */
  onBeat(): void;
}

/** What every link of a gateway is made of. */
export type LinkParts = {
  readonly core: Core;
  readonly authenticator: Authenticator;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly turnEnd: TurnEnd;
  /** Counts up once each BEAT_MS. */
  readonly beat: () => number;
  /** What users may send a second. */
  readonly inbound: ByteRates;
  /** Called once for each link that is welcomed, with its socket and whose it is. */
  readonly onWelcome: (socket: Duplex, principal: Principal) => void;
  /** Called once for each link, when its socket is gone and core knows. One for all: no link holds a promise that it may end. */
  readonly onDone: (link: OpenLink) => void;
};
