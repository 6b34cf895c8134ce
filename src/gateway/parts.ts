import type { Authenticator } from '../core/auth/principal.ts';
import type { Clock } from '../core/clock.ts';
import type { Core } from '../core/core.ts';
import type { Log } from '../core/log.ts';
import type { Metrics } from '../core/metrics.ts';
import type { TurnEnd } from './outbox.ts';

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
};
