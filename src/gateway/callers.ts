import { requireScope, type Principal } from '../core/auth/principal.ts';
import { ChurnMap } from '../core/churn.ts';
import type { Core, HangUp, Invocation, OnStage } from '../core/core.ts';
import { invalid, notFound } from '../core/errors.ts';
import type { CommandKey } from '../core/ids.ts';
import { CALLER_UNANSWERED } from '../core/limits.ts';
import { endOf } from '../core/rpc/ended.ts';
import { thenDo, orElse, type MaybePromise } from '../core/maybe-promise.ts';
import type { UpFrame } from '../protocol/frames.ts';
import type { FrameLimits } from './frame-limits.ts';
import { payloadOf } from './payload.ts';
import { aboutFrame } from './refusal.ts';
import type { FrameWriter } from './frame-writer.ts';

export type CallerFrame = Extract<UpFrame, { type: 'invoke' | 'await' | 'cancel' }>;
type Invoke = Extract<CallerFrame, { type: 'invoke' }>;
type Await = Extract<CallerFrame, { type: 'await' }>;
type Cancel = Extract<CallerFrame, { type: 'cancel' }>;

export type CallersOptions = { readonly core: Core; readonly wire: FrameWriter; readonly conduct: FrameLimits };

/** Aborts the wait of one request: an AbortSignal without the cost of an EventTarget. It has at most one listener. */
class Leaving implements HangUp {
  aborted = false;
  #heard: (() => void) | null = null;

  abort(): void {
    this.aborted = true;
    this.#heard?.();
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#heard = listener;
  }

  removeEventListener(): void {
    this.#heard = null;
  }
}

/** The unanswered requests of one caller's link. Ending a request ends its wait, never its command. */
export class Callers {
  readonly #options: CallersOptions;
  readonly #unanswered = new ChurnMap<string, Leaving>();

  constructor(options: CallersOptions) {
    this.#options = options;
  }

  /** Returns whether the frame may be handled. False: the frame was refused, and the peer has been sent the refusal. */
  allows(frame: CallerFrame): boolean {
    const { wire, conduct } = this.#options;
    const unanswered = this.#unanswered;
    const known = unanswered.has(frame.ref);
    if (!known && unanswered.size < CALLER_UNANSWERED) return true;
    const about = aboutFrame(frame);
    if (!conduct.unsolicited(about)) return false;
    const over = `At most ${CALLER_UNANSWERED} requests may be unanswered.`;
    if (known)
      wire.refuse(
        { code: 'invalid_argument', message: 'ref: an earlier request with this ref is still unanswered' },
        about,
      );
    else wire.refuse({ code: 'rate_limited', message: over, by: 'relay' }, about);
    return false;
  }

  /** Throws or rejects with a CallboardError from core, or with BadPayload. */
  take(frame: CallerFrame, requester: Principal): MaybePromise<unknown> {
    const leaving = new Leaving();
    this.#unanswered.set(frame.ref, leaving);
    const answered = (): void => {
      if (this.#unanswered.get(frame.ref) === leaving) this.#unanswered.delete(frame.ref);
    };
    return orElse(
      () => thenDo(this.#asked(frame, requester, leaving), answered),
      (error) => {
        answered();
        // A caller that left gets no answer.
        if (!leaving.aborted) throw error;
      },
    );
  }

  #asked(frame: CallerFrame, requester: Principal, leaving: Leaving): MaybePromise<unknown> {
    requireScope(requester, 'invoke');
    if (frame.type === 'invoke') return this.#invoke(frame, requester, leaving);
    return frame.type === 'await' ? this.#await(frame, requester, leaving) : this.#cancel(frame, requester);
  }

  /** Ends the wait of this ref without an answer. The ref can then be used again. */
  leave(ref: string): void {
    const leaving = this.#unanswered.get(ref);
    this.#unanswered.delete(ref);
    if (leaving) leaving.abort();
    else this.#options.conduct.unsolicited({ frame: 'leave', ref });
  }

  /** Ends every wait, because the link has closed. */
  leaveAll(): void {
    for (const leaving of this.#unanswered.values()) leaving.abort();
  }

  #invoke(frame: Invoke, requester: Principal, signal: Leaving): Promise<void> {
    const { core } = this.#options;
    const params = payloadOf(frame);
    const tell = tellerOf(this.#options.wire, frame);
    const invoked = core.rpc.invoke(requester, {
      userId: userOf(frame, requester),
      clientId: frame.client_id,
      action: frame.action,
      params,
      commandId: frame.command_id,
      instanceId: frame.instance_id,
      waitFor: frame.wait_for,
      connectWithinMs: frame.connect_within_ms,
      respondWithinMs: frame.respond_within_ms,
      traceId: frame.trace_id,
      parentSpanId: frame.parent_span_id,
      signal,
      ...listening(frame, tell),
    });
    return invoked.then((invocation) => {
      if (!signal.aborted) this.#answer(frame, invocation, tell);
    });
  }

  async #await(frame: Await, requester: Principal, signal: Leaving): Promise<void> {
    const { core, wire } = this.#options;
    const tell = tellerOf(wire, frame);
    const request = {
      ...keyOf(frame, requester),
      waitFor: frame.wait_for,
      withinMs: frame.within_ms,
      signal,
      ...listening(frame, tell),
    };
    const invocation = (await core.rpc.await(requester, request)) ?? notFound();
    if (!signal.aborted) this.#answer(frame, invocation, tell);
  }

  async #cancel(frame: Cancel, requester: Principal): Promise<void> {
    const { core, wire } = this.#options;
    const receipt = (await core.rpc.cancel(requester, keyOf(frame, requester), frame.reason ?? null)) ?? notFound();
    wire.send({ type: 'receipt', ref: frame.ref, command_id: receipt.commandId, state: receipt.state });
  }

  #answer(frame: Invoke | Await, invocation: Invocation, tell: OnStage | undefined): void {
    const { wire } = this.#options;
    const { ref } = frame;
    if (invocation.kind === 'refused') {
      const commandId = invocation.commandId ?? frame.command_id;
      wire.refuse(invocation, { frame: frame.type, ref, commandId });
      return;
    }
    const { rpcId, result } = invocation;
    const { commandId, stage, outcome, execution, error } = endOf(invocation);
    if (invocation.kind === 'pending') tell?.(invocation.command);
    const header = {
      type: 'outcome',
      ref,
      command_id: commandId,
      rpc_id: rpcId ?? undefined,
      outcome: outcome ?? undefined,
      stage,
      execution,
      error_code: error?.code,
      error_message: error?.message,
    } as const;
    wire.send(header, result);
  }
}

/** Sends each stage once, or only the first, as the request's `stages` says. Undefined: the request has no `stages`. */
function tellerOf(wire: FrameWriter, { ref, stages }: Invoke | Await): OnStage | undefined {
  if (stages === undefined) return undefined;
  let told: string | null = null;
  return ({ commandId, stage }) => {
    if (stage === told || (stages === 'first' && told !== null)) return;
    told = stage;
    wire.send({ type: 'stage', ref, command_id: commandId, stage });
  };
}

/** A request for the first stage only needs `onAdmitted`, so it does not listen for later stages. */
function listening({ stages }: Invoke | Await, tell: OnStage | undefined) {
  return stages === 'first' ? { onAdmitted: tell } : { onStage: tell };
}

function keyOf(frame: Await | Cancel, requester: Principal): CommandKey {
  return { userId: userOf(frame, requester), clientId: frame.client_id, commandId: frame.command_id };
}

function userOf(frame: CallerFrame, requester: Principal): string {
  if (frame.user_id !== undefined) return frame.user_id;
  return requester.kind === 'user' ? requester.userId : invalid('user_id', 'an administrator must name the user');
}
