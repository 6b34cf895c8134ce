import type { CommandKey } from '../ids.ts';
import type { Code } from '../errors.ts';
import type { TerminalError } from '../history/message.ts';
import { END_WORDS } from './words.ts';

export type Stage = 'admitted' | 'queued' | 'dispatched' | 'acknowledged' | 'terminal';
export type ProvenStage = Exclude<Stage, 'terminal'>;
/** `outcome_unknown`: it may have run, and nothing more is known; the last proven stage says how far it certainly came. */
export type Outcome = 'completed' | 'failed' | 'cancelled' | 'expired' | 'outcome_unknown';
/** What is proven about execution. Never external completion. */
export type ExecutionEvidence = 'not_written' | 'refused_by_client' | 'may_have_run' | 'reported_by_client';

/** First evidence of an end that was reported after the command had ended, or by an instance that it was not bound to. */
export type LateEvidence = {
  readonly at: number;
  readonly instanceId: string;
  readonly kind: 'result' | 'error' | 'cancelled';
  readonly digest: string;
};

/**
 * One admitted command, without any payload. Immutable: every move makes a new object and counts `version` up. It has exactly one end.
 */
export type Command = CommandKey & {
  readonly version: number;
  readonly action: string;
  readonly scopeId: string;
  /** SHA-256 over what was asked for: the same id with another digest is a conflict. */
  readonly digest: string;
  readonly stage: Stage;
  readonly lastProvenStage: ProvenStage;
  readonly outcome: Outcome | null;
  readonly execution: ExecutionEvidence;
  readonly error: TerminalError | null;
  /** Why it ended so, for the operator: the error's code, or who cancelled. */
  readonly reason: string | null;
  /** Dispatches begun. At most one: nothing is written twice. */
  readonly attempts: number;
  /** The instance that the caller named; null for any. */
  readonly namedInstanceId: string | null;
  /** The instance believed live when the command was admitted or queued. */
  readonly expectedInstanceId: string | null;
  /** The instance that the socket write went to: only its reports count. */
  readonly boundInstanceId: string | null;
  /** The node of the target's connection. */
  readonly nodeId: string | null;
  readonly recoveredFromNodeId: string | null;
  readonly traceId: string | null;
  readonly parentSpanId: string | null;
  readonly admittedAt: number;
  readonly queuedAt: number | null;
  readonly dispatchedAt: number | null;
  readonly acknowledgedAt: number | null;
  readonly terminalAt: number | null;
  readonly cancelRequestedAt: number | null;
  /** Until when it may wait for its client to connect; counts only until it was first queued. */
  readonly connectDeadline: number;
  readonly deadline: number;
  readonly lateResults: number;
  readonly firstLate: LateEvidence | null;
  /** The command ended with a result that is no longer retained. */
  readonly resultExpired: boolean;
  /** How often each end that a client reported was seen (a result re-sent after a reconnect, say). At most SIGHTINGS_PER_COMMAND. */
  readonly sightings: readonly Sighting[];
};

/** What ingestion saw of one message id; says nothing of how often the client executed. */
export type Sighting = {
  readonly messageId: string;
  readonly firstSeenAt: number;
  readonly lastSeenAt: number;
  readonly count: number;
};

/**
 * What is left of an ended command whose record is no longer kept: enough to answer a repeat of its id for the rest of the idempotency
 * window.
 */
export type CommandMark = {
  readonly outcome: Outcome;
  readonly execution: ExecutionEvidence;
  /** Code of the error that it ended with; null where there was none. The message is not kept. */
  readonly errorCode: Code | null;
  /** Epoch milliseconds. */
  readonly endedAt: number;
  /** The command ended with a result, which is no longer retained. */
  readonly resultExpired: boolean;
};

/** The error that a mark still names; its message is the code's own. */
export function errorOfMark({ errorCode }: CommandMark): TerminalError | null {
  return errorCode === null ? null : { code: errorCode, message: END_WORDS[errorCode] ?? errorCode };
}

/** A command as it was last known, ended as its mark says. */
export function endedByMark(command: Command, mark: CommandMark): Command {
  const { outcome, execution, errorCode, endedAt, resultExpired } = mark;
  const end = { outcome, execution, resultExpired, error: errorOfMark(mark), reason: errorCode, terminalAt: endedAt };
  return { ...command, stage: 'terminal', ...end };
}

export function isTerminal(command: Command): boolean {
  return command.stage === 'terminal';
}

export function wasDispatched(command: Command): boolean {
  return command.dispatchedAt !== null;
}

const RANK: Readonly<Record<Stage, number>> = { admitted: 0, queued: 1, dispatched: 2, acknowledged: 3, terminal: 4 };

export function reached(command: Command, stage: Stage): boolean {
  return RANK[command.stage] >= RANK[stage];
}
