/**
 * One caller's wait on a command, from the admission to the answer, and all waits on this node: the correlator matches
 * replies to them, they are registered again after a loss, and they are answered when the node closes.
 */
import { ChurnMap } from '../collections.ts';
import type { DeliveryActs } from '../commands/acts.ts';
import {
  END_MESSAGES,
  endedByMark,
  isTerminal,
  type Command,
  type CommandCaller,
  type Reply,
  type WaitFor,
} from '../commands/command.ts';
import type { Deps } from '../deps.ts';
import { CallboardError } from '../errors.ts';
import { commandKeyText, type CommandKey } from '../ids.ts';
import type { JsonText } from '../json.ts';
import { RELEASE_MS } from '../limits.ts';
import { thenDo, type MaybePromise } from '../maybe-promise.ts';
import type { Metrics } from '../metrics.ts';
import type { Cancel } from '../ports.ts';
import type { Holdings } from '../shares/shares.ts';
import { commandTraceFields } from '../trace-context.ts';
import { invocation, type CallerSide, type Invocation, type OnStage, type ReportedProgress } from './call.ts';

export type WaitParts = { readonly deps: Deps; readonly correlator: Correlator; readonly acts: DeliveryActs };

type NewWait = {
  readonly waitFor: WaitFor;
  /** The caller's own budget in milliseconds; null: as long as the command lives. */
  readonly withinMs: number | null;
  readonly holdings: Holdings;
  /** The waiting caller, as the wait's record names it. */
  readonly recordedAs: CommandCaller;
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
 * command's deadline, whichever comes first. Each of these removes the waiter. Only the command's deadlines touch the
 * command: at the connect deadline and at the deadline it is settled. The object exists from before the store is asked
 * until the caller is answered.
 */
export class Wait {
  readonly rpcId: string;
  readonly waitFor: WaitFor;
  readonly withinMs: number | null;
  /** The amounts of bounded resources that the waiting requester holds. */
  readonly holdings: Holdings;
  readonly #recordedAs: CommandCaller;
  readonly #parts: WaitParts;
  readonly #caller: CallerSide;
  /** The command that is waited for; null until `begin`. */
  #command: Command | null = null;
  /** When the wait began, in epoch milliseconds. It stays the same if the wait is registered again. */
  #since = 0;
  #until: number | null = null;
  #reply: Reply | null = null;
  #resolve: ((invocation: Invocation | Promise<Invocation>) => void) | null = null;
  #isRecorded = false;
  /** Cancels the timer of the deadline, or after the deadline the timer of the grace period. */
  #cancelDeadline: Cancel | null = null;
  #cancelConnect: Cancel | null = null;
  #cancelBudget: Cancel | null = null;
  #updates: Updates | null = null;

  /** Registers the wait, so that no reply can come too early. The caller must have checked that there is room. */
  constructor(parts: WaitParts, { waitFor, withinMs, holdings, recordedAs, caller }: NewWait) {
    this.rpcId = parts.deps.crypto.randomId();
    this.waitFor = waitFor;
    this.withinMs = withinMs;
    this.holdings = holdings;
    this.#recordedAs = recordedAs;
    this.#parts = parts;
    this.#caller = caller;
    parts.correlator.add(this);
  }

  /** The wait as it is registered in the store; null until it is registered. */
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
   * If the caller requests progress, subscribes to a command before its admission, and resolves when the reports of
   * other nodes arrive. So no report is missed because it was made before the subscription.
   */
  listen(key: CommandKey): MaybePromise<void> {
    if (!this.#caller.onProgress) return;
    const { deps } = this.#parts;
    this.#updates = createUpdates(deps, key, this.#caller);
    return deps.backend.bus.confirmed(key);
  }

  /** Begins to wait, after the store has registered the waiter. Call it once. */
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

  /** The store has the command now. Once that is recorded, a store that does not know it has lost it. */
  found(): void {
    const { backend } = this.#parts.deps;
    if (backend.onRecord) backend.onRecord(() => void (this.#isRecorded = true));
    else this.#isRecorded = true;
  }

  /** Refuses to answer, because the command was never recorded. */
  refuse(): void {
    this.#end()?.(Promise.reject(neverRecorded()));
  }

  /** Called at most once. The reply may come before the store has answered that the waiter is registered. */
  resolve(reply: Reply): void {
    if (!this.#command) this.#reply = reply;
    // A store may answer the last report and the end in one turn, and the reply then comes before that report.
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
    this.#updates?.stop();
    this.#caller.signal?.removeEventListener('abort', this.#leave);
    return resolve;
  }

  /** Removes the waiter, and answers with the record as it is now. */
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
async function readPresent(
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
 * Returns the refusal of a wait for a command that the store did not record, because another process decides about its
 * user now. Nothing was acknowledged, and an equal call with the same id is admitted.
 */
function neverRecorded(): CallboardError {
  return new CallboardError('store_unavailable', 'The store has not recorded the command.', { retryAfterMs: 1_000 });
}

// Matches replies to the callers that wait on this node.

/** A wait of a caller of this node, with all that is needed to register it again. */
type KnownWait = {
  readonly rpcId: string;
  /** The last known state of the command. */
  readonly command: Command;
  /** Whether the store has recorded the command for certain. */
  readonly isRecorded: boolean;
  readonly caller: CommandCaller;
  readonly waitFor: WaitFor;
  /** When the wait began, in epoch milliseconds. */
  readonly since: number;
  /** When the caller's own budget ends, in epoch milliseconds; null: as long as the command lives. */
  readonly until: number | null;
};

/** Resolves this node's waiters: each at most once, by the first reply. */
export class Correlator {
  readonly #waiting = new ChurnMap<string, Wait>();
  readonly #metrics: Metrics;
  #released = false;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  /**
   * Registers a wait, before the store is asked, so that no reply can arrive too early. Until the wait is resolved or
   * forgotten, it counts in the user's share `waits` (see `shares/shares.ts`). The caller of this method must have
   * checked that there is room.
   */
  add(waiting: Wait): void {
    waiting.holdings.take('waits', 1);
    this.#waiting.set(waiting.rpcId, waiting);
  }

  /** Returns the waits that are, or were, registered in the store. */
  known(): readonly KnownWait[] {
    return [...this.#waiting.values()].flatMap(({ known }) => known ?? []);
  }

  /** Removes a wait. Idempotent. */
  forget(rpcId: string): void {
    this.#take(rpcId);
  }

  /** Notes that the store has the command of a wait. */
  found(rpcId: string): void {
    this.#waiting.get(rpcId)?.found();
  }

  /** Refuses a wait whose command was never recorded. */
  refuse(rpcId: string): void {
    this.#take(rpcId)?.refuse();
  }

  resolve(reply: Reply): void {
    const waiting = this.#take(reply.rpcId);
    if (!waiting) return this.#metrics.count('replies_dropped');
    waiting.resolve(reply);
  }

  #take(rpcId: string): Wait | undefined {
    const waiting = this.#waiting.get(rpcId);
    if (!waiting) return undefined;
    this.#waiting.delete(rpcId);
    waiting.holdings.release('waits', 1);
    return waiting;
  }

  /** Marks the node as closing: new callers are then answered at once instead of waiting. Cannot be undone. */
  release(): void {
    this.#released = true;
  }

  get released(): boolean {
    return this.#released;
  }

  /** When the oldest of the `known` waits began, in epoch milliseconds; null if there is none. */
  get oldestSince(): number | null {
    let oldest: number | null = null;
    for (const { since } of this.known()) if (oldest === null || since < oldest) oldest = since;
    return oldest;
  }

  get size(): number {
    return this.#waiting.size;
  }
}

// Sends a caller the stages that its command reaches, and the progress that the client reports.

/** The most reports of progress that are kept until the wait begins. Further ones count as missed. */
const EARLY_REPORTS = 100;

type Updates = {
  /** Begins to call the caller's functions, with the command as it is now. */
  begin(command: Command): void;
  /** Idempotent. */
  stop(): void;
};

/**
 * Subscribes to the changes of a command. After `begin` it calls `onStage` with the present stage of the live command,
 * and with each stage that it reaches before its end, and `onProgress` with each report of progress, also with those
 * that arrived before. It subscribes before it reads, so that the last change is not missed. If a read fails, that
 * stage is skipped.
 */
function createUpdates(deps: Deps, key: CommandKey, { onStage, onProgress }: CallerSide): Updates {
  const { commandId } = key;
  let stages: ReturnType<typeof createStageReader> | undefined;
  let early: ReportedProgress[] | null = [];
  let lastNumber = 0;
  const report = (progress: ReportedProgress): void => {
    const { number } = progress;
    // Nodes and stores may change the order. A report that comes after a later one counts as missed.
    if (number !== null && number <= lastNumber) return;
    lastNumber = number ?? lastNumber;
    onProgress?.(progress);
  };
  const stop = deps.backend.bus.subscribe(`command:${commandKeyText(key)}`, ({ progress: payload, number = null }) => {
    if (payload === null) return stages?.read();
    if (early === null) return report({ commandId, payload, number });
    if (early.length < EARLY_REPORTS) early.push({ commandId, payload, number });
  });
  return {
    begin(command) {
      stages = onStage && createStageReader(deps, command, onStage);
      early?.forEach(report);
      early = null;
      stages?.read();
    },
    stop() {
      stages?.stop();
      stop();
    },
  };
}

function createStageReader({ backend }: Deps, command: Command, onStage: OnStage) {
  const { commands } = backend;
  let last: Command | null = null;
  let over = false;
  const tell = (now: Command | undefined | null): void => {
    if (over || !now || isTerminal(now) || now.stage === last?.stage || now.version < (last?.version ?? 0)) return;
    last = now;
    onStage(now);
  };
  const read = async (): Promise<void> => thenDo(commands.get([command]), ([now]) => tell(now));
  tell(command);
  return {
    read: (): void => void read().catch(() => {}),
    stop: (): void => void (over = true),
  };
}

// Registers the waits of this node again after the node or its store lost them.

type Parts = Pick<WaitParts, 'deps' | 'correlator'>;

/**
 * Registers the waits of this node's callers for the commands of these users again, because the store may have lost
 * them. A wait whose stage has been reached since is resolved. If the store no longer knows the command, the caller is
 * answered that its outcome is unknown, and refused if the store had not recorded it. Never rejects: a wait that cannot be registered now ends at the deadline of its
 * command.
 */
export async function reattachWaits(parts: Parts, concerns: (userId: string) => boolean): Promise<void> {
  const waits = parts.correlator.known().filter(({ command }) => concerns(command.userId));
  await Promise.all(
    waits.map((wait) =>
      reattach(parts, wait).catch((error: unknown) => {
        const fields = { err: error, ...commandTraceFields(wait.command) };
        parts.deps.log.warn(fields, 'could not register a wait again; it ends at the deadline of its command');
      }),
    ),
  );
}

async function reattach({ deps, correlator }: Parts, wait: KnownWait): Promise<void> {
  const { rpcId, command, isRecorded, caller, waitFor, until } = wait;
  const now = deps.clock.now();
  const withinMs = until === null ? null : Math.max(0, until - now);
  const waiter = { rpcId, caller, callerNodeId: deps.nodeId, waitFor, withinMs };
  const attached = await deps.backend.waiters.attach(command, waiter);
  const end = (present: Command, result: JsonText | null = null): void =>
    correlator.resolve({ rpcId, command: present, result });
  if (attached.kind === 'satisfied') end(attached.command, attached.result);
  if (attached.kind === 'ended') end(endedByMark(command, attached.mark));
  if (attached.kind === 'waiting') correlator.found(rpcId);
  if (attached.kind !== 'unknown') return;
  if (isRecorded) end(forgotten(command, now));
  else correlator.refuse(rpcId);
}

/**
 * Returns the end of a command that the store forgot. It is unknown how far the command came after it was last seen,
 * and whether it ran.
 */
function forgotten(command: Command, now: number): Command {
  return {
    ...command,
    version: command.version + 1,
    stage: 'terminal',
    outcome: 'outcome_unknown',
    execution: 'may_have_run',
    error: { code: 'store_lost', message: END_MESSAGES.store_lost ?? 'store_lost' },
    reason: 'store_lost',
    terminalAt: now,
  };
}

// Answers all callers that wait on this node when it closes. Their commands continue.

/**
 * Ends all waits on this node, which shuts down while the commands live on. Each caller is answered with the present
 * state of its command (`pending` if it has not ended), and its waiter is removed. Later callers are answered in the
 * same way at once. If the store does not answer within RELEASE_MS, callers get the last known state, if it was recorded. Never rejects.
 */
export async function releaseWaits(parts: Parts): Promise<void> {
  const { deps, correlator } = parts;
  correlator.release();
  const waits = correlator.known();
  if (waits.length === 0) return;
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const cancel = deps.clock.after(RELEASE_MS, resolve);
  await Promise.race([late, Promise.all(waits.map((wait) => release(parts, wait)))]);
  cancel();
  for (const wait of correlator.known()) answerLastKnown(correlator, wait);
}

async function release({ deps, correlator }: Parts, wait: KnownWait): Promise<void> {
  try {
    correlator.resolve(await readPresent(deps, wait));
  } catch (error) {
    const fields = { err: error, ...commandTraceFields(wait.command) };
    deps.log.warn(fields, 'could not read a command; its caller gets the last known state');
    answerLastKnown(correlator, wait);
  }
}

/** Answers with the last known state. One that was never recorded may not be shown. */
function answerLastKnown(correlator: Correlator, { rpcId, command, isRecorded }: KnownWait): void {
  if (isRecorded) correlator.resolve({ rpcId, command, result: null });
  else correlator.refuse(rpcId);
}
