/**
 * Runs the calls of agents: recognises repeated calls, waits for a limited time and sends progress, and cancels a call
 * if its agent cancels it or hangs up.
 */
import type { CallerLabel } from '../core/auth/caller-label.ts';
import type { UserPrincipal } from '../core/auth/principal.ts';
import type { HangUp, Invocation, InvokeRequest } from '../core/calls/call.ts';
import type { EarlierCall } from '../core/calls/equal-calls.ts';
import type { Entered } from '../core/calls/repeats.ts';
import { isTerminal, type Command } from '../core/commands/command.ts';
import type { Core } from '../core/core.ts';
import type { ClientKey, CommandKey } from '../core/ids.ts';
import { AGENT_HUNG_UP_MS, AGENT_PROGRESS_MS, AGENT_WAIT_MS } from '../core/limits.ts';
import type { Cancel, Log } from '../core/ports.ts';
import { noteCommand, spanNoter } from '../web/request-notes.ts';
import type { AgentRequest, AgentCall } from './agent-request.ts';
import { chooseClient, type ChosenClient } from './choose-client.ts';
import { clientText } from './client-text.ts';
import {
  answerOf,
  cancelledCall,
  failedResult,
  refusal,
  refusedCall,
  refusedRepeat,
  type ToolResult,
} from './results.ts';
import type { RunningCall } from './call-answer.ts';

/** The maximum number of characters of a client's progress report that are passed on. */
const PROGRESS_CHARS = 200;

export type Calls = ReturnType<typeof createCalls>;

/**
 * How often the decision about a call is repeated. A repetition is needed if another node admitted an equal call at the
 * same time.
 */
const ATTEMPTS = 100;

export function createCalls(core: Core, log: Log) {
  const abandoned = new Map<Cancel, RunningCall>();
  /**
   * Cancels a command for which its agent no longer waits. If the agent has cancelled the call, the command is
   * cancelled at once. If it has hung up, the command is cancelled after AGENT_HUNG_UP_MS, unless an equal call waits
   * for the command by then.
   */
  const abandon = ({ requester, call }: AgentRequest, key: CommandKey): Promise<void> => {
    const cancel = (unlessAwaited: boolean): Promise<void> =>
      cancelCommand(core, requester, key, unlessAwaited).catch((error: unknown) => {
        // Only logged, because the deadline of the command will end it.
        log.debug({ err: error }, 'a command of an agent that hung up was not cancelled');
      });
    if (call.isCancelled) return cancel(false);
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = (unlessAwaited: boolean): void => {
      if (!abandoned.delete(cancelTimer)) return;
      cancelTimer();
      void cancel(unlessAwaited).then(resolve);
    };
    const cancelTimer = core.clock.after(AGENT_HUNG_UP_MS, () => end(true));
    abandoned.set(cancelTimer, call);
    call.whenCancelled(() => end(false));
    return promise;
  };
  return {
    /** Invokes an action and waits for its end, at most AGENT_WAIT_MS. */
    async invoke(request: AgentRequest, call: AgentCall): Promise<ToolResult> {
      const target = await chooseClient(core, request, call);
      if ('refused' in target) return target.refused;
      for (let n = 0; n < ATTEMPTS; n++) {
        const entered = await enter(core, request, call, target);
        const { decision } = entered;
        try {
          if (decision.kind === 'refused') return refusedRepeat(decision.earlier, call);
          if (decision.kind === 'foreign') return foreignRepeat(call);
          const result = await invokeAs(core, request, { call, target, decision, entered, abandon });
          if (result) return result;
        } catch (error) {
          // The command may have been admitted, and this answer does not state its end.
          request.call.owed.lost();
          return failedResult(error, { log, about: { action: call.action }, call: 'begun', names: call.names });
        } finally {
          await entered.leave(false);
        }
      }
      return refusal('capacity_exceeded', 'Too many equal calls are made at the same time.', 'Repeat the call later.');
    },
    /** Waits for the end of a command, at most `withinMs`. Null: the requester has no such command. */
    async await(request: AgentRequest, key: CommandKey, withinMs: number): Promise<Invocation | null> {
      const wait = new AgentWait(core, request, { withinMs, asks: null });
      const { trace, notes } = request;
      const found = await core.rpc
        .await(request.requester, {
          ...key,
          withinMs,
          trace,
          callerLabel: labelOf(request),
          onSpan: spanNoter(notes),
          ...wait.side,
        })
        .finally(() => wait.end());
      return found && noteCommand(notes, found);
    },
    /** Stops the timers for calls whose agents have hung up. The deadlines of the commands end them instead. */
    close(): void {
      for (const cancel of abandoned.keys()) cancel();
      abandoned.clear();
    },
  };
}

// Recognises repeated calls.

type Run = Extract<Entered['decision'], { readonly kind: 'new' | 'attach' }>;
/**
 * The decision about a call: whether it is new or a repetition. For a call with the program's own key, nothing is
 * compared: it counts as new.
 */
type Decided = Pick<Entered, 'leave'> & { readonly decision: Entered['decision'] };

async function enter(core: Core, request: AgentRequest, call: AgentCall, target: ChosenClient): Promise<Decided> {
  const { requester, idempotencyKey, agent } = request;
  if (idempotencyKey !== null)
    return { decision: { kind: 'new', commandId: idempotencyKey, ranBeside: null }, leave: async () => {} };
  const { clientId, harmless } = target;
  const asked = { ...call, clientId, harmless, agent, userId: requester.userId };
  return core.rpc.repeats.enter(requester, asked, request.call.owed);
}

function foreignRepeat({ names }: AgentCall): ToolResult {
  const name = names.repeat_of ?? 'repeat_of';
  const message = `${name}: no earlier call of this action with the same arguments has this id.`;
  return refusal('invalid_argument', message, `Leave ${name} out for a call that is new.`);
}

// Invokes and waits.

type Invoking = {
  readonly call: AgentCall;
  readonly target: ChosenClient;
  readonly decision: Run;
  readonly entered: Pick<Entered, 'leave'>;
  readonly abandon: (request: AgentRequest, key: CommandKey) => Promise<void>;
};

/**
 * Invokes the action, or waits for the command of the earlier equal call. Null: another node has admitted an equal call
 * with the same id.
 */
async function invokeAs(core: Core, request: AgentRequest, invoking: Invoking): Promise<ToolResult | null> {
  const { call, target, decision, entered, abandon } = invoking;
  const { requester, notes } = request;
  if (request.call.isCancelled) return cancelledCall();
  const { commandId } = decision;
  const key = commandId === null ? null : { userId: requester.userId, clientId: target.clientId, commandId };
  const owed = request.idempotencyKey === null ? key : null;
  request.call.owes(owed);
  const wait = new AgentWait(core, request, { withinMs: AGENT_WAIT_MS, asks: target.asks ? target.clientId : null });
  const owedBy = owed && decision.kind === 'new' ? request.call.owed.token : undefined;
  const answer = await ask(core, request, { ...invoking, owedBy }, wait).finally(() => wait.end());
  if (answer.kind === 'refused') {
    request.call.owes(null);
    if (owed && decision.kind === 'new' && answer.code === 'command_conflict') return null;
    return refusedCall(noteCommand(notes, answer), call.names);
  }
  await entered.leave(true);
  const invocation = noteCommand(notes, answer);
  const of = keyOfInvocation(invocation);
  if (invocation.kind === 'pending' && request.call.signal.aborted) void giveUp(request, of, abandon);
  if (owed && hasEnded(invocation)) request.call.tells(owed);
  const attachedTo = decision.kind === 'attach' ? decision.earlier : null;
  const ranBeside = decision.kind === 'new' ? await presentOf(core, requester, decision.ranBeside) : null;
  return answerOf(invocation, { ...of, attachedTo, ranBeside, now: core.clock.now(), names: call.names });
}

/**
 * `owedBy`: the token of the request that owes an answer to the agent. Absent if the command is not new, or if the
 * caller chose its id.
 */
type Asking = Invoking & { readonly owedBy: string | undefined };

async function ask(core: Core, request: AgentRequest, asking: Asking, { side }: AgentWait): Promise<Invocation> {
  const { call, target, decision, entered, owedBy } = asking;
  const { requester, trace, notes } = request;
  const { userId } = requester;
  const { clientId } = target;
  const { commandId } = decision;
  if (decision.kind === 'attach') {
    const clientType = decision.earlier.command?.clientType ?? null;
    // If the requester's token may not invoke the action, `invoke` below refuses the call.
    if (core.actions.mayInvoke(requester, { userId, clientType, action: call.action })) {
      await entered.leave(true);
      const labels = { trace, callerLabel: labelOf(request), onSpan: spanNoter(notes) };
      const key = { userId, clientId, commandId: decision.commandId };
      const found = await core.rpc.await(requester, { ...key, withinMs: AGENT_WAIT_MS, ...labels, ...side });
      if (found) return found;
    }
  }
  return core.rpc.invoke(requester, {
    ...invokeRequest(request, call, { userId, clientId, commandId }),
    ...side,
    owedBy,
    onAdmitted: () => void entered.leave(true),
  });
}

function giveUp(request: AgentRequest, key: CommandKey, abandon: Invoking['abandon']): Promise<void> {
  const end = request.call.keepWorking();
  return abandon(request, key).finally(end);
}

/** Returns the present state of an earlier call; null if there is no earlier call. */
async function presentOf(
  { rpc }: Core,
  requester: UserPrincipal,
  earlier: EarlierCall | null,
): Promise<EarlierCall | null> {
  if (!earlier?.command) return earlier;
  const { userId, clientId, commandId } = earlier.command;
  const found = await rpc.await(requester, { userId, clientId, commandId, withinMs: 0 });
  return found && 'command' in found ? { commandId, command: found.command, mark: null } : earlier;
}

function keyOfInvocation(invocation: Exclude<Invocation, { readonly kind: 'refused' }>): CommandKey {
  if (invocation.kind === 'ended') return invocation.key;
  const { userId, clientId, commandId } = invocation.command;
  return { userId, clientId, commandId };
}

/** Builds core's request. No other function names the members of a request from an agent. */
function invokeRequest(
  request: AgentRequest,
  call: AgentCall,
  key: ClientKey & { readonly commandId: string | null },
): InvokeRequest {
  const { action, params, contextId, respondWithinMs } = call;
  const { trace, notes } = request;
  const asked = { ...key, action, params, contextId, respondWithinMs, callerLabel: labelOf(request) };
  return { ...asked, trace, onSpan: spanNoter(notes), waitFor: 'completed' };
}

/**
 * Returns the label that records use for the agent's program. Only calls with such a label may use command ids that
 * begin with `mcp-`.
 */
function labelOf({ host }: AgentRequest): CallerLabel {
  return { kind: 'mcp', name: host?.name ?? 'unnamed', version: host?.version ?? null };
}

type Waiting = { readonly withinMs: number; readonly asks: string | null };

/**
 * The wait of an agent for a command. It ends after its time or when the agent hangs up, and sends progress until then.
 */
class AgentWait implements HangUp {
  readonly #listeners = new Set<() => void>();
  readonly #signal: AbortSignal;
  #cancels: Cancel[];
  #over = false;
  #stage: Command['stage'] | null = null;
  #progress: string | null = null;
  readonly #tellsProgress: boolean;
  /** The client that asks a person for approval before the action begins; null if it does not ask. */
  readonly #asks: string | null;

  constructor({ clock }: Core, { call: { signal }, progress }: AgentRequest, { withinMs, asks }: Waiting) {
    const since = clock.monotonic();
    this.#signal = signal;
    this.#asks = asks;
    this.#tellsProgress = progress !== null;
    this.#cancels = [clock.after(withinMs, this.#expire)];
    if (progress) {
      const seconds = (): number => Math.round((clock.monotonic() - since) / 1000);
      this.#cancels.push(clock.every(AGENT_PROGRESS_MS, () => progress(seconds(), this.#message())));
    }
    signal.addEventListener('abort', this.#expire, { once: true });
  }

  get aborted(): boolean {
    return this.#over || this.#signal.aborted;
  }

  /**
   * The callbacks that core's calls get for this wait. Progress is subscribed to only if the agent wants it, because a
   * subscription has a cost.
   */
  get side(): Pick<InvokeRequest, 'signal' | 'onStage' | 'onProgress'> {
    if (!this.#tellsProgress) return { signal: this };
    return {
      signal: this,
      onStage: ({ stage }) => void (this.#stage = stage),
      onProgress: ({ payload }) => void (this.#progress = payload),
    };
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.delete(listener);
  }

  /** Stops the timers. */
  end(): void {
    for (const cancel of this.#cancels) cancel();
    this.#cancels = [];
    this.#signal.removeEventListener('abort', this.#expire);
  }

  readonly #expire = (): void => {
    this.#over = true;
    for (const listener of [...this.#listeners]) listener();
  };

  #message(): string {
    const stage = this.#stage ?? 'waiting';
    // A client acknowledges a command when its handler begins, so a command that is still `dispatched` waits for
    // approval.
    if (stage === 'dispatched' && this.#asks !== null)
      return `${stage}: the client "${this.#asks}" asks a person to approve the call`;
    return this.#progress === null ? stage : `${stage}: ${clientText(this.#progress, PROGRESS_CHARS)}`;
  }
}

/** Cancels a command that was not handed to the client yet; for another one, asks the client to cancel it. */
async function cancelCommand(
  core: Core,
  requester: UserPrincipal,
  key: CommandKey,
  unlessAwaited: boolean,
): Promise<void> {
  const [waits = []] = unlessAwaited ? await core.rpc.ofCommands(requester, [key]) : [];
  const reason = unlessAwaited ? 'The agent hung up.' : 'The agent cancelled the call.';
  if (waits.length === 0) await core.rpc.cancel(requester, key, reason);
}

/** Whether the answer to a request about this command states how it ended. */
export function hasEnded(invocation: Invocation): boolean {
  if (invocation.kind === 'ended') return true;
  return invocation.kind !== 'refused' && isTerminal(invocation.command);
}
