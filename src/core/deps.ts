/** The dependencies that the parts of core share. Types only. */
import type { AuditTrail } from './audit/trail.ts';
import type { Policy } from './auth/policy.ts';
import type { Backend } from './backend.ts';
import type { Clock } from './clock.ts';
import type { Crypto } from './crypto.ts';
import type { Cursors } from './cursor.ts';
import type { CommandEvents } from './delivery/command-events.ts';
import type { SpillStore } from './history/spill.ts';
import type { EventLoop } from './event-loop.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';
import type { ServerSettings } from './server.ts';
import type { RevealMode } from './reveal/api.ts';
import type { ReadTurns } from './shares/read-turns.ts';
import type { Shares } from './shares/shares.ts';
import type { Tracing } from './tracing.ts';

export type Deps = {
  readonly nodeId: string;
  readonly backend: Backend;
  readonly clock: Clock;
  readonly crypto: Crypto;
  readonly cursors: Cursors;
  readonly policy: Policy;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Records spans. Null: no spans are recorded. */
  readonly tracing: Tracing | null;
  /** The store of payloads that are too large for a history message. */
  readonly spill: SpillStore;
  /** The resources that each user holds in this process. */
  readonly shares: Shares;
  /**
   * Bounds how many large reads of the store run at the same time, so that no user waits behind all reads of another.
   */
  readonly readTurns: ReadTurns;
  /** The event loop of the process, to which long reads step back. */
  readonly loop: EventLoop;
  /** Whether administrators may read the raw sample of history. */
  readonly rawMessages: boolean;
  /** Writes an audit row before each act of an administrator. */
  readonly audit: AuditTrail;
  /** How administrators may read payloads. */
  readonly reveal: RevealMode;
  readonly server: ServerSettings;
  /** The live feeds of what happens to commands. */
  readonly events: CommandEvents;
};
