import type { Command, CommandMark, Outcome } from '../delivery/command.ts';
import type { WaitFor } from '../delivery/waiter.ts';
import type { PendingWait } from '../delivery/waiters.ts';
import type { Code } from '../errors.ts';
import type { ClientKey, CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';

export type InvokeRequest = ClientKey & {
  readonly action: string;
  /** Forwarded as it is written. Must be JSON; what is no object is refused. */
  readonly params: JsonText | null;
  readonly commandId?: string | null | undefined;
  readonly instanceId?: string | null | undefined;
  readonly waitFor?: WaitFor | null | undefined;
  readonly connectWithinMs?: number | null | undefined;
  readonly respondWithinMs?: number | null | undefined;
  readonly traceId?: string | null | undefined;
  readonly parentSpanId?: string | null | undefined;
  /** The caller hung up: ends the waiter, never the command. */
  readonly signal?: HangUp | undefined;
  readonly onAdmitted?: OnStage | undefined;
  readonly onStage?: OnStage | undefined;
};

/** As much of an AbortSignal as a wait needs: one may be given, or something cheaper. */
export interface HangUp {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void, options: { readonly once: true }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/**
 * As `onAdmitted`: told once, where the command stands when the wait begins. As `onStage`: told where the command stands when the wait begins, then as its stage moves, as long as the wait lasts and the command lives. Stages may
 * be skipped; none comes twice. Must not throw.
 */
export type OnStage = (command: Command) => void;

export type RefusedBy = 'address' | 'policy' | 'arguments' | 'capacity' | 'target' | 'conflict' | 'site' | 'relay';

/** An invocation as its caller sees it. `pending` when the wait was reached or ended before the command did: `rpcId` is then no longer waiting. */
export type Invocation =
  | {
      readonly kind: 'outcome' | 'pending';
      readonly command: Command;
      readonly rpcId: string | null;
      readonly result: JsonText | null;
    }
  /** The command ended, and a mark alone is left of it: its record and its result are no longer retained. */
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
      /** The ids that the caller gave, where there were such. */
      readonly commandId: string | null;
      /** Which share is used up, for `share_exceeded` and `store_full`. */
      readonly share?: string | undefined;
    };

export type AwaitRequest = CommandKey & {
  readonly waitFor?: WaitFor | null | undefined;
  /** How long to wait; 0 only reads the record and makes no waiter. */
  readonly withinMs?: number | null | undefined;
  readonly signal?: HangUp | undefined;
  readonly onAdmitted?: OnStage | undefined;
  readonly onStage?: OnStage | undefined;
};

/** `cancelled`: it had not been written and now never will be. `requested`: its client was asked. `too_late`: it had ended. */
export type CancelReceipt = {
  readonly state: 'cancelled' | 'requested' | 'too_late';
  readonly commandId: string;
  /** Null while the command is live. */
  readonly outcome: Outcome | null;
  /** Null where a mark of the ended command is all that is retained. */
  readonly command: Command | null;
};

export type PendingQuery = {
  readonly userId?: string | null | undefined;
  readonly clientId?: string | null | undefined;
  readonly nodeId?: string | null | undefined;
  readonly callerNodeId?: string | null | undefined;
  readonly minAgeMs?: number | null | undefined;
  /** The instance believed live: a waiter that expects another is reported as mismatch. */
  readonly checkInstance?: string | null | undefined;
};

export type InstanceMismatch = {
  readonly expectedInstanceId: string;
  /** Null: the client is not connected. */
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
