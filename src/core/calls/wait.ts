/** One caller's wait on a command, from the admission to the answer. */
import type { Cancel } from '../clock.ts';
import type { HangUp, Invocation, OnStage } from '../core.ts';
import type { DeliveryActs } from '../delivery/acts.ts';
import { endedByMark, isTerminal, type Command } from '../delivery/command.ts';
import type { Reply, WaitFor } from '../delivery/waiter.ts';
import type { Deps } from '../deps.ts';
import type { Holdings } from '../shares/shares.ts';
import type { Correlator, KnownWait, Waiting } from './correlator.ts';
import { invocation } from './invocation.ts';
import { notifyStages } from './stages.ts';
import { commandTraceFields } from '../trace-context.ts';

export type WaitParts = { readonly deps: Deps; readonly correlator: Correlator; readonly acts: DeliveryActs };

/** What the caller may do while it waits: hang up, and listen for stages. */
export type CallerSide = {
  readonly signal?: HangUp | undefined;
  readonly onAdmitted?: OnStage | undefined;
  readonly onStage?: OnStage | undefined;
};

export type NewWait = {
  readonly waitFor: WaitFor;
  /** The caller's own budget in milliseconds; null: as long as the command lives. */
  readonly withinMs: number | null;
  readonly holdings: Holdings;
  readonly caller: CallerSide;
};

/**
 * How long after a deadline the reply of the settled command may take, in milliseconds. Then the record is read
 * instead.
 */
const REPLY_GRACE_MS = 1_000;
const ONCE = { once: true } as const;

/**
 * One caller's wait. It ends with the reply, at the end of the caller's own budget, when the caller hangs up, or at the
 * command's deadline, whichever comes first. Each of these removes the waiter; only the deadline touches the command.
 * The object exists from before the store is asked until the caller is answered.
 */
export class Wait implements Waiting {
  readonly rpcId: string;
  readonly waitFor: WaitFor;
  readonly withinMs: number | null;
  readonly holdings: Holdings;
  readonly #parts: WaitParts;
  readonly #caller: CallerSide;
  /** The command that is waited for; null until `begin`. */
  #command: Command | null = null;
  /** When the wait began, in epoch milliseconds. It stays the same if the wait is registered again. */
  #since = 0;
  #until: number | null = null;
  #reply: Reply | null = null;
  #resolve: ((invocation: Invocation | Promise<Invocation>) => void) | null = null;
  /** Cancels the timer of the deadline, or after the deadline the timer of the grace period. */
  #cancelDeadline: Cancel | null = null;
  #cancelConnect: Cancel | null = null;
  #cancelBudget: Cancel | null = null;
  #stopStages: Cancel | null = null;

  /** Registers the wait, so that no reply can come too early. The caller must have checked that there is room. */
  constructor(parts: WaitParts, { waitFor, withinMs, holdings, caller }: NewWait) {
    this.rpcId = parts.deps.crypto.randomId();
    this.waitFor = waitFor;
    this.withinMs = withinMs;
    this.holdings = holdings;
    this.#parts = parts;
    this.#caller = caller;
    parts.correlator.add(this);
  }

  get known(): KnownWait | null {
    const { rpcId, waitFor } = this;
    return this.#command && { rpcId, command: this.#command, waitFor, since: this.#since, until: this.#until };
  }

  /** Removes the waiter. Idempotent. */
  forget(): void {
    this.#parts.correlator.forget(this.rpcId);
  }

  /** Begins to wait; the waiter is registered in the store. Call it once. */
  begin(command: Command): Promise<Invocation> {
    this.#command = command;
    if (this.#parts.correlator.released) return this.#giveUp(command);
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#watch(command);
      if (this.#reply) this.resolve(this.#reply);
      if (this.#caller.signal?.aborted) this.#leave();
    });
  }

  resolve(reply: Reply): void {
    if (!this.#command) this.#reply = reply;
    else this.#end()?.(invocation(reply.command, this.rpcId, reply.result));
  }

  #watch(command: Command): void {
    const { clock } = this.#parts.deps;
    const { signal, onAdmitted, onStage } = this.#caller;
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
    if (onStage) this.#stopStages = notifyStages(this.#parts.deps, command, onStage);
    signal?.addEventListener('abort', this.#leave, ONCE);
  }

  /**
   * Settles the command at its connect deadline or its deadline. The reply follows. If this node is gone by then, the
   * reconciliation of another node settles the command.
   */
  #expire(command: Command): void {
    const { acts, deps } = this.#parts;
    acts
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

  /** Stops watching, and returns the function that answers the caller; null: the wait was over already. */
  #end(): ((invocation: Invocation | Promise<Invocation>) => void) | null {
    const resolve = this.#resolve;
    if (!resolve) return null;
    this.#resolve = null;
    this.#cancelDeadline?.();
    this.#cancelConnect?.();
    this.#cancelBudget?.();
    this.#stopStages?.();
    this.#caller.signal?.removeEventListener('abort', this.#leave);
    return resolve;
  }

  /** Removes the waiter, and answers with the record as it is now. */
  async #giveUp(command: Command): Promise<Invocation> {
    const { commands, waiters } = this.#parts.deps.backend;
    this.forget();
    await waiters.remove(command, this.rpcId);
    const [now] = await commands.get([command]);
    const mark = now ? null : await commands.mark(command);
    const present = now ?? (mark ? endedByMark(command, mark) : command);
    return invocation(present, this.rpcId, isTerminal(present) ? await commands.result(present) : null);
  }
}
