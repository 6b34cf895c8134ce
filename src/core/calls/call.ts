/** The interface of calls: requests, answers, receipts. Types only. */
import type { Command, CommandMark, Outcome } from '../delivery/command.ts';
import type { WaitFor } from '../delivery/waiter.ts';
import type { PendingWait } from '../delivery/waiters.ts';
import type { Code } from '../errors.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import type { TraceContext } from '../trace-context.ts';

/** The trace that a request belongs to. */
export type TracedRequest = {
  readonly traceId?: string | null | undefined;
  readonly parentSpanId?: string | null | undefined;
  /** The trace flags of W3C Trace Context, two hexadecimal digits. */
  readonly traceFlags?: string | null | undefined;
  readonly traceState?: string | null | undefined;
  /** The trace context of the request that carries this one. Used if neither of the two ids above is given. */
  readonly trace?: TraceContext | undefined;
  /** Called with the span of this request, if the relay traces. Must not throw. */
  readonly onSpan?: ((span: TraceContext) => void) | undefined;
};

export type InvokeRequest = ClientKey &
  TracedRequest & {
    readonly action: string;
    /** The params as a JSON text, which is forwarded without change. Anything but an object is refused. */
    readonly params: JsonText | null;
    readonly commandId?: string | null | undefined;
    readonly instanceId?: string | null | undefined;
    readonly waitFor?: WaitFor | null | undefined;
    readonly connectWithinMs?: number | null | undefined;
    readonly respondWithinMs?: number | null | undefined;
    /** Tells when the caller hangs up. That ends the waiter, never the command. */
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
 * Receives the states of a command. A function passed as `onAdmitted` is called once, with the command as it is when
 * the wait begins. A function passed as `onStage` is called then too, and again whenever the stage changes, until the
 * wait or the command ends. Stages may be skipped; none is reported twice. Must not throw.
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
  TracedRequest & {
    readonly waitFor?: WaitFor | null | undefined;
    /** How long to wait, in milliseconds; 0 reads the record and registers no waiter. */
    readonly withinMs?: number | null | undefined;
    readonly signal?: HangUp | undefined;
    readonly onAdmitted?: OnStage | undefined;
    readonly onStage?: OnStage | undefined;
  };

/**
 * The result of a cancel. `cancelled`: the command had not been written, and now never will be. `requested`: its client
 * was asked to stop it. `too_late`: it had ended.
 */
export type CancelReceipt = {
  readonly state: 'cancelled' | 'requested' | 'too_late';
  readonly commandId: string;
  /** How the command ended; null while it is live. */
  readonly outcome: Outcome | null;
  /** The record of the command; null if only a mark of the ended command is retained. */
  readonly command: Command | null;
};

export type PendingQuery = {
  readonly userId?: string | null | undefined;
  readonly clientId?: string | null | undefined;
  readonly nodeId?: string | null | undefined;
  readonly callerNodeId?: string | null | undefined;
  readonly minAgeMs?: number | null | undefined;
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
