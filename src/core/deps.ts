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
  /** The event loop of the process, to which long reads yield. */
  readonly loop: EventLoop;
  /** Measures the process, for the report of this node. */
  readonly processMeter: ProcessMeter;
  /** Whether administrators may read the raw sample of history. */
  readonly rawMessages: boolean;
  /** Writes an audit row before each act of an administrator. */
  readonly audit: AuditTrail;
  /** How administrators may read payloads. */
  readonly reveal: RevealMode;
  readonly server: ServerSettings;
  /** The revocations that this node knows, and the admissions that it waits for when it learns of one. */
  readonly revoked: RevocationIndex;
  readonly admissions: Admissions;
  /** The live feeds of what happens to commands. */
  readonly events: CommandEvents;
};
