/** Builds the requests that a caller sends over its link, and reads the answers. Does no I/O. */
import type { WireWaitStage } from '../../protocol/fields.ts';
import { upFrame } from '../link/frame.ts';
import { jsonOf } from '../link/raw.ts';
import type { LinkFrame } from '../link/session.ts';
import type { WireTrace } from '../link/trace-headers.ts';
import { CallerError } from './errors.ts';
import { toInvocation } from './invocation.ts';
import type { AwaitOptions, Handle, Invocation, InvokeOptions, Target } from './types.ts';

export type OutcomeFrame = Extract<LinkFrame, { type: 'outcome' }>;
export type RefusedFrame = Extract<LinkFrame, { type: 'refused' }>;
export type AnswerFrame = Extract<LinkFrame, { type: 'outcome' | 'receipt' }>;

/** A request to the relay that has not been answered. */
export type PendingRequest = {
  readonly handle: Handle;
  readonly endsAt: number;
  readonly waitFor: WireWaitStage;
  /** Returns the frame that sends the request. */
  frame(ref: string): string;
  /**
   * Returns the frame that is sent on a new link instead of `frame`, if the relay has confirmed that the command is
   * admitted.
   */
  again(ref: string, leftMs: number): string;
  /** Whether the relay confirmed that the command is admitted. */
  admitted: boolean;
  /** Whether the frame of `again` was sent. */
  resumed: boolean;
  /**
   * The `outcome` frame with which the relay ended this wait too early: before the stage of `waitFor` and before
   * `endsAt`. Null without one. The relay does so when it shuts down, so the wait continues over the next link. If the
   * link stays up for EARLY_MS, this frame is the answer.
   */
  early: OutcomeFrame | null;
  readonly onStage: ((stage: string) => void) | undefined;
  /** Cancels the wait's timer and removes its abort listener. Called when the wait is over. */
  readonly stopWatching: () => void;
  readonly resolve: (frame: AnswerFrame) => void;
  readonly reject: (error: unknown) => void;
};

export type Frames = Pick<PendingRequest, 'frame' | 'again'>;

/** The longest time for which the relay accepts an await, in milliseconds. */
const LONGEST_WAIT_MS = 600_000;

/** Whether the relay ended a wait that has reached neither its stage nor its time limit. */
export function isEarly({ waitFor, endsAt }: PendingRequest, frame: AnswerFrame, now: number): frame is OutcomeFrame {
  if (frame.type !== 'outcome' || frame.outcome !== undefined || now >= endsAt) return false;
  return waitFor === 'completed' || (waitFor === 'acknowledged' && frame.stage !== 'acknowledged');
}

export function invokeFrames(
  handle: Handle,
  target: Target,
  more: InvokeOptions & { readonly params: object; readonly trace: WireTrace },
): Frames {
  const budgets = { connect_within_ms: more.connectWithinMs, respond_within_ms: more.respondWithinMs };
  const invocation = {
    action: target.action,
    instance_id: target.instanceId,
    wait_for: more.waitFor,
    ...stagesOf(more),
  };
  const fields = { ...idsOf(handle), ...invocation, ...budgets, ...more.trace };
  const payload = jsonOf(more.params) ?? null;
  return {
    frame: (ref) => upFrame({ type: 'invoke', ref, ...fields }, payload),
    again: (ref, leftMs) => awaitFrames(handle, more).again(ref, leftMs),
  };
}

export function awaitFrames(
  handle: Handle,
  wait: { [K in 'waitFor' | 'withinMs' | 'onStage']?: AwaitOptions[K] | undefined } & { readonly trace: WireTrace },
): Frames {
  const fields = { ...idsOf(handle), wait_for: wait.waitFor, ...stagesOf(wait), ...wait.trace };
  return {
    frame: (ref) => upFrame({ type: 'await', ref, ...fields, within_ms: wait.withinMs }),
    again: (ref, leftMs) => upFrame({ type: 'await', ref, ...fields, within_ms: clamp(leftMs) }),
  };
}

export function cancelFrames(handle: Handle, reason: string | undefined): Frames {
  const frame = (ref: string): string => upFrame({ type: 'cancel', ref, ...idsOf(handle), reason });
  return { frame, again: frame };
}

export function invocationOf<T>(handle: Handle, frame: AnswerFrame): Invocation<T> {
  if (frame.type !== 'outcome') throw new CallerError('bad_answer', 'The relay gave no outcome.', { handle });
  const { outcome, rpc_id, stage, execution, error_code, error_message, payload } = frame;
  const error = error_code === undefined ? null : { code: error_code, message: error_message ?? error_code };
  const result = parse<T>(handle, payload);
  return toInvocation({ handle, rpcId: rpc_id ?? null, outcome: outcome ?? null, stage, execution, result, error });
}

/**
 * Returns an outcome frame for a command that the relay admitted before a link broke and no longer knows. The relay has
 * lost its data, so the command may have run.
 */
export function forgotten({ handle }: PendingRequest): OutcomeFrame {
  return {
    type: 'outcome',
    payload: null,
    ref: 'forgotten',
    command_id: handle.commandId,
    outcome: 'outcome_unknown',
    stage: 'terminal',
    execution: 'may_have_run',
    error_code: 'store_lost',
    error_message: 'The relay no longer knows the command.',
  };
}

export function refusalOf(handle: Handle, { code, message, by, retry_after_ms, share }: RefusedFrame): CallerError {
  const retryAfterMs = retry_after_ms ?? null;
  return new CallerError(code, message, { handle, by: by ?? null, retryAfterMs, share: share ?? null });
}

/**
 * Returns the header member that asks for stages. The first stage is always requested, because it confirms the
 * admission. What is sent on the next link depends on the admission.
 */
function stagesOf({ onStage }: { readonly onStage?: unknown }) {
  return { stages: onStage === undefined ? 'first' : 'all' } as const;
}

function idsOf({ userId, clientId, commandId }: Handle) {
  return { user_id: userId, client_id: clientId, command_id: commandId };
}

function clamp(ms: number): number {
  return Math.max(0, Math.min(LONGEST_WAIT_MS, Math.floor(ms)));
}

/** Parses the result. Nothing checks that it has the type that the caller assumes. */
function parse<T>(handle: Handle, payload: string | null): T {
  try {
    return JSON.parse(payload ?? 'null');
  } catch (cause) {
    throw new CallerError('bad_answer', 'The result is not JSON.', { handle, cause });
  }
}
