/** Packs the records of ended commands to save memory. */
import { endMessageId, type Command, type CommandCaller } from '../../core/commands/command.ts';
import type { Binding } from '../../core/commands/command-store.ts';
import type { ClientType } from '../../core/connections/connection.ts';
import type { TraceIds } from './history-row.ts';
import { packTime, smallInteger, unpackTime } from './packed-time.ts';

/** The members of a record that its ledger entry holds in any case, so they are not packed. */
type Shared = {
  readonly userId: string;
  readonly clientId: string;
  readonly commandId: string;
  readonly trace: TraceIds;
};

/** Stands for a time that is null in a packed record. */
const NEVER = -1;

/**
 * The packed record of a command that ended in the usual way: the client may have acknowledged the command, and
 * reported one result. A packed record takes a third of the memory of the whole record, and most of them are never
 * read.
 */
export class PackedCommand {
  resultExpired: boolean;
  readonly #action: string;
  readonly #caller: CommandCaller;
  readonly #digest: string;
  readonly #scopeId: string;
  readonly #clientType: ClientType | null;
  readonly #bound: Binding;
  readonly #version: number;
  readonly #admitted: number;
  readonly #queued: number;
  readonly #dispatched: number;
  readonly #acknowledged: number;
  readonly #terminal: number;
  readonly #connectBy: number;
  readonly #deadline: number;

  private constructor(command: Command, bound: Binding) {
    const { admittedAt } = command;
    this.resultExpired = command.resultExpired;
    this.#action = command.action;
    this.#caller = command.caller;
    this.#digest = command.digest;
    this.#scopeId = command.scopeId;
    this.#clientType = command.clientType;
    this.#bound = bound;
    this.#version = command.version;
    this.#admitted = packTime(admittedAt);
    this.#queued = since(admittedAt, command.queuedAt);
    this.#dispatched = since(admittedAt, command.dispatchedAt);
    this.#acknowledged = since(admittedAt, command.acknowledgedAt);
    this.#terminal = since(admittedAt, command.terminalAt);
    this.#connectBy = since(admittedAt, command.connectDeadline);
    this.#deadline = since(admittedAt, command.deadline);
  }

  /**
   * Packs a record. Returns null if the record has values that the packed form cannot represent. `bound`: the link that
   * the client is bound to.
   */
  static of(command: Command, bound: Binding | null): PackedCommand | null {
    return bound !== null && isPlain(command, bound) && hasPlainTimes(command)
      ? new PackedCommand(command, bound)
      : null;
  }

  get digest(): string {
    return this.#digest;
  }

  get outcome(): 'completed' {
    return 'completed';
  }

  get execution(): 'reported_by_client' {
    return 'reported_by_client';
  }

  get error(): null {
    return null;
  }

  get terminalAt(): number {
    return this.#admittedAt + this.#terminal;
  }

  /** Returns the whole record, as a new object. */
  unpack({ userId, clientId, commandId, trace: { callerLabel: _, ...trace } }: Shared): Command {
    const admittedAt = this.#admittedAt;
    const { nodeId, instanceId } = this.#bound;
    const { terminalAt } = this;
    const acknowledgedAt = this.#acknowledged === NEVER ? null : admittedAt + this.#acknowledged;
    const messageId = endMessageId(commandId, { kind: 'result', instanceId });
    return {
      userId,
      clientId,
      commandId,
      action: this.#action,
      digest: this.#digest,
      scopeId: this.#scopeId,
      namedInstanceId: null,
      clientType: this.#clientType,
      caller: this.#caller,
      ...trace,
      version: this.#version,
      stage: 'terminal',
      lastProvenStage: acknowledgedAt === null ? 'dispatched' : 'acknowledged',
      outcome: 'completed',
      execution: 'reported_by_client',
      error: null,
      reason: null,
      attempts: 1,
      expectedInstanceId: instanceId,
      boundInstanceId: instanceId,
      nodeId,
      recoveredFromNodeId: null,
      admittedAt,
      queuedAt: admittedAt + this.#queued,
      dispatchedAt: admittedAt + this.#dispatched,
      acknowledgedAt,
      terminalAt,
      cancelRequestedAt: null,
      connectDeadline: admittedAt + this.#connectBy,
      deadline: admittedAt + this.#deadline,
      lateResults: 0,
      firstLate: null,
      resultExpired: this.resultExpired,
      sightings: [{ messageId, firstSeenAt: terminalAt, lastSeenAt: terminalAt, count: 1 }],
    };
  }

  get #admittedAt(): number {
    return unpackTime(this.#admitted);
  }
}

function since(admittedAt: number, at: number | null): number {
  return at === null ? NEVER : smallInteger(at - admittedAt);
}

/**
 * Whether every member that is not packed has the value that `unpack` would give it. `hasPlainTimes` checks the times.
 */
function isPlain(command: Command, { nodeId, instanceId }: Binding): boolean {
  return (
    command.stage === 'terminal' &&
    command.outcome === 'completed' &&
    command.execution === 'reported_by_client' &&
    command.error === null &&
    command.reason === null &&
    command.attempts === 1 &&
    command.namedInstanceId === null &&
    command.boundInstanceId === instanceId &&
    command.expectedInstanceId === instanceId &&
    command.nodeId === nodeId &&
    command.recoveredFromNodeId === null &&
    command.cancelRequestedAt === null &&
    command.lateResults === 0 &&
    command.firstLate === null &&
    command.owedBy === undefined &&
    command.answeredAt === undefined &&
    command.lastProvenStage === (command.acknowledgedAt === null ? 'dispatched' : 'acknowledged') &&
    isSeenOnce(command, instanceId)
  );
}

function isSeenOnce({ commandId, sightings, terminalAt }: Command, instanceId: string): boolean {
  const [seen] = sightings;
  return (
    sightings.length === 1 &&
    seen !== undefined &&
    seen.count === 1 &&
    seen.firstSeenAt === terminalAt &&
    seen.lastSeenAt === terminalAt &&
    isResultId(seen.messageId, commandId, instanceId)
  );
}

/** Whether the text equals the `endMessageId` of a result. Compares the parts, without building that id. */
function isResultId(messageId: string, commandId: string, instanceId: string): boolean {
  return (
    messageId.length === commandId.length + RESULT_PART.length + instanceId.length &&
    messageId.startsWith(commandId) &&
    messageId.startsWith(RESULT_PART, commandId.length) &&
    messageId.endsWith(instanceId)
  );
}

const RESULT_PART = ':result:';

/**
 * Whether all times are whole milliseconds and none is before `admittedAt`. A time may be before it if, for example,
 * the wall clock was set back.
 */
function hasPlainTimes(command: Command): boolean {
  const { admittedAt, acknowledgedAt } = command;
  return (
    Number.isSafeInteger(admittedAt) &&
    follows(admittedAt, command.queuedAt) &&
    follows(admittedAt, command.dispatchedAt) &&
    follows(admittedAt, command.terminalAt) &&
    (acknowledgedAt === null || follows(admittedAt, acknowledgedAt)) &&
    follows(admittedAt, command.connectDeadline) &&
    follows(admittedAt, command.deadline)
  );
}

function follows(admittedAt: number, at: number | null): boolean {
  return at !== null && at >= admittedAt && Number.isSafeInteger(at);
}
