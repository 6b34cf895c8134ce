/** The dependencies that the parts of core share. */
import type { AuditTrail } from './audit/audit.ts';
import type { Policy, RevealMode } from './auth/policy.ts';
import type { Backend } from './backend.ts';
import type { CommandEvents } from './commands/events.ts';
import type { Cursors } from './cursors.ts';
import type { SpillStore } from './history/message.ts';
import type { Metrics } from './metrics.ts';
import type { Clock, Crypto, EventLoop, Log, ProcessMeter, Tracing } from './ports.ts';
import type { Admissions, RevocationIndex } from './revocations/revocation.ts';
import type { ServerSettings } from './server-info.ts';
import type { Shares } from './shares/shares.ts';
import type { ReadTurns } from './shares/turns.ts';

export type Deps = {
  readonly nodeId: string;
  readonly backend: Backend;
  readonly clock: Clock;
  readonly crypto: Crypto;
  readonly cursors: Cursors;
  readonly policy: Policy;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Records trace spans. Null: nothing is traced. */
  readonly tracing: Tracing | null;
  /** Stores payloads that are too large for a history row. */
  readonly spill: SpillStore;
  /** The resources that each user holds in this process. */
  readonly shares: Shares;
  /**
   * Limits how many large reads of the store run at the same time, so that no user waits behind all reads of another.
   */
  readonly readTurns: ReadTurns;
  /** The event loop of the process. Long reads yield to it. */
  readonly loop: EventLoop;
  /** Measures the process, for the reports of this node. */
  readonly processMeter: ProcessMeter;
  /** Whether administrators may read the raw sample of history messages. */
  readonly rawMessages: boolean;
  /** Writes an audit row before each action of an administrator. */
  readonly audit: AuditTrail;
  /** How administrators may read payloads. */
  readonly reveal: RevealMode;
  readonly server: ServerSettings;
  /**
   * The revocations that this node knows, and the admissions under way, for which it waits when it learns of a
   * revocation.
   */
  readonly revoked: RevocationIndex;
  readonly admissions: Admissions;
  /** The live feeds of command events. */
  readonly events: CommandEvents;
  /** Aborts when core is closed: nothing is tried again afterwards. */
  readonly closed: AbortSignal;
};
