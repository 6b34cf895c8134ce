/**
 * Handles the requests of one caller's link (invoke, await, cancel, leave): calls core for each frame, and sends core's
 * answers as frames.
 */
import { requireScope, type Principal } from '../core/auth/principal.ts';
import { endOf } from '../core/calls/call.ts';
import { ChurnMap } from '../core/collections.ts';
import type { Command } from '../core/commands/command.ts';
import type { AwaitRequest, CallerSide, Core, HangUp, Invocation, OnStage } from '../core/core.ts';
import { invalid, notFound, notFoundError } from '../core/errors.ts';
import type { CommandKey } from '../core/ids.ts';
import { CALLER_UNANSWERED } from '../core/limits.ts';
import { traceFlagsIn, traceStateIn } from '../core/trace-context.ts';
import type { UpFrame } from '../protocol/frames.ts';
import { payloadOf } from './payloads.ts';
import { aboutFrame } from './refusals.ts';
import type { FrameWriter } from './socket.ts';

export type CallerFrame = Extract<UpFrame, { type: 'invoke' | 'await' | 'cancel' }>;
type Invoke = Extract<CallerFrame, { type: 'invoke' }>;
type Await = Extract<CallerFrame, { type: 'await' }>;
type Cancel = Extract<CallerFrame, { type: 'cancel' }>;

/** Aborts the wait of one request. It is cheaper than an AbortSignal, because it has at most one listener. */
class AbortFlag implements HangUp {
  aborted = false;
  #listener: (() => void) | null = null;

  abort(): void {
    this.aborted = true;
    this.#listener?.();
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listener = listener;
  }

  removeEventListener(): void {
    this.#listener = null;
  }
}

/** A request that is being handled. `fail` answers the request with an error. */
type Asking = { readonly signal: AbortFlag; readonly fail: (error: unknown) => void };

/** The unanswered requests of one caller's link. Ending a request ends its wait, but never its command. */
export class Callers {
  readonly #core: Core;
  readonly #writer: FrameWriter;
  readonly #unanswered = new ChurnMap<string, AbortFlag>();
  /**
   * The commands that are being invoked over this link and are not admitted yet, by id. A cancel or an `await` of such
   * a command must wait for its admission, because the invocation takes several calls of the store. Null if the store
   * admits a command in the turn of its request.
   */
  readonly #admitting: Map<string, PromiseWithResolvers<void>> | null;

  constructor(core: Core, writer: FrameWriter) {
    this.#core = core;
    this.#writer = writer;
    this.#admitting = core.capabilities.shared ? new Map() : null;
  }

  /** Whether the request may be handled. If not, it was refused, and the refusal was sent. */
  allows(frame: CallerFrame): boolean {
    const writer = this.#writer;
    const unanswered = this.#unanswered;
    const known = unanswered.has(frame.ref);
    if (!known && unanswered.size < CALLER_UNANSWERED) return true;
    const about = aboutFrame(frame);
    if (!writer.countUnsolicited(about)) return false;
    const message = `At most ${CALLER_UNANSWERED} requests may be unanswered.`;
    if (known)
      writer.refuse(
        { code: 'invalid_argument', message: 'ref: an earlier request with this ref is still unanswered' },
        about,
      );
    else writer.refuse({ code: 'rate_limited', message, by: 'relay' }, about);
    return false;
  }

  /**
   * Handles a request. If it fails, calls `failed` with the error, unless the caller has left the request. Never
   * throws.
   */
  take(frame: CallerFrame, requester: Principal, failed: (error: unknown) => void): void {
    const signal = new AbortFlag();
    this.#unanswered.set(frame.ref, signal);
    const fail = (error: unknown): void => {
      this.#answered(frame.ref, signal);
      // A caller that has left the request gets no answer.
      if (!signal.aborted) failed(error);
    };
    try {
      requireScope(requester, 'invoke');
      if (frame.type === 'invoke') this.#invoke(frame, requester, { signal, fail });
      else if (frame.type === 'await') this.#await(frame, requester, { signal, fail });
      else this.#cancel(frame, requester, { signal, fail });
    } catch (error) {
      fail(error);
    }
  }

  #answered(ref: string, signal: AbortFlag): void {
    if (this.#unanswered.get(ref) === signal) this.#unanswered.delete(ref);
  }

  /** Ends the wait of the request with this ref, without an answer. The ref can then be used again. */
  leave(ref: string): void {
    const signal = this.#unanswered.get(ref);
    this.#unanswered.delete(ref);
    if (signal) signal.abort();
    else this.#writer.countUnsolicited({ frame: 'leave', ref });
  }

  /** Whether a request has no answer yet. */
  get hasUnanswered(): boolean {
    return this.#unanswered.size > 0;
  }

  /** Ends every wait, because the link has closed. */
  leaveAll(): void {
    for (const signal of this.#unanswered.values()) signal.abort();
  }

  #invoke(frame: Invoke, requester: Principal, asking: Asking): void {
    const sendStage = stageSender(this.#writer, frame);
    const sendFirst = frame.stages === 'first' ? sendStage : undefined;
    const request = {
      userId: userOf(frame, requester),
      clientId: frame.client_id,
      action: frame.action,
      params: payloadOf(frame),
      commandId: frame.command_id,
      instanceId: frame.instance_id,
      contextId: frame.context_id,
      waitFor: frame.wait_for,
      connectWithinMs: frame.connect_within_ms,
      respondWithinMs: frame.respond_within_ms,
      traceId: frame.trace_id,
      parentSpanId: frame.parent_span_id,
      traceFlags: traceFlagsIn(frame.trace_flags),
      traceState: traceStateIn(frame.trace_state),
      signal: asking.signal,
      // A request for the first stage only needs no listener for later stages.
      onAdmitted: sendFirst,
      onStage: frame.stages === 'first' ? undefined : sendStage,
      onProgress: progressSender(this.#writer, frame),
    };
    // All checks must come before this line: if the frame were refused after it, the admission would never end.
    const admitted = this.#beginAdmission(frame.command_id);
    if (admitted)
      request.onAdmitted = (command) => {
        admitted();
        sendFirst?.(command);
      };
    const invoked = this.#core.rpc.invoke(requester, request);
    if (admitted) invoked.then(admitted, admitted);
    this.#answerWith(frame, invoked, asking, sendStage);
  }

  /**
   * Calls `run` once a command that is being invoked over this link is admitted or refused; at once if there is no such
   * invocation.
   */
  #afterAdmission<T>({ commandId }: { readonly commandId: string }, run: () => Promise<T>): Promise<T> {
    const admission = this.#admitting?.get(commandId);
    return admission ? admission.promise.then(run) : run();
  }

  /** Marks a command as being admitted. Returns the function that ends this; null if no frame needs to wait for it. */
  #beginAdmission(commandId: string | undefined): (() => void) | null {
    const admitting = this.#admitting;
    if (!admitting || commandId === undefined || admitting.has(commandId)) return null;
    const admission = Promise.withResolvers<void>();
    admitting.set(commandId, admission);
    return () => {
      if (admitting.get(commandId) === admission) admitting.delete(commandId);
      admission.resolve();
    };
  }

  #await(frame: Await, requester: Principal, asking: Asking): void {
    const core = this.#core;
    const sendStage = stageSender(this.#writer, frame);
    const request = {
      ...keyOf(frame, requester),
      waitFor: frame.wait_for,
      withinMs: frame.within_ms,
      traceId: frame.trace_id,
      parentSpanId: frame.parent_span_id,
      traceFlags: traceFlagsIn(frame.trace_flags),
      traceState: traceStateIn(frame.trace_state),
      signal: asking.signal,
      onAdmitted: frame.stages === 'first' ? sendStage : undefined,
      onStage: frame.stages === 'first' ? undefined : sendStage,
      onProgress: progressSender(this.#writer, frame),
    };
    const awaited = this.#afterAdmission(request, () =>
      requester.kind === 'admin' ? awaitAsAdmin(core, requester, request) : core.rpc.await(requester, request),
    );
    this.#answerWith(frame, awaited, asking, sendStage);
  }

  #cancel(frame: Cancel, requester: Principal, { signal, fail }: Asking): void {
    const key = keyOf(frame, requester);
    this.#afterAdmission(key, () => this.#core.rpc.cancel(requester, key, frame.reason ?? null))
      .then((receipt) => {
        const { commandId, state } = receipt ?? notFound();
        this.#writer.send({ type: 'receipt', ref: frame.ref, command_id: commandId, state });
        this.#answered(frame.ref, signal);
      })
      .catch(fail);
  }

  /**
   * Answers the request once the wait is over. One `then` handles both success and failure, because each further
   * promise would make every call more expensive.
   */
  #answerWith(
    frame: Invoke | Await,
    waiting: Promise<Invocation | null>,
    { signal, fail }: Asking,
    sendStage: OnStage | undefined,
  ): void {
    waiting.then((invocation) => {
      if (invocation === null) return fail(notFoundError());
      try {
        this.#answered(frame.ref, signal);
        if (!signal.aborted) this.#answer(frame, invocation, sendStage);
      } catch (error) {
        fail(error);
      }
    }, fail);
  }

  #answer(frame: Invoke | Await, invocation: Invocation, sendStage: OnStage | undefined): void {
    const writer = this.#writer;
    const { ref } = frame;
    if (invocation.kind === 'refused') {
      const commandId = invocation.commandId ?? frame.command_id;
      writer.refuse(invocation, { frame: frame.type, ref, commandId });
      return;
    }
    const { rpcId, result } = invocation;
    const { commandId, stage, lastProvenStage, outcome, execution, error } = endOf(invocation);
    if (invocation.kind === 'pending') sendStage?.(invocation.command);
    const header = {
      type: 'outcome',
      ref,
      command_id: commandId,
      rpc_id: rpcId ?? undefined,
      outcome: outcome ?? undefined,
      stage,
      last_proven_stage: lastProvenStage ?? undefined,
      execution,
      error_code: error?.code,
      error_message: error?.message,
    } as const;
    writer.send(header, result);
  }
}

/**
 * Carries out an `await` of an administrator. If another requester made the call, the audit first records that the
 * administrator reads the payload. Throws `forbidden` if administrators may not read payloads in this way. The record
 * is made before the first progress is sent, or before the result if there is no progress.
 */
async function awaitAsAdmin(core: Core, requester: Principal, request: AwaitRequest): Promise<Invocation | null> {
  const { userId, clientId, commandId } = request;
  const record = async (command: Command | null): Promise<void> => {
    if (command && !core.reveals.ownsCall(requester, command))
      await core.reveals.read(requester, { userId, clientId, commandId }, null);
  };
  if (request.onProgress) {
    await record(await core.delivery.command(requester, request));
    return core.rpc.await(requester, request);
  }
  const invocation = await core.rpc.await(requester, request);
  if (invocation && 'command' in invocation && invocation.result !== null) await record(invocation.command);
  return invocation;
}

/** Returns the function that sends the stages that the request wants; undefined if the request has no `stages`. */
function stageSender(writer: FrameWriter, { ref, stages }: Invoke | Await): OnStage | undefined {
  if (stages === undefined) return undefined;
  let lastSent: string | null = null;
  return ({ commandId, stage }) => {
    if (stage === lastSent || (stages === 'first' && lastSent !== null)) return;
    lastSent = stage;
    writer.send({ type: 'stage', ref, command_id: commandId, stage });
  };
}

/**
 * Returns the function that sends progress; undefined if the request wants none. Progress is dropped while the caller's
 * socket is behind, so that answers do not wait behind progress. The caller sees the gap in the numbers.
 */
function progressSender(writer: FrameWriter, { ref, progress }: Invoke | Await): CallerSide['onProgress'] {
  if (progress !== true) return undefined;
  return ({ commandId, payload, number }) => {
    if (writer.behind) return;
    writer.send({ type: 'progress', ref, command_id: commandId, number: number ?? undefined }, payload);
  };
}

function keyOf(frame: Await | Cancel, requester: Principal): CommandKey {
  return { userId: userOf(frame, requester), clientId: frame.client_id, commandId: frame.command_id };
}

function userOf(frame: CallerFrame, requester: Principal): string {
  if (frame.user_id !== undefined) return frame.user_id;
  return requester.kind === 'user' ? requester.userId : invalid('user_id', 'an administrator must name the user');
}
