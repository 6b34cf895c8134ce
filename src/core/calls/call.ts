/**
 * The types of calls: requests, invocations, receipts and preflights; and the answers that are made from records and
 * marks.
 */
import type { WireCancelState } from '../../protocol/codes.ts';
import {
  errorOfMark,
  isTerminal,
  type Command,
  type CommandMark,
  type Outcome,
  type WaitFor,
} from '../commands/command.ts';
import type { PendingWait, WaiterFilter } from '../commands/stores.ts';
import type { Connection } from '../connections/connection.ts';
import type { Code } from '../errors.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import type { GivenFilter } from '../page.ts';
import type { TraceContext, TraceFields } from '../trace-context.ts';

/** The trace that a request belongs to. */
export type TracedRequest = {
  readonly [Name in keyof TraceFields]?: TraceFields[Name] | undefined;
} & {
  /** The trace context of the request that carries this one. Used if neither `traceId` nor `parentSpanId` is given. */
  readonly trace?: TraceContext | undefined;
  /** Called with the span of this request, if the relay traces. Must not throw. */
  readonly onSpan?: ((span: TraceContext) => void) | undefined;
};

export type InvokeRequest = ClientKey &
  TracedRequest &
  CallerSide & {
    readonly action: string;
    /** The params as a JSON text, which is forwarded without change. Anything but an object is refused. */
    readonly params: JsonText | null;
    readonly commandId?: string | null | undefined;
    readonly instanceId?: string | null | undefined;
    readonly waitFor?: WaitFor | null | undefined;
    readonly connectWithinMs?: number | null | undefined;
    readonly respondWithinMs?: number | null | undefined;
  };

/** What the caller may do while it waits. */
export type CallerSide = {
  /** Is aborted when the caller hangs up. That ends the wait, never the command. */
  readonly signal?: HangUp | undefined;
  readonly onAdmitted?: OnStage | undefined;
  readonly onStage?: OnStage | undefined;
};

/** The part of AbortSignal that a wait needs. An AbortSignal or a cheaper object may be passed. */
export interface HangUp {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void, options: { readonly once: true }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/**
 * Receives the states of a command. A function passed as `onAdmitted` is called when the wait begins, with the command
 * as it is then; never if there is nothing to wait for. A function passed as `onStage` is called then too, and again
 * whenever the stage changes, until the wait or the command ends. Stages may be skipped; none is reported twice. Must
 * not throw.
 */
export type OnStage = (command: Command) => void;

export type RefusedBy = 'address' | 'policy' | 'arguments' | 'capacity' | 'target' | 'conflict' | 'site' | 'relay';

/**
 * An invocation as its caller sees it. `pending`: the wait ended before the command did, because its stage was reached
 * or for another reason. The waiter `rpcId` is then removed.
 */
export type Invocation =
  | {
      readonly kind: 'outcome' | 'pending';
      readonly command: Command;
      readonly rpcId: string | null;
      readonly result: JsonText | null;
    }
  /** The command ended and only its mark is left: its record and its result are no longer retained. */
  | {
      readonly kind: 'ended';
      readonly key: CommandKey;
      readonly mark: CommandMark;
      readonly rpcId: null;
      readonly result: null;
    }
  | {
      readonly kind: 'refused';
      readonly code: Code;
      readonly message: string;
      readonly by: RefusedBy;
      readonly retryAfterMs: number | null;
      /** The command id of the invocation; null if its caller chose none. */
      readonly commandId: string | null;
      /** The resource that has no room. Present only for `share_exceeded` and `store_full`. */
      readonly share?: string | undefined;
    };

export type AwaitRequest = CommandKey &
  TracedRequest &
  CallerSide & {
    readonly waitFor?: WaitFor | null | undefined;
    /** How long to wait, in milliseconds; 0 reads the record and registers no waiter. */
    readonly withinMs?: number | null | undefined;
  };

/**
 * The result of a cancel. `cancelled`: the command had not been written, and now never will be. `requested`: its client
 * was asked to stop it. `too_late`: it had ended.
 */
export type CancelReceipt = {
  readonly state: WireCancelState;
  readonly commandId: string;
  /** How the command ended; null while it is live. */
  readonly outcome: Outcome | null;
  /** The record of the command; null if only a mark of the ended command is retained. */
  readonly command: Command | null;
};

export type PendingQuery = GivenFilter<WaiterFilter> & {
  /**
   * The instance that the requester believes to be live. A waiter that expects another instance is reported as a
   * mismatch.
   */
  readonly checkInstance?: string | null | undefined;
};

export type InstanceMismatch = {
  readonly expectedInstanceId: string;
  /** The instance that the client runs now; null: the client is not connected. */
  readonly observedInstanceId: string | null;
  readonly observedAt: number;
};

export type PendingRpc = PendingWait & { readonly ageMs: number; readonly instanceMismatch: InstanceMismatch | null };

export type PendingRpcAlert = {
  readonly over: boolean;
  readonly oldestAgeMs: number;
  readonly count: number;
  readonly oldest: PendingRpc | null;
  readonly at: number;
};

/** The span of an invocation, for the code that carries the invocation out. */
export interface CallSpan {
  /** The span as the command's record holds it. */
  readonly callSpan: string | null;
  /** The id of the trace; null if the trace is not recorded. */
  readonly traceId: string | null;
  /** Notes the connection that the invocation found: null if the client is not connected. */
  target(live: Connection | null, action: string): void;
}

/** The part of a record that an answer to a caller contains. */
type CommandEnd = Pick<Command, 'commandId' | 'stage' | 'outcome' | 'execution' | 'error'>;

/**
 * The error of a result that is no longer retained. It is answered with status 200, because the command ended as its
 * outcome says.
 */
const RESULT_EXPIRED = { code: 'result_expired', message: 'The result is no longer retained.' } as const;

/** Returns the answer to an invocation if only the mark of its ended command is left. */
export function endedInvocation(key: CommandKey, mark: CommandMark): Invocation {
  return { kind: 'ended', key, mark, rpcId: null, result: null };
}

/**
 * Returns the part of the record that the answer to an invocation contains, if the invocation was not refused. `error`
 * is `result_expired` if the result is no longer retained.
 */
export function endOf(invocation: Exclude<Invocation, { kind: 'refused' }>): CommandEnd {
  if (invocation.kind === 'ended') return endOfMark(invocation.key, invocation.mark);
  const { command } = invocation;
  return command.resultExpired ? { ...command, error: RESULT_EXPIRED } : command;
}

function endOfMark({ commandId }: CommandKey, mark: CommandMark): CommandEnd {
  const { outcome, execution, resultExpired } = mark;
  const error = resultExpired ? RESULT_EXPIRED : errorOfMark(mark);
  return { commandId, stage: 'terminal', outcome, execution, error };
}

/** Returns the answer to a caller from the present record. */
export function invocation(command: Command, rpcId: string | null, result: JsonText | null): Invocation {
  return { kind: isTerminal(command) ? 'outcome' : 'pending', command, rpcId, result };
}

// The result of a preflight: what each layer of an invocation would answer now.

/**
 * Every layer of an invocation, in the order in which they are asked: those of the relay, then those of the client's
 * runtime.
 */
export const PREFLIGHT_LAYERS = [
  ...(['identity', 'scope', 'address', 'input', 'policy', 'relay', 'action', 'waits'] as const),
  ...(['storage', 'conflict', 'target', 'capacity'] as const),
  ...(['client_arguments', 'client_authorizer', 'client_approval', 'client_lease'] as const),
] as const;
export type PreflightLayerName = (typeof PREFLIGHT_LAYERS)[number];

/**
 * What one layer would answer. `unknown`: only a real invocation would show it. `skipped`: the layer was not asked,
 * because an earlier one refuses or because it does not apply.
 */
export type PreflightVerdict = 'pass' | 'refuse' | 'unknown' | 'skipped';

export type PreflightLayer = {
  readonly layer: PreflightLayerName;
  readonly verdict: PreflightVerdict;
  /** The code with which the invocation would be refused; null for the other verdicts. */
  readonly code: Code | null;
  readonly message: string;
  /** A JSON object with the state that the layer examined; null if it examined nothing that may be shown. */
  readonly evidence: JsonText | null;
  /** Who decides: the relay, or the client once it has received the command. */
  readonly askedOf: 'relay' | 'client';
  /** When the evidence was read, in epoch milliseconds; null if the layer was not asked. */
  readonly observedAt: number | null;
};

/** A snapshot. It reserves nothing, so a later invocation may be answered differently. */
export type Preflight = {
  /** Whether the relay would admit the command. The client's layers are not included. */
  readonly wouldAdmit: Exclude<PreflightVerdict, 'skipped'>;
  /** The first layer that refuses; the invocation would be refused with its code. Null if no layer refuses. */
  readonly firstRefusal: PreflightLayer | null;
  /** The results of all layers, in the order of PREFLIGHT_LAYERS. */
  readonly layers: readonly PreflightLayer[];
  /**
   * The command that has the id already: the invocation would attach to it, or replay its outcome. Null if there is
   * none, if the store would refuse the invocation, or if the record is gone and only its CommandMark is left.
   */
  readonly command: Command | null;
  readonly asOf: number;
};
