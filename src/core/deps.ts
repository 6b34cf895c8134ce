import type { Policy } from './auth/policy.ts';
import type { Backend } from './backend.ts';
import type { Clock } from './clock.ts';
import type { Crypto } from './crypto.ts';
import type { Cursors } from './cursor.ts';
import type { SpillStore } from './history/spill.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';
import type { Shares } from './shares/shares.ts';

/** What every room is made of. */
export type Deps = {
  readonly nodeId: string;
  readonly backend: Backend;
  readonly clock: Clock;
  readonly crypto: Crypto;
  readonly cursors: Cursors;
  readonly policy: Policy;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Where payloads too large for a message lie. */
  readonly spill: SpillStore;
  /** What each user holds in this process. */
  readonly shares: Shares;
  /** Whether the raw sample of history may be read. */
  readonly rawMessages: boolean;
};
