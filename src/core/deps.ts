import type { Policy } from './auth/policy.ts';
import type { Backend } from './backend.ts';
import type { Clock } from './clock.ts';
import type { Crypto } from './crypto.ts';
import type { Cursors } from './cursor.ts';
import type { SpillStore } from './history/spill.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';
import type { ReadTurns } from './shares/read-turns.ts';
import type { Shares } from './shares/shares.ts';

/** The dependencies that the parts of core share. */
export type Deps = {
  readonly nodeId: string;
  readonly backend: Backend;
  readonly clock: Clock;
  readonly crypto: Crypto;
  readonly cursors: Cursors;
  readonly policy: Policy;
  readonly log: Log;
  readonly metrics: Metrics;
  /** The store of payloads that are too large for a history message. */
  readonly spill: SpillStore;
  /** The resources that each user holds in this process. */
  readonly shares: Shares;
  /** Which large reads of the store run now, and which wait. */
  readonly readTurns: ReadTurns;
  /** Whether administrators may read the raw sample of history. */
  readonly rawMessages: boolean;
};
