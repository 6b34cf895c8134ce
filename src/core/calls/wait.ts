/** One caller's wait on a command, from before the admission to the answer. */
import type { CommandRecorder } from '../commands/command-recorder.ts';
import { endedByMark, isTerminal, type Command, type CommandCaller } from '../commands/command.ts';
import type { Reply, WaitFor } from '../commands/waiter.ts';
import type { Deps } from '../deps.ts';
import { CallboardError } from '../errors.ts';
import type { CommandKey } from '../ids.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Cancel } from '../ports.ts';
import type { Holdings } from '../shares/shares.ts';
import { commandTraceFields } from '../trace-context.ts';
import { invocation, type CallerSide, type Invocation } from './call.ts';
import type { KnownWait, NodeWaits } from './correlator.ts';
import { createUpdates, type Updates } from './wait-updates.ts';

export type WaitDeps = NodeWaits & { readonly recorder: CommandRecorder };

type NewWait = {
  readonly waitFor: WaitFor;
  /** The caller's own budget in milliseconds; null if the caller waits as long as the command lives. */
  readonly withinMs: number | null;
  readonly holdings: Holdings;
  /** The waiting caller, as the waiter's record names it. */
  readonly recordedAs: CommandCaller;
  readonly caller: CallerSide;
};

/** How long to wait for the reply after the deadline, in milliseconds. After that, the record is read instead. */
const REPLY_GRACE_MS = 1_000;
const ONCE = { once: true } as const;

/**
 * One caller's wait. It ends with the first of these: the reply, the end of the caller's own budget, the caller's
 * hang-up, or the command's deadline. Each of them removes the waiter. At its connect deadline and at its deadline the
 * command is ended too; the other ends of a wait leave the command alone. The object exists from before the store is
 * asked until the caller is answered.
 */
export class Wait {
  readonly rpcId: string;
  readonly waitFor: WaitFor;
  readonly withinMs: number | null;
  /** The amounts of bounded resources that the waiting requester holds. */
  readonly holdings: Holdings;
  readonly #recordedAs: CommandCaller;
  readonly #parts: WaitDeps;
  readonly #caller: CallerSide;
  /** The command that is waited for; null until `begin`. */
  #command: Command | null = null;
  /** When the wait began, in epoch milliseconds. Registering the wait again does not change it. */
  #since = 0;
  #until: number | null = null;
  #reply: Reply | null = null;
  #resolve: ((invocation: Invocation | Promise<Invocation>) => void) | null = null;
  #isRecorded = false;
  /** Cancels the timer of the deadline or, after the deadline, the timer of the grace period. */
  #cancelDeadline: Cancel | null = null;
  #cancelConnect: Cancel | null = null;
  #cancelBudget: Cancel | null = null;
  #updates: Updates | null = null;

  /**
   * Registers the wait with the correlator, so that no reply arrives too early. Before the call, check that the share
   * `waits` has room.
   */
  constructor(parts: WaitDeps, { waitFor, withinMs, holdings, recordedAs, caller }: NewWait) {
    this.rpcId = parts.deps.crypto.randomId();
    this.waitFor = waitFor;
    this.withinMs = withinMs;
    this.holdings = holdings;
    this.#recordedAs = recordedAs;
    this.#parts = parts;
    this.#caller = caller;
    parts.correlator.add(this);
  }

  /** The wait as the store has it; null until the store has registered it. */
  get known(): KnownWait | null {
    const { rpcId, waitFor } = this;
    if (!this.#command) return null;
    const times = { since: this.#since, until: this.#until };
    const isRecorded = this.#isRecorded;
    return { rpcId, command: this.#command, isRecorded, caller: this.#recordedAs, waitFor, ...times };
  }

  /** Removes the waiter. Idempotent. */
  forget(): void {
    this.#updates?.stop();
    this.#parts.correlator.forget(this.rpcId);
  }

  /**
   * If the caller requests progress, subscribes to the command's progress. Call it before the admission, so that no
   * report is missed. Resolves when reports of other nodes can arrive.
   */
  listen(key: CommandKey): MaybePromise<void> {
    if (!this.#caller.onProgress) return;
    const { deps } = this.#parts;
    this.#updates = createUpdates(deps, key, this.#caller);
    return deps.backend.bus.confirmed(key);
  }

  /** Begins to wait. Call it once, after the store has registered the waiter. */
  begin(command: Command): Promise<Invocation> {
    this.#command = command;
    this.found();
    if (this.#parts.correlator.released) return this.#giveUp(command);
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#watch(command);
      if (this.#reply) this.resolve(this.#reply);
      if (this.#caller.signal?.aborted) this.#leave();
    });
  }

  /** Notes that the store has the command. If the store does not know the command later, it has lost the command. */
  found(): void {
    const { backend } = this.#parts.deps;
    if (backend.onRecord) backend.onRecord(() => void (this.#isRecorded = true));
    else this.#isRecorded = true;
  }

  /** Answers with an error, because the command was never recorded. */
  refuse(): void {
    this.#end()?.(Promise.reject(neverRecorded()));
  }

  /**
   * Answers with the reply. Called at most once. The reply may arrive before the store has confirmed that it registered
   * the waiter.
   */
  resolve(reply: Reply): void {
    if (!this.#command) this.#reply = reply;
    // A store may deliver the end of a command before its last report of progress, in one turn of the event loop. So
    // the answer waits for the end of the turn.
    else if (this.#caller.onProgress) this.#parts.deps.loop.atTurnEnd(() => this.#answer(reply));
    else this.#answer(reply);
  }

  #answer(reply: Reply): void {
    this.#end()?.(invocation(reply.command, this.rpcId, reply.result));
  }

  #watch(command: Command): void {
    const { clock } = this.#parts.deps;
    const { signal, onAdmitted, onStage, onProgress } = this.#caller;
    const now = clock.now();
    this.#since = now;
    if (command.queuedAt === null) {
      const connectIn = Math.max(0, command.connectDeadline - now);
      this.#cancelConnect = clock.after(connectIn, () => this.#expire(command));
    }
    this.#cancelDeadline = clock.after(Math.max(0, command.deadline - now), () => this.#deadline(command));
    if (this.withinMs !== null) {
      this.#until = now + this.withinMs;
      this.#cancelBudget = clock.after(this.withinMs, this.#leave);
    }
    onAdmitted?.(command);
    if (onStage || onProgress) this.#updates ??= createUpdates(this.#parts.deps, command, this.#caller);
    this.#updates?.begin(command);
    signal?.addEventListener('abort', this.#leave, ONCE);
  }

  /**
   * Ends the command at its connect deadline or its deadline. The reply follows. If this node is gone by then, another
   * node's reconciliation ends the command.
   */
  #expire(command: Command): void {
    const { recorder, deps } = this.#parts;
    recorder
      .settle(command, { kind: 'expire' })
      .catch((error: unknown) =>
        deps.log.warn(
          { err: error, ...commandTraceFields(command) },
          'could not settle a command at its deadline; reconciliation will',
        ),
      );
  }

  #deadline(command: Command): void {
    this.#cancelDeadline = this.#parts.deps.clock.after(REPLY_GRACE_MS, this.#leave);
    this.#expire(command);
  }

  readonly #leave = (): void => {
    const command = this.#command;
    if (command) this.#end()?.(this.#giveUp(command));
  };

  /** Stops the timers, and returns the function that answers the caller. Returns null if the wait had already ended. */
  #end(): ((invocation: Invocation | Promise<Invocation>) => void) | null {
    const resolve = this.#resolve;
    if (!resolve) return null;
    this.#resolve = null;
    this.#cancelDeadline?.();
    this.#cancelConnect?.();
    this.#cancelBudget?.();
    this.#updates?.stop();
    this.#caller.signal?.removeEventListener('abort', this.#leave);
    return resolve;
  }

  /** Removes the waiter, and answers with the command's present record. */
  async #giveUp(command: Command): Promise<Invocation> {
    const { rpcId } = this;
    const isRecorded = this.#isRecorded;
    this.forget();
    const { command: present, result } = await readPresent(this.#parts.deps, { rpcId, command, isRecorded });
    return invocation(present, rpcId, result);
  }
}

/**
 * Removes the waiter of a command from the store, and reads the command's present state. Rejects if the store never
 * recorded the command.
 */
export async function readPresent(
  { backend }: Pick<Deps, 'backend'>,
  { rpcId, command, isRecorded }: Pick<KnownWait, 'rpcId' | 'command' | 'isRecorded'>,
): Promise<Reply> {
  const { commands, waiters } = backend;
  await waiters.remove(command, rpcId);
  const [now] = await commands.get([command]);
  const mark = now ? null : await commands.mark(command);
  if (!now && !mark && !isRecorded) throw neverRecorded();
  const present = now ?? (mark ? endedByMark(command, mark) : command);
  return { rpcId, command: present, result: isTerminal(present) ? await commands.result(present) : null };
}

/**
 * Returns the error for a command that the store did not record, because another process decides about its user now.
 * Nothing was acknowledged, so a new call with the same id is admitted.
 */
function neverRecorded(): CallboardError {
  return new CallboardError('store_unavailable', 'The store has not recorded the command.', { retryAfterMs: 1_000 });
}
