/**
 * The calls of one slot group: one after the other, without waiting for answers. After a refusal or a broken call none
 * follows until it is known what Redis has of each log, and the logs have what was decided meanwhile.
 */
import type { Clock, Log } from '../../core/ports.ts';
import type { Client } from '../redis/client.ts';
import { judge, readFence } from './fence.ts';
import type { Keys } from './keys.ts';
import type { PartitionLog } from './partition-log.ts';
import { hasMemory, runTurn, setFence, type Append, type TurnCall } from './scripts.ts';
import type { Batch } from './tail.ts';

/** How long after a failed attempt to settle the next one follows, in milliseconds. */
const RETRY_MS = 100;
/** The most characters that one call appends when a log is filled again. */
const REFILL_CHARS = 256 * 1024;

/** After how many characters of batches it is looked whether Redis has memory for more. */
const PROBED_CHARS = 256 * 1024;

/** What one turn sends to a group. `checks`: logs without a new batch on which mail depends. */
export type GroupTurn = {
  readonly turn: number;
  readonly batches: readonly (readonly [PartitionLog, Batch])[];
  readonly checks: readonly PartitionLog[];
  /** Channels and messages, one after the other. */
  readonly mail: readonly string[];
};

type SlotGroupOptions = {
  readonly client: Client;
  readonly keys: Keys;
  readonly number: number;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Log;
  /** Called when logs have more than before. */
  readonly onRecorded: () => void;
  /** Called when another process owns a partition of the group, before its log knows. */
  readonly onLost: (log: PartitionLog) => void;
  /** Called when Redis has no memory for more, and when it has again. */
  readonly onFull: () => void;
  /** Publishes mail of a call that failed, once everything up to its turn is recorded. */
  readonly publishLater: (turn: number, mail: readonly string[]) => void;
};

/** What was found of a log, and the text of its fence. */
type Found = { readonly log: PartitionLog; readonly text: string | null };

export class SlotGroup {
  readonly #options: SlotGroupOptions;
  readonly #logs = new Set<PartitionLog>();
  #isSettling = false;
  #isClosed = false;
  /** Whether Redis knows the script. */
  #isKnown = false;
  #unanswered = 0;
  #onIdle: (() => void) | null = null;
  #unpublished: GroupTurn[] = [];
  #isFull = false;
  #isProbing = false;
  /** The characters that were sent since it was looked whether Redis has memory. */
  #unprobedChars = 0;

  constructor(options: SlotGroupOptions) {
    this.#options = options;
  }

  /** Whether calls are sent in the turn that made them. */
  get isRunning(): boolean {
    return !this.#isSettling && !this.#isClosed;
  }

  /** Whether the Redis of the group has no memory for more: only what needs no room may be decided. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Looks whether Redis has memory for more. What it cannot say stays as it was. Never rejects. */
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

  /** Sends what a turn decided. While the group settles, the batches follow when it has. */
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

  /** Finds out what Redis has of the logs. To be called if it may be less than was confirmed, after a failover. */
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

  /** Resolves with whether all logs have all that was decided, so that calls may follow. */
  async #trySettle(isFirst: boolean): Promise<boolean> {
    const { log, onRecorded, publishLater } = this.#options;
    try {
      if (this.#unanswered > 0) await new Promise<void>((idle) => (this.#onIdle = idle));
      this.#onIdle = null;
      for (const found of await this.#find()) if (!(await this.#goOn(found))) return false;
      for (const one of this.#logs) if (!(await this.#refill(one))) return false;
      // What was decided while the last log was filled is sent now: from here on nothing waits.
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

  async #find(): Promise<readonly Found[]> {
    const { client, keys, number } = this.#options;
    const logs = [...this.#logs];
    const [map, ...fences] = await client.mget(keys.ofGroup(number).map, ...logs.map((log) => log.keys.fence));
    // Under another division of users none of these partitions means what it meant.
    if (typeof map === 'string' && map !== keys.map) logs.forEach((log) => this.#lose(log));
    return logs.flatMap((log, i) => (this.#logs.has(log) ? [{ log, text: fences[i] ?? null }] : []));
  }

  /** Resolves with false if the fence has changed since it was read. */
  async #goOn({ log, text }: Found): Promise<boolean> {
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

  /** Appends what the log lacks. Resolves with false if that was refused. */
  async #refill(log: PartitionLog): Promise<boolean> {
    for (;;) {
      const batches = firstOf(log.tail.after(log.tail.confirmed) ?? []);
      const last = batches.at(-1);
      if (!last || !this.#logs.has(log)) return true;
      // Each append expects the fence that the one before it sets, so each has a call of its own.
      const calls = batches.map((batch) => runTurn(this.#options.client, this.#callOf([log.append(batch)]), 'text'));
      const done = await Promise.allSettled(calls);
      if (!done.every((one) => one.status === 'fulfilled' && one.value)) return false;
      log.confirm(last.number);
      this.#options.onRecorded();
    }
  }

  #lose(log: PartitionLog): void {
    this.#logs.delete(log);
    // It may depend on what is lost. Each kind of mail is repeated by whoever needs it.
    this.#unpublished = [];
    this.#options.onLost(log);
  }
}

const NOTHING = { checks: [], mail: [] } as const;

/** Returns the first batches that fit into one round of calls. */
function firstOf(batches: readonly Batch[]): readonly Batch[] {
  let chars = 0;
  const end = batches.findIndex(({ text }) => (chars += text.length) > REFILL_CHARS);
  return end < 0 ? batches : batches.slice(0, Math.max(1, end));
}

function charsOf(appends: readonly Append[]): number {
  return appends.reduce((sum, { text }) => sum + text.length, 0);
}
