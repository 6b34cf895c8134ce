import type { Policy } from './auth/policy.ts';
import type { Backend } from './backend.ts';
import type { Clock } from './clock.ts';
import type { Crypto } from './crypto.ts';
import type { Cursors } from './cursor.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';

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
};
