/**
 * Sends the calls of one slot group to Redis, one after another, without waiting for answers.
 *
 * After a refused or failed call the group settles: it reads how much of each log Redis has, and appends what is
 * missing. No other call is sent until then.
 */
import type { Clock, Log } from '../../core/ports.ts';
import type { Client } from '../redis/client.ts';
import { judge, readFence } from './fence.ts';
import type { Keys } from './keys.ts';
import type { PartitionLog } from './partition-log.ts';
import { hasMemory, runTurn, setFence, type Append, type TurnCall } from './scripts.ts';
import type { Batch } from './tail.ts';

/** The delay between two attempts to settle, in milliseconds. */
const RETRY_MS = 100;
/** The most characters that one round of calls appends when missing batches are appended again. */
const REFILL_CHARS = 256 * 1024;

/** The number of sent characters after which the group checks whether Redis has memory left. */
const PROBED_CHARS = 256 * 1024;

/** What one turn sends to a group. `checks`: the logs without a new batch that some mail depends on. */
export type GroupTurn = {
  readonly turn: number;
  readonly batches: readonly (readonly [PartitionLog, Batch])[];
  readonly checks: readonly PartitionLog[];
  /** Channels and messages in pairs. */
  readonly mail: readonly string[];
};

type SlotGroupOptions = {
  readonly client: Client;
  readonly keys: Keys;
  readonly number: number;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Log;
  /** Called when Redis has confirmed more batches. */
  readonly onRecorded: () => void;
  /** Called when another process is found to own a partition of the group, before `log.lose`. */
  readonly onLost: (log: PartitionLog) => void;
  /** Called when Redis has run out of memory, and when it has memory again. */
  readonly onFull: () => void;
  /** Publishes the mail of a failed call, once everything up to its turn is recorded. */
  readonly publishLater: (turn: number, mail: readonly string[]) => void;
};

/** A log, with the text of its fence in Redis. */
type LogFence = { readonly log: PartitionLog; readonly text: string | null };

export class SlotGroup {
  readonly #options: SlotGroupOptions;
  readonly #logs = new Set<PartitionLog>();
  #isSettling = false;
  #isClosed = false;
  /** Whether Redis has the script in its cache. */
  #isKnown = false;
  #unanswered = 0;
  #onIdle: (() => void) | null = null;
  #unpublished: GroupTurn[] = [];
  #isFull = false;
  #isProbing = false;
  /** The number of characters sent since the last check of Redis' memory. */
  #unprobedChars = 0;

  constructor(options: SlotGroupOptions) {
    this.#options = options;
  }

  /** Whether calls are sent at once. They are not while the group settles. */
  get isRunning(): boolean {
    return !this.#isSettling && !this.#isClosed;
  }

  /** Whether the Redis of the group has no memory left, so that only acts that need no room may be decided. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Checks whether Redis has memory left. If Redis does not answer, the former result stays. Never rejects. */
  async probe(): Promise<void> {
    if (this.#isProbing || this.#isClosed) return;
    this.#isProbing = true;
    this.#unprobedChars = 0;
    const { client, keys, number } = this.#options;
    const isFull = await hasMemory(client, keys.ofGroup(number).map).then(
      (has) => !has,
      () => this.#isFull,
    );
    this.#isProbing = false;
    if (isFull !== this.#isFull) this.#setFull(isFull);
  }

  #setFull(isFull: boolean): void {
    this.#isFull = isFull;
    for (const log of this.#logs) log.judgeRoom();
    this.#options.onFull();
  }

  add(log: PartitionLog): void {
    this.#logs.add(log);
  }

  remove(log: PartitionLog): void {
    this.#logs.delete(log);
  }

  /** Sends the batches and mail of a turn. While the group settles, sends nothing: settling appends the batches. */
  send(turn: GroupTurn): void {
    if (!this.isRunning) {
      if (turn.mail.length > 0) this.#unpublished.push(turn);
      return;
    }
    const appends = turn.batches.map(([log, batch]) => log.append(batch));
    this.#unprobedChars += charsOf(appends);
    if (this.#unprobedChars > PROBED_CHARS) void this.probe();
    const call = this.#callOf(appends, turn);
    this.#unanswered++;
    runTurn(this.#options.client, call, this.#isKnown ? 'sha' : 'text').then(
      (isDone) => this.#answered(turn, isDone),
      (error: unknown) => {
        if (this.isRunning) this.#options.log.warn({ err: error }, 'facts are not recorded: the log does not answer');
        this.#answered(turn, false);
      },
    );
  }

  #callOf(appends: readonly Append[], { checks, mail }: Pick<GroupTurn, 'checks' | 'mail'> = NOTHING): TurnCall {
    const { keys, number } = this.#options;
    const expected = checks.map((log) => ({ key: log.keys.fence, fence: log.expected }));
    return { mapKey: keys.ofGroup(number).map, map: keys.map, appends, checks: expected, mail };
  }

  /**
   * Reads how much of the logs Redis has, and appends the rest. Call it if Redis may have lost confirmed data, for
   * example after a failover.
   */
  settle(): void {
    if (!this.isRunning || this.#logs.size === 0) return;
    this.#isSettling = true;
    this.#isKnown = false;
    void this.#untilSettled();
  }

  close(): void {
    this.#isClosed = true;
    this.#unpublished = [];
  }

  #answered(turn: GroupTurn, isDone: boolean): void {
    this.#unanswered--;
    if (isDone) {
      this.#isKnown ||= this.isRunning;
      for (const [log, { number }] of turn.batches) log.confirm(number);
      this.#options.onRecorded();
    } else {
      if (turn.mail.length > 0) this.#unpublished.push(turn);
      this.settle();
    }
    if (this.#unanswered === 0) this.#onIdle?.();
  }

  async #untilSettled(): Promise<void> {
    let isFirst = true;
    while (!this.#isClosed && !(await this.#trySettle(isFirst))) {
      isFirst = false;
      await new Promise<void>((resolve) => this.#options.clock.after(RETRY_MS, resolve));
    }
  }

  /** Resolves with whether Redis has all batches of all logs, so that calls may be sent again. */
  async #trySettle(isFirst: boolean): Promise<boolean> {
    const { log, onRecorded, publishLater } = this.#options;
    try {
      if (this.#unanswered > 0) await new Promise<void>((idle) => (this.#onIdle = idle));
      this.#onIdle = null;
      for (const found of await this.#find()) if (!(await this.#goOn(found))) return false;
      for (const one of this.#logs) if (!(await this.#refill(one))) return false;
      // Batches that were decided while the last log was refilled are appended by another pass.
      for (const one of this.#logs) if (one.tail.unconfirmedChars > 0) return await this.#trySettle(false);
    } catch (error) {
      if (isFirst) log.warn({ err: error }, 'the logs of partitions are out of reach: answers wait');
      return false;
    }
    this.#isSettling = false;
    const unpublished = this.#unpublished.splice(0);
    onRecorded();
    for (const { turn, mail } of unpublished) publishLater(turn, mail);
    return true;
  }

  async #find(): Promise<readonly LogFence[]> {
    const { client, keys, number } = this.#options;
    const logs = [...this.#logs];
    const [map, ...fences] = await client.mget(keys.ofGroup(number).map, ...logs.map((log) => log.keys.fence));
    // Users are divided differently now, so the partitions of this process no longer contain the same users.
    if (typeof map === 'string' && map !== keys.map) logs.forEach((log) => this.#lose(log));
    return logs.flatMap((log, i) => (this.#logs.has(log) ? [{ log, text: fences[i] ?? null }] : []));
  }

  /**
   * Compares the fence in Redis with the log, and prepares the log for appending. Resolves with false if the attempt
   * must be repeated, for example because the fence has changed since it was read.
   */
  async #goOn({ log, text }: LogFence): Promise<boolean> {
    const { client, keys } = this.#options;
    const found = readFence(text);
    const own = log.fence;
    const state = judge(found, own, log.triedEpoch);
    if (state.kind === 'lost') {
      this.#lose(log);
      return true;
    }
    if (state.kind === 'whole') {
      log.confirm(own.number);
      return true;
    }
    const { number } = state;
    const epoch = Math.max(own.epoch, found?.epoch ?? 0) + 1;
    const next = { process: own.process, epoch, number };
    log.triedEpoch = epoch;
    if (!(await setFence(client, { keys: log.keys, map: keys.map, found: text, next }))) return false;
    if (number < log.tail.confirmed)
      this.#options.log.warn(
        { partition: log.partition, number },
        'the log has lost what it had confirmed: it follows',
      );
    log.resume(epoch, number);
    return log.tail.after(number) !== null || log.beginAnew();
  }

  /** Appends the batches that Redis lacks. Resolves with false if an append was refused. */
  async #refill(log: PartitionLog): Promise<boolean> {
    for (;;) {
      const batches = firstOf(log.tail.after(log.tail.confirmed) ?? []);
      const last = batches.at(-1);
      if (!last || !this.#logs.has(log)) return true;
      // Each append expects the fence that the previous one sets, so each is a call of its own.
      const calls = batches.map((batch) => runTurn(this.#options.client, this.#callOf([log.append(batch)]), 'text'));
      const done = await Promise.allSettled(calls);
      if (!done.every((one) => one.status === 'fulfilled' && one.value)) return false;
      log.confirm(last.number);
      this.#options.onRecorded();
    }
  }

  #lose(log: PartitionLog): void {
    this.#logs.delete(log);
    // This mail may depend on lost facts. It may be dropped, because the sender of each kind of mail repeats it if
    // necessary.
    this.#unpublished = [];
    this.#options.onLost(log);
  }
}

const NOTHING = { checks: [], mail: [] } as const;

/** Returns the first batches that fit into REFILL_CHARS, but at least one. */
function firstOf(batches: readonly Batch[]): readonly Batch[] {
  let chars = 0;
  const end = batches.findIndex(({ text }) => (chars += text.length) > REFILL_CHARS);
  return end < 0 ? batches : batches.slice(0, Math.max(1, end));
}

function charsOf(appends: readonly Append[]): number {
  return appends.reduce((sum, { text }) => sum + text.length, 0);
}
