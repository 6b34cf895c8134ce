/** A command: its record, its stages, its outcome, and the mark that is left of it after its end. */
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
 * How a command ended. `outcome_unknown`: the command may have run and nothing more is known; see `lastProvenStage`.
 */
export type Outcome = WireOutcome;
/** What is proven about execution in the client. It proves nothing about effects outside the client. */
export type ExecutionEvidence = WireExecution;

/**
 * The first evidence of an end that was reported after the command had ended, or by an instance that the command was
 * not bound to.
 */
export type LateEvidence = {
  readonly at: number;
  readonly instanceId: string;
  readonly kind: 'result' | 'error' | 'cancelled';
  readonly digest: string;
};

/**
 * Who invoked a command. `name`: an administrator's name, a user's id, or the id of the grant through which a viewer of
 * a site invoked it. It stays the same when the requester's token is renewed.
 */
export type CommandCaller = {
  readonly kind: 'admin' | 'user' | 'grant';
  readonly name: string;
  /** The program that called in this requester's name. Absent: the call named none. */
  readonly label?: CallerLabel;
  /**
   * The token of the call that admitted the command, for revocations alone: no interface shows it. Absent: a configured
   * token, a grant, or a store that does not keep it.
   */
  readonly token?: TokenIdentity;
};

/** Selects callers. A caller must match every member that is not null. */
export type CallerFilter = {
  /** The name of the caller, or that of its label. */
  readonly caller: string | null;
  /** The kind of the caller, or that of its label. */
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
     * SHA-256 of what the invocation asks for; NO_DIGEST if the relay made the id. The same id with another digest is a
     * conflict.
     */
    readonly digest: string;
    readonly stage: Stage;
    readonly lastProvenStage: ProvenStage;
    readonly outcome: Outcome | null;
    readonly execution: ExecutionEvidence;
    readonly error: TerminalError | null;
    /** Why the command ended in this way, for the operator: the code of the error, or who cancelled it. */
    readonly reason: string | null;
    /**
     * The number of dispatches that were begun: 0 or 1, and one more for each time that the client said that the command
     * had never arrived, and it was written to the client's next link.
     */
    readonly attempts: number;
    /** The instance that the caller named; null for any. */
    readonly namedInstanceId: string | null;
    /** The context of the client that the caller named. Absent: the caller named none. */
    readonly contextId?: string;
    /** What kind of program the client was when the command was admitted; null if it was not connected then. */
    readonly clientType: ClientType | null;
    /** The instance that was connected when the command was admitted or queued. */
    readonly expectedInstanceId: string | null;
    /** The instance that the command was written to. Only reports of this instance count. */
    readonly boundInstanceId: string | null;
    /** The node of the target's connection. */
    readonly nodeId: string | null;
    readonly recoveredFromNodeId: string | null;
    /** Who admitted the command. A later invocation of the same id does not change it. */
    readonly caller: CommandCaller;
    /**
     * The span of the call that admitted the command, as the text of a `traceparent`, or DECLINED if a sampler declined
     * it. Null if the node that admitted it does not trace. Later spans of the command are its children, on any node.
     */
    readonly callSpan: string | null;
    readonly admittedAt: number;
    readonly queuedAt: number | null;
    readonly dispatchedAt: number | null;
    readonly acknowledgedAt: number | null;
    readonly terminalAt: number | null;
    readonly cancelRequestedAt: number | null;
    /** Until when the command may wait for its client to connect. It counts only until the command is first queued. */
    readonly connectDeadline: number;
    readonly deadline: number;
    readonly lateResults: number;
    readonly firstLate: LateEvidence | null;
    /** Whether the command ended with a result that is no longer retained. */
    readonly resultExpired: boolean;
    /**
     * When the answer of the ended command was written whole to a caller that repeats calls: one of the MCP bridge; after
     * an unknown outcome, when a later call named the command. Absent: it was not, or is not known to be.
     */
    readonly answeredAt?: number;
    /**
     * The request that owes such a caller the end of the command, as `OwedAnswers` names it; OWED_BY_NOBODY if its answer
     * was lost. Absent: no such caller made the call, or a second run does no harm.
     */
    readonly owedBy?: string;
    /**
     * The ends that a client reported, each with how many times it was received. An end is received again, for example,
     * when a client sends its result again after a reconnect. At most SIGHTINGS_PER_COMMAND entries.
     */
    readonly sightings: readonly Sighting[];
  };

/** What `owedBy` says of a command whose answer was lost. */
export const OWED_BY_NOBODY = '-';

/**
 * The digest of an invocation whose caller chose no id. Only the relay knows the new id, so there is nothing to
 * compare. No real digest equals it, so another invocation with such an id is a conflict.
 */
export const NO_DIGEST = '';

/** How often the relay received one message id. It says nothing about how often the client executed the command. */
export type Sighting = {
  readonly messageId: string;
  readonly firstSeenAt: number;
  readonly lastSeenAt: number;
  readonly count: number;
};

/**
 * What the relay keeps of an ended command after its record is gone: enough to answer a repeated id for the rest of the
 * idempotency window.
 */
export type CommandMark = {
  readonly outcome: Outcome;
  readonly execution: ExecutionEvidence;
  /** The code of the error that the command ended with; null if there was none. The error's message is not kept. */
  readonly errorCode: Code | null;
  /** When the command ended, in epoch milliseconds. */
  readonly endedAt: number;
  /** Whether the command ended with a result that is no longer retained. */
  readonly resultExpired: boolean;
};

/** Returns the error that a mark names. The message is the standard message of its code. */
export function errorOfMark({ errorCode }: CommandMark): TerminalError | null {
  return errorCode === null ? null : { code: errorCode, message: END_MESSAGES[errorCode] ?? errorCode };
}

/** Returns the last known state of a command, with the end that its mark records. */
export function endedByMark(command: Command, mark: CommandMark): Command {
  const { outcome, execution, errorCode, endedAt, resultExpired } = mark;
  const end = { outcome, execution, resultExpired, error: errorOfMark(mark), reason: errorCode, terminalAt: endedAt };
  return { ...command, stage: 'terminal', ...end };
}

export function isTerminal(command: Command): boolean {
  return command.stage === 'terminal';
}

/** Returns how long an ended command took from admission to its end, in milliseconds; null while it is live. */
export function durationOf({ admittedAt, terminalAt }: Pick<Command, 'admittedAt' | 'terminalAt'>): number | null {
  return terminalAt === null ? null : Math.max(0, terminalAt - admittedAt);
}

/**
 * Builds the id of the message that carries an end. An end that is sent again has the same id. Uses `join`, because the
 * id is kept and the string of a template literal would keep each of its parts in memory.
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

/** The shortest end of a command's id by which the command is found: what tables and short log lines show of an id. */
const ID_END_CHARS = 8;

/** Whether the text is the command's id, the end of that id with at least ID_END_CHARS characters, or its trace id. */
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

/** Why a command may not be written to its client: because of the context that it names. */
export type ContextRefusal = 'context_gone' | 'context_unsupported';

/** What a new record takes from the invocation, and how long the client has to connect and then to respond. */
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

/** The part of a client's link that its commands name. */
type BoundTo = { readonly nodeId: string; readonly instanceId: string };

/** Returns the record of a command that is admitted now, queued if its client is bound to a link. */
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
 * Returns the record of a command that is dispatched now. Every command is dispatched, and a literal is faster than
 * `changed`.
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
 * Returns the time of what happens to a command now: never before its last stage. The nodes that record its stages have
 * clocks of their own, which differ by milliseconds, and a clock may be set back.
 */
export function nextTime(before: Command, now: number): number {
  const { terminalAt, acknowledgedAt, dispatchedAt, queuedAt, admittedAt } = before;
  return Math.max(now, terminalAt ?? acknowledgedAt ?? dispatchedAt ?? queuedAt ?? admittedAt);
}

/** Returns a record with these changes and the next version. */
export function changed(before: Command, change: Partial<Command>): Command {
  return { ...before, ...change, version: before.version + 1 };
}

/** How a command ended, and what is proven of its execution. */
type Proof = Pick<Command, 'outcome' | 'execution'>;
const UNKNOWN: Proof = { outcome: 'outcome_unknown', execution: 'may_have_run' };

/** Returns the outcome of a command that ends with this code and without a report, and what is proven of it. */
export function proofOf(before: Command, code: Code): Proof {
  if (code === 'not_received') return { outcome: 'failed', execution: 'refused_by_client' };
  // A dispatch that was recorded and not written before its pause.
  if (code === 'paused') return { outcome: 'expired', execution: 'not_written' };
  return wasDispatched(before) || code === 'store_lost' ? UNKNOWN : { outcome: 'expired', execution: 'not_written' };
}

/**
 * Returns the node that held the command before, if that is another node than `nodeId`. Otherwise returns the
 * `recoveredFromNodeId` of the record, which may be null.
 */
export function recoveredFrom(command: Command, before: string | null, nodeId: string): string | null {
  return before !== null && before !== nodeId ? before : command.recoveredFromNodeId;
}

/** Returns the sightings with a new one, if there is room. */
export function see({ sightings }: Command, messageId: string, now: number): readonly Sighting[] {
  if (sightings.length >= SIGHTINGS_PER_COMMAND) return sightings;
  return [...sightings, { messageId, firstSeenAt: now, lastSeenAt: now, count: 1 }];
}

/** Returns the sightings with one more arrival of `seen`. */
export function seeAgain({ sightings }: Command, seen: Sighting, now: number): readonly Sighting[] {
  return sightings.map((sighting) =>
    sighting === seen ? { ...seen, lastSeenAt: now, count: seen.count + 1 } : sighting,
  );
}
