import { requireScope, type Principal } from '../core/auth/principal.ts';
import type { Core, Invocation, OnStage } from '../core/core.ts';
import { invalid, notFound } from '../core/errors.ts';
import type { CommandKey } from '../core/ids.ts';
import { CALLER_UNANSWERED } from '../core/limits.ts';
import type { UpFrame } from '../protocol/frames.ts';
import type { Conduct } from './conduct.ts';
import { isObjectText } from './json.ts';
import { payloadOf } from './payload.ts';
import { aboutFrame } from './refusal.ts';
import type { Wire } from './wire.ts';

export type CallerFrame = Extract<UpFrame, { type: 'invoke' | 'await' | 'cancel' }>;
type Invoke = Extract<CallerFrame, { type: 'invoke' }>;
type Await = Extract<CallerFrame, { type: 'await' }>;
type Cancel = Extract<CallerFrame, { type: 'cancel' }>;

export type CallersOptions = { readonly core: Core; readonly wire: Wire; readonly conduct: Conduct };

/** The requests of one caller's link that are not answered yet. Ending one ends its wait, never its command. */
export class Callers {
  readonly #options: CallersOptions;
  readonly #unanswered = new Map<string, AbortController>();

  constructor(options: CallersOptions) {
    this.#options = options;
  }

  /** Whether the frame may pass; where not, it was refused. */
  allows(frame: CallerFrame): boolean {
    const { wire, conduct } = this.#options;
    const about = aboutFrame(frame);
    if (this.#unanswered.has(frame.ref)) {
      if (conduct.unsolicited(about))
        wire.refuse({ code: 'invalid_argument', message: 'ref: an earlier request of this ref is unanswered' }, about);
      return false;
    }
    if (this.#unanswered.size < CALLER_UNANSWERED) return true;
    if (conduct.unsolicited(about)) {
      const message = `At most ${CALLER_UNANSWERED} requests may be unanswered.`;
      wire.refuse({ code: 'rate_limited', message, by: 'relay' }, about);
    }
    return false;
  }

  /** Rejects with a CallboardError of core's, or BadPayload. */
  async take(frame: CallerFrame, who: Principal): Promise<void> {
    const leaving = new AbortController();
    this.#unanswered.set(frame.ref, leaving);
    try {
      requireScope(who, 'invoke');
      if (frame.type === 'invoke') await this.#invoke(frame, who, leaving.signal);
      else if (frame.type === 'await') await this.#await(frame, who, leaving.signal);
      else await this.#cancel(frame, who);
    } catch (error) {
      // Who left is not answered.
      if (!leaving.signal.aborted) throw error;
    } finally {
      if (this.#unanswered.get(frame.ref) === leaving) this.#unanswered.delete(frame.ref);
    }
  }

  /** Ends the wait of this ref, unanswered; the ref is free again. */
  leave(ref: string): void {
    const leaving = this.#unanswered.get(ref);
    this.#unanswered.delete(ref);
    if (leaving) leaving.abort();
    else this.#options.conduct.unsolicited({ frame: 'leave', ref });
  }

  /** The link is gone: every wait ends. */
  leaveAll(): void {
    for (const leaving of this.#unanswered.values()) leaving.abort();
  }

  async #invoke(frame: Invoke, who: Principal, signal: AbortSignal): Promise<void> {
    const { core } = this.#options;
    const params = payloadOf(frame);
    if (params !== null && !isObjectText(params)) invalid('params', 'an object was expected');
    const onStage = tellerOf(this.#options.wire, frame.ref);
    const invocation = await core.rpc.invoke(who, {
      userId: userOf(frame, who),
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
      onStage,
    });
    if (!signal.aborted) this.#answer(frame, invocation, onStage);
  }

  async #await(frame: Await, who: Principal, signal: AbortSignal): Promise<void> {
    const { core, wire } = this.#options;
    const onStage = tellerOf(wire, frame.ref);
    const request = { ...keyOf(frame, who), waitFor: frame.wait_for, withinMs: frame.within_ms, signal, onStage };
    const invocation = (await core.rpc.await(who, request)) ?? notFound();
    if (!signal.aborted) this.#answer(frame, invocation, onStage);
  }

  async #cancel(frame: Cancel, who: Principal): Promise<void> {
    const { core, wire } = this.#options;
    const receipt = (await core.rpc.cancel(who, keyOf(frame, who), frame.reason ?? null)) ?? notFound();
    wire.send({ type: 'receipt', ref: frame.ref, command_id: receipt.command.commandId, state: receipt.state });
  }

  #answer(frame: Invoke | Await, invocation: Invocation, onStage: OnStage): void {
    const { wire } = this.#options;
    const { ref } = frame;
    if (invocation.kind === 'refused') {
      const commandId = invocation.commandId ?? frame.command_id;
      wire.refuse(invocation, { frame: frame.type, ref, commandId });
      return;
    }
    const { command, rpcId, result } = invocation;
    const { commandId, stage, outcome, execution, error } = command;
    if (invocation.kind === 'pending') onStage(command);
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

/** Says each stage once. */
function tellerOf(wire: Wire, ref: string): OnStage {
  let told: string | null = null;
  return ({ commandId, stage }) => {
    if (stage === told) return;
    told = stage;
    wire.send({ type: 'stage', ref, command_id: commandId, stage });
  };
}

function keyOf(frame: Await | Cancel, who: Principal): CommandKey {
  return { userId: userOf(frame, who), clientId: frame.client_id, commandId: frame.command_id };
}

function userOf(frame: CallerFrame, who: Principal): string {
  if (frame.user_id !== undefined) return frame.user_id;
  return who.kind === 'user' ? who.userId : invalid('user_id', 'an administrator must name the user');
}
