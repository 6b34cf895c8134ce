/** A command: its record, its stages, its outcome, and the mark that remains when the record is removed. */
import type { WireExecution, WireOutcome, WireStage } from '../../protocol/codes.ts';
import type { CallerLabel } from '../auth/caller-label.ts';
import type { AdminPrincipal, TokenIdentity } from '../auth/principal.ts';
import type { ClientType } from '../connections/connection.ts';
import type { Code } from '../errors.ts';
import type { TerminalError } from '../history/message.ts';
import type { CommandKey } from '../ids.ts';
import { SIGHTINGS_PER_COMMAND } from '../limits.ts';
import type { TraceFields } from '../trace-context.ts';
import { END_MESSAGES } from './end-messages.ts';

export type Stage = WireStage;
export type ProvenStage = Exclude<Stage, 'terminal'>;
/**
 * How a command ended. `outcome_unknown`: the command may have run, and the relay does not know how it ended;
 * `lastProvenStage` says how far it certainly came.
 */
export type Outcome = WireOutcome;
/** What is proven about the execution in the client. It says nothing about effects outside the client. */
export type ExecutionEvidence = WireExecution;

/**
 * The first end that was reported too late: after the command had ended, or by an instance to which it was not bound.
 */
export type LateEvidence = {
  readonly at: number;
  readonly instanceId: string;
  readonly kind: 'result' | 'error' | 'cancelled';
  readonly digest: string;
};

/**
 * Who invoked a command. `name`: an administrator's name, a user's id, or the id of the grant of a site's viewer. It
 * stays the same when the caller's token is renewed.
 */
export type CommandCaller = {
  readonly kind: 'admin' | 'user' | 'grant';
  readonly name: string;
  /** The program that made the call in the caller's name. Absent if the call named none. */
  readonly label?: CallerLabel;
  /**
   * The token of the call that admitted the command. Only revocations use it, and no interface shows it. Absent for a
   * configured token, for a grant, or if the store does not store it.
   */
  readonly token?: TokenIdentity;
};

/** A filter for callers. A caller must match every member that is not null. */
export type CallerFilter = {
  /** The caller's name, or the name in its label. */
  readonly caller: string | null;
  /** The caller's kind, or the kind of its label. */
  readonly callerKind: CommandCaller['kind'] | CallerLabel['kind'] | null;
};

export function matchesCaller({ caller, callerKind }: CallerFilter, { kind, name, label }: CommandCaller): boolean {
  return (
    (caller === null || name === caller || label?.name === caller) &&
    (callerKind === null || kind === callerKind || label?.kind === callerKind)
  );
}

/**
 * One admitted command, without payloads. Immutable: each change makes a new object and increments `version`. A command
 * has exactly one end.
 */
export type Command = CommandKey &
  TraceFields & {
    readonly version: number;
    readonly action: string;
    readonly scopeId: string;
    /**
     * The SHA-256 of what the invocation asks for; NO_DIGEST if the relay made the id. A second invocation with the
     * same id and another digest is a conflict.
     */
    readonly digest: string;
    readonly stage: Stage;
    readonly lastProvenStage: ProvenStage;
    readonly outcome: Outcome | null;
    readonly execution: ExecutionEvidence;
    readonly error: TerminalError | null;
    /** For the operator, why the command ended in this way: the error code, or who cancelled it. */
    readonly reason: string | null;
    /**
     * How many dispatches were begun: 0 or 1, plus one for each time that the command was written again on the client's
     * next link because the client had not received it.
     */
    readonly attempts: number;
    /** The instance that the caller named; null if any instance may run the command. */
    readonly namedInstanceId: string | null;
    /** The context of the client that the caller named. Absent if the caller named none. */
    readonly contextId?: string;
    /** What kind of program the client was when the command was admitted; null if the client was not connected. */
    readonly clientType: ClientType | null;
    /** The instance that was connected when the command was admitted or, if none was, when it was queued. */
    readonly expectedInstanceId: string | null;
    /** The instance to which the command was written. Reports from other instances do not count. */
    readonly boundInstanceId: string | null;
    /** The node of the target's connection. */
    readonly nodeId: string | null;
    readonly recoveredFromNodeId: string | null;
    /** Who admitted the command. A later invocation of the same id does not change it. */
    readonly caller: CommandCaller;
    /**
     * The span of the call that admitted the command, in the form of a `traceparent` header; DECLINED if a sampler
     * declined the span. Null if the admitting node does not trace. All later spans of the command, on any node, are
     * children of this span.
     */
    readonly callSpan: string | null;
    readonly admittedAt: number;
    readonly queuedAt: number | null;
    readonly dispatchedAt: number | null;
    readonly acknowledgedAt: number | null;
    readonly terminalAt: number | null;
    readonly cancelRequestedAt: number | null;
    /** Until when the command may wait for its client to connect. No longer relevant once the command was queued. */
    readonly connectDeadline: number;
    readonly deadline: number;
    readonly lateResults: number;
    readonly firstLate: LateEvidence | null;
    /** Whether the command had a result that is no longer retained. */
    readonly resultExpired: boolean;
    /**
     * When the whole answer was written to an agent, for calls through MCP. After an unknown outcome: when a later call
     * named this command. Absent if this has not happened, or if it is not known.
     */
    readonly answeredAt?: number;
    /**
     * The token of the agent's request that must get the answer (see `OwedAnswers`); OWED_BY_NOBODY if the answer was
     * lost. Absent if no agent made the call, or if running it twice does no harm.
     */
    readonly owedBy?: string;
    /**
     * The ends that the client reported, each with the number of times it arrived. For example, a client sends its
     * result again after a reconnect. At most SIGHTINGS_PER_COMMAND entries.
     */
    readonly sightings: readonly Sighting[];
  };

/** The value of `owedBy` if the answer was lost. */
export const OWED_BY_NOBODY = '-';

/**
 * The digest if the relay made the command id: no caller knew the id before, so there is nothing to compare. It equals
 * no real digest, so another invocation with this id is a conflict.
 */
export const NO_DIGEST = '';

/**
 * How often the relay received a message with this id. It says nothing about how often the client executed the command.
 */
export type Sighting = {
  readonly messageId: string;
  readonly firstSeenAt: number;
  readonly lastSeenAt: number;
  readonly count: number;
};

/**
 * What the relay retains of an ended command after it removed the record: enough to answer a repeated id for the rest
 * of the idempotency window.
 */
export type CommandMark = {
  readonly outcome: Outcome;
  readonly execution: ExecutionEvidence;
  /** The error code of the command; null if it ended without an error. The error's message is not retained. */
  readonly errorCode: Code | null;
  /** When the command ended, in epoch milliseconds. */
  readonly endedAt: number;
  /** Whether the command had a result that is no longer retained. */
  readonly resultExpired: boolean;
};

/** Returns the error of a mark, with the standard message of its code. */
export function errorOfMark({ errorCode }: CommandMark): TerminalError | null {
  return errorCode === null ? null : { code: errorCode, message: END_MESSAGES[errorCode] ?? errorCode };
}

/** Returns the last known record of a command, with the end that its mark describes. */
export function endedByMark(command: Command, mark: CommandMark): Command {
  const { outcome, execution, errorCode, endedAt, resultExpired } = mark;
  const end = { outcome, execution, resultExpired, error: errorOfMark(mark), reason: errorCode, terminalAt: endedAt };
  return { ...command, stage: 'terminal', ...end };
}

export function isTerminal(command: Command): boolean {
  return command.stage === 'terminal';
}

/** Returns the time from admission to end, in milliseconds; null while the command is live. */
export function durationOf({ admittedAt, terminalAt }: Pick<Command, 'admittedAt' | 'terminalAt'>): number | null {
  return terminalAt === null ? null : Math.max(0, terminalAt - admittedAt);
}

/**
 * Returns the message id of an end. An end that the client sends again has the same id. Uses `join` instead of a
 * template literal: the id stays in memory, and a template literal's string would keep all its parts in memory too.
 */
export function endMessageId(
  commandId: string,
  { kind, instanceId }: { readonly kind: string; readonly instanceId: string },
): string {
  return [commandId, kind, instanceId].join(':');
}

/** Whether this administrator invoked the command. */
export function isCallOf({ caller }: Command, administrator: AdminPrincipal): boolean {
  return caller.kind === 'admin' && caller.name === administrator.name;
}

/** The shortest end of a command id that a search accepts. Tables and short log lines show this many characters. */
const ID_END_CHARS = 8;

/**
 * Whether the text is the command's id, the last ID_END_CHARS or more characters of the id, or the command's trace id.
 */
export function hasIdOrTrace({ commandId, traceId }: Pick<Command, 'commandId' | 'traceId'>, text: string): boolean {
  return commandId === text || traceId === text || (text.length >= ID_END_CHARS && commandId.endsWith(text));
}

export function wasDispatched(command: Command): boolean {
  return command.dispatchedAt !== null;
}

const RANK: Readonly<Record<Stage, number>> = { admitted: 0, queued: 1, dispatched: 2, acknowledged: 3, terminal: 4 };

export function reached(command: Command, stage: Stage): boolean {
  return RANK[command.stage] >= RANK[stage];
}

/** Why a command that names a context must not be written to its client. */
export type ContextRefusal = 'context_gone' | 'context_unsupported';

/** The members that a new record takes from the invocation, and how long the client has to connect and to respond. */
type NewCommand = Pick<
  Command,
  | (
      | 'userId'
      | 'clientId'
      | 'commandId'
      | 'action'
      | 'digest'
      | 'scopeId'
      | 'namedInstanceId'
      | 'clientType'
      | 'caller'
    )
  | ('traceId' | 'parentSpanId' | 'traceFlags' | 'traceState' | 'callSpan')
> & { readonly connectWithinMs: number; readonly respondWithinMs: number };

/** The part of a client's link that the records of its commands contain. */
type BoundTo = { readonly nodeId: string; readonly instanceId: string };

/** Returns the record of a command that is admitted now. The command is queued if its client is connected. */
export function newCommand(request: NewCommand, binding: BoundTo | null, now: number): Command {
  const { userId, clientId, commandId, action, digest, scopeId, namedInstanceId } = request;
  const { clientType, caller, traceId, parentSpanId, traceFlags, traceState, callSpan } = request;
  const connectDeadline = now + request.connectWithinMs;
  return {
    userId,
    clientId,
    commandId,
    action,
    digest,
    scopeId,
    namedInstanceId,
    clientType,
    caller,
    traceId,
    parentSpanId,
    traceFlags,
    traceState,
    callSpan,
    version: 1,
    stage: binding ? 'queued' : 'admitted',
    lastProvenStage: binding ? 'queued' : 'admitted',
    outcome: null,
    execution: 'not_written',
    error: null,
    reason: null,
    attempts: 0,
    expectedInstanceId: namedInstanceId ?? binding?.instanceId ?? null,
    boundInstanceId: null,
    nodeId: binding?.nodeId ?? null,
    recoveredFromNodeId: null,
    admittedAt: now,
    queuedAt: binding ? now : null,
    dispatchedAt: null,
    acknowledgedAt: null,
    terminalAt: null,
    cancelRequestedAt: null,
    connectDeadline,
    deadline: connectDeadline + request.respondWithinMs,
    lateResults: 0,
    firstLate: null,
    resultExpired: false,
    sightings: [],
  };
}

/**
 * Returns the record of a command that is dispatched now. Written out as a literal, because it is faster than `changed`
 * and every command passes here.
 */
export function dispatched(before: Command, { instanceId }: BoundTo, now: number): Command {
  return {
    ...before,
    version: before.version + 1,
    stage: 'dispatched',
    lastProvenStage: 'dispatched',
    execution: 'may_have_run',
    attempts: before.attempts + 1,
    boundInstanceId: instanceId,
    dispatchedAt: nextTime(before, now),
  };
}

/**
 * Returns the time for a change that happens now, but never a time before the command's last stage. Stages may be
 * recorded by nodes whose clocks differ by milliseconds, and a clock may be set back.
 */
export function nextTime(before: Command, now: number): number {
  const { terminalAt, acknowledgedAt, dispatchedAt, queuedAt, admittedAt } = before;
  return Math.max(now, terminalAt ?? acknowledgedAt ?? dispatchedAt ?? queuedAt ?? admittedAt);
}

/** Returns a record with these changes and the next version. */
export function changed(before: Command, change: Partial<Command>): Command {
  return { ...before, ...change, version: before.version + 1 };
}

/** How a command ended, and what is proven about its execution. */
type Proof = Pick<Command, 'outcome' | 'execution'>;
const UNKNOWN: Proof = { outcome: 'outcome_unknown', execution: 'may_have_run' };

/**
 * Returns the outcome, and what is proven about execution, for a command that ends with this code and without its
 * client's report.
 */
export function proofOf(before: Command, code: Code): Proof {
  if (code === 'not_received') return { outcome: 'failed', execution: 'refused_by_client' };
  // The dispatch was recorded, but a pause began before the command was written.
  if (code === 'paused') return { outcome: 'expired', execution: 'not_written' };
  return wasDispatched(before) || code === 'store_lost' ? UNKNOWN : { outcome: 'expired', execution: 'not_written' };
}

/**
 * Returns the node that had the command before, if it is not `nodeId`. Otherwise returns the record's own
 * `recoveredFromNodeId`, which may be null.
 */
export function recoveredFrom(command: Command, before: string | null, nodeId: string): string | null {
  return before !== null && before !== nodeId ? before : command.recoveredFromNodeId;
}

/** Returns the sightings plus a new one, if there is room. */
export function see({ sightings }: Command, messageId: string, now: number): readonly Sighting[] {
  if (sightings.length >= SIGHTINGS_PER_COMMAND) return sightings;
  return [...sightings, { messageId, firstSeenAt: now, lastSeenAt: now, count: 1 }];
}

/** Returns the sightings with one more arrival counted for `seen`. */
export function seeAgain({ sightings }: Command, seen: Sighting, now: number): readonly Sighting[] {
  return sightings.map((sighting) =>
    sighting === seen ? { ...seen, lastSeenAt: now, count: seen.count + 1 } : sighting,
  );
}
