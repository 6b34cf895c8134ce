/** One caller's wait on a command, from the admission to the answer. */
import type { Cancel } from '../clock.ts';
import type { HangUp, Invocation, OnStage } from '../core.ts';
import type { DeliveryActs } from '../delivery/acts.ts';
import { endedByMark, isTerminal, type Command } from '../delivery/command.ts';
import type { WaitFor } from '../delivery/waiter.ts';
import type { Deps } from '../deps.ts';
import type { JsonText } from '../json.ts';
import type { Correlator, Expected, KnownWait } from './correlator.ts';
import { notifyStages } from './stages.ts';

export type WaitParts = { readonly deps: Deps; readonly correlator: Correlator; readonly acts: DeliveryActs };

/** What the caller may do while it waits: hang up, and listen for stages. */
export type CallerSide = {
  readonly signal?: HangUp | undefined;
  readonly onAdmitted?: OnStage | undefined;
  readonly onStage?: OnStage | undefined;
};

export type Wait = CallerSide & {
  readonly expected: Expected;
  readonly rpcId: string;
  readonly command: Command;
  readonly waitFor: WaitFor;
  /** The caller's own budget in milliseconds; null: as long as the command lives. */
  readonly withinMs: number | null;
};

/**
 * How long after a deadline the reply of the settled command may take, in milliseconds. Then the record is read
 * instead.
 */
const REPLY_GRACE_MS = 1_000;

/**
 * Waits for the reply, the end of the caller's own budget, the caller's hanging up, or the command's deadline,
 * whichever comes first. Each of these removes the waiter; only the deadline touches the command.
 */
export function waitForReply(parts: WaitParts, wait: Wait): Promise<Invocation> {
  if (parts.correlator.released) return giveUp(parts, wait);
  return new Promise((resolve, reject) => new Waiting(parts, wait, { resolve, reject }).begin());
}

type Resolvers = { readonly resolve: (invocation: Invocation) => void; readonly reject: (error: unknown) => void };

class Waiting implements KnownWait {
  readonly until: number | null;
  readonly #parts: WaitParts;
  readonly #wait: Wait;
  readonly #resolvers: Resolvers;
  #over = false;
  /** Cancels the timer of the deadline, then that of the grace period after it. */
  #cancelDeadline: Cancel | null = null;
  #cancelConnect: Cancel | null = null;
  #cancelBudget: Cancel | null = null;
  #stopStages: Cancel | null = null;

  constructor(parts: WaitParts, wait: Wait, resolvers: Resolvers) {
    this.#parts = parts;
    this.#wait = wait;
    this.#resolvers = resolvers;
    this.until = wait.withinMs === null ? null : parts.deps.clock.now() + wait.withinMs;
  }

  get rpcId(): string {
    return this.#wait.rpcId;
  }

  get command(): Command {
    return this.#wait.command;
  }

  get waitFor(): WaitFor {
    return this.#wait.waitFor;
  }

  begin(): void {
    const { expected, command, withinMs, signal, onAdmitted, onStage } = this.#wait;
    const { clock } = this.#parts.deps;
    const now = clock.now();
    expected.wait = this;
    if (command.queuedAt === null) {
      const connectIn = Math.max(0, command.connectDeadline - now);
      this.#cancelConnect = clock.after(connectIn, () => this.#expire());
    }
    this.#cancelDeadline = clock.after(Math.max(0, command.deadline - now), () => this.#deadline());
    if (withinMs !== null) this.#cancelBudget = clock.after(withinMs, this.#leave);
    onAdmitted?.(command);
    if (onStage) this.#stopStages = notifyStages(this.#parts.deps, command, onStage);
    signal?.addEventListener('abort', this.#leave, { once: true });
    expected.listen((reply) => this.#answer(reply));
    if (signal?.aborted) this.#leave();
  }

  /**
   * Settles the command at its connect deadline or deadline; the reply follows. If this node is gone, reconciliation
   * does it.
   */
  #expire(): void {
    const { acts, deps } = this.#parts;
    acts
      .settle(this.#wait.command, { kind: 'expire' })
      .catch((error: unknown) =>
        deps.log.warn({ err: error }, 'could not settle a command at its deadline; reconciliation will'),
      );
  }

  #deadline(): void {
    this.#cancelDeadline = this.#parts.deps.clock.after(REPLY_GRACE_MS, this.#leave);
    this.#expire();
  }

  #answer({ command, result }: { readonly command: Command; readonly result: JsonText | null }): void {
    if (!this.#end()) return;
    this.#resolvers.resolve({ kind: isTerminal(command) ? 'outcome' : 'pending', command, rpcId: this.rpcId, result });
  }

  readonly #leave = (): void => {
    if (this.#end()) giveUp(this.#parts, this.#wait).then(this.#resolvers.resolve, this.#resolvers.reject);
  };

  /** False: the wait was over already. */
  #end(): boolean {
    if (this.#over) return false;
    this.#over = true;
    this.#cancelDeadline?.();
    this.#cancelConnect?.();
    this.#cancelBudget?.();
    this.#stopStages?.();
    this.#wait.signal?.removeEventListener('abort', this.#leave);
    return true;
  }
}

async function giveUp({ deps, correlator }: WaitParts, { rpcId, command }: Wait): Promise<Invocation> {
  const { commands, waiters } = deps.backend;
  correlator.forget(rpcId);
  await waiters.remove(command, rpcId);
  const [now] = await commands.get([command]);
  const mark = now ? null : await commands.mark(command);
  const present = now ?? (mark ? endedByMark(command, mark) : command);
  const result = isTerminal(present) ? await commands.result(present) : null;
  return { kind: isTerminal(present) ? 'outcome' : 'pending', command: present, rpcId, result };
}
