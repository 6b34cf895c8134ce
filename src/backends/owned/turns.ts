/**
 * Appends the decisions of each turn of the event loop to the logs of their partitions, together with the mail that
 * depends on them, and holds back everything that leaves the process until they are recorded.
 */
import { CallboardError } from '../../core/errors.ts';
import type { Clock, EventLoop, Log } from '../../core/ports.ts';
import { Gate, type Holder } from '../journal/gate.ts';
import type { Client } from '../redis/client.ts';
import type { Keys } from './keys.ts';
import { PartitionLog, type PartitionLogOptions, type TurnsOfLog } from './partition-log.ts';
import { publish } from './scripts.ts';
import { SlotGroup, type GroupTurn } from './slot-group.ts';

/**
 * A message of this turn. `after`: the partitions whose facts, up to and including this turn, must be recorded before
 * the message is sent; `all`: all partitions of this process.
 */
export type OutgoingMail = {
  readonly process: string;
  readonly text: string;
  readonly after: ReadonlySet<number> | 'all';
};

type TurnsOptions = {
  readonly client: Client;
  readonly keys: Keys;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns the messages of a turn. Called at the end of the turn. */
  readonly takeMail?: () => readonly OutgoingMail[];
  readonly loop: Pick<EventLoop, 'atTurnEnd'>;
  /**
   * The total cost of all logs, as RecordRoom counts it, above which the longest log gets a snapshot. Default:
   * LOGS_COST.
   */
  readonly logsCost?: number | undefined;
};

/**
 * Bounds what a surviving process must read of a dead one, besides snapshots, and therefore the duration of a takeover.
 * It is the cost of about 240,000 calls, which a takeover restores in about five seconds. In Redis they take about half
 * as many bytes.
 */
const LOGS_COST = 512 * 1024 * 1024;
/** The logs are measured again whenever this fraction of that cost has been appended, in characters. */
const MEASURED_PART = 1 / 1024;

/** What a turn sends to one slot group, while it is being collected. */
type Collected = { [M in keyof Omit<GroupTurn, 'turn'>]: GroupTurn[M][number][] };

export class Turns {
  readonly #options: TurnsOptions;
  readonly #gate = new Gate();
  readonly #groups: readonly SlotGroup[];
  readonly #logs = new Map<number, PartitionLog>();
  /** The logs with batches that Redis has not confirmed. */
  readonly #unconfirmed = new Set<PartitionLog>();
  /** The logs with facts that were not sent yet. */
  readonly #woken = new Set<PartitionLog>();
  readonly #ofLog: TurnsOfLog;
  /** The number of the last turn that sent something. */
  #last = 0;
  #isPlanned = false;
  /** The logs with a snapshot that is being written. */
  readonly #snapshots = new Set<PartitionLog>();
  /** The number of characters appended since the logs were last measured. */
  #addedChars = 0;
  #wasFull = false;
  #isClosed = false;
  /** Calls that wait until Redis may have confirmed more. */
  #confirming: (() => void)[] = [];

  constructor(options: TurnsOptions) {
    const { client, keys, clock, log } = options;
    this.#options = options;
    const shared = {
      client,
      keys,
      clock,
      log,
      onRecorded: () => this.#release(),
      onLost: (lost: PartitionLog) => this.#lose(lost),
      onFull: () => this.#noteFull(),
      publishLater: (turn: number, mail: readonly string[]) => this.#gate.pass(turn, () => this.#publish(mail)),
    };
    this.#groups = Array.from({ length: keys.division.groups }, (_, number) => new SlotGroup({ ...shared, number }));
    this.#ofLog = {
      client,
      clock,
      flush: () => this.flush(),
      noteUnconfirmed: (of) => void this.#unconfirmed.add(of),
      recorded: () => this.recorded(),
      isFull: (of) => this.#groupOf(of.partition).isFull,
      isCrowded: (of) => this.#isCrowded(of),
      noteSnapshot: (of, isWritten) => void (isWritten ? this.#snapshots.add(of) : this.#snapshots.delete(of)),
    };
  }

  /** Opens the log of a partition that this process owns, for appending. */
  open(options: PartitionLogOptions): PartitionLog {
    const log = new PartitionLog(options, this.#ofLog);
    this.#logs.set(log.partition, log);
    this.#groupOf(log.partition).add(log);
    return log;
  }

  /** Stops appending to a log, because its partition was given away. All its batches must be confirmed. */
  drop(log: PartitionLog): void {
    this.#forget(log);
    this.#release();
  }

  /** Notes that something was decided in the partition of this log, so that `flush` runs at the end of the turn. */
  wake(log: PartitionLog): void {
    this.#woken.add(log);
    this.plan();
  }

  /** Schedules `flush` for the end of this turn. */
  plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    this.#options.loop.atTurnEnd(() => this.flush());
  }

  /**
   * Calls `run` once everything decided so far is recorded; at once if it already is. Runs calls in order. `holder`:
   * see `Gate.pass`.
   */
  onRecord(run: () => void, holder?: Holder): void {
    this.#gate.pass(this.#last + (this.#woken.size > 0 ? 1 : 0), run, holder);
  }

  /** Resolves once everything decided so far is recorded. Rejects if a part of it may be lost. */
  recorded(): Promise<void> {
    return new Promise((resolve, reject) =>
      this.onRecord(resolve, {
        destroy: () => reject(new CallboardError('store_unavailable', 'Another relay owns a partition of this one.')),
      }),
    );
  }

  /**
   * Resolves once Redis has confirmed everything decided so far in one log. After a failover this may take longer than
   * `recorded`, because confirmed batches may have to be appended again. It resolves as well if the log is lost or this
   * object is closed; the caller must check the log.
   */
  async confirmed(log: PartitionLog): Promise<void> {
    while (!this.#isClosed && !log.isLost && !log.isConfirmed)
      await new Promise<void>((resolve) => this.#confirming.push(resolve));
  }

  /** Sends the batches and the mail of this turn. */
  flush(): void {
    this.#isPlanned = false;
    const mail = this.#options.takeMail?.() ?? [];
    if (this.#woken.size === 0 && mail.length === 0) return;
    const turn = ++this.#last;
    const collected = new Map<SlotGroup, Collected>();
    for (const log of this.#woken) {
      const batch = log.take(turn);
      if (!batch) continue;
      this.#addedChars += batch.text.length;
      this.#collect(collected, log).batches.push([log, batch]);
    }
    const { logsCost = LOGS_COST } = this.#options;
    if (this.#addedChars > logsCost * MEASURED_PART) this.#keepLogsShort(logsCost);
    this.#woken.clear();
    for (const one of mail) this.#address(collected, one, turn);
    for (const [group, found] of collected) group.send({ turn, ...found });
    this.#release();
  }

  /** Reads again how much of each log Redis has. */
  settle(): void {
    for (const group of this.#groups) group.settle();
  }

  /** Whether some Redis has no memory left, so that only acts that need no room may be decided. */
  get isFull(): boolean {
    return this.#groups.some(({ isFull }) => isFull);
  }

  /** Checks whether each Redis has memory left. Never rejects. */
  async probe(): Promise<void> {
    await Promise.all(this.#groups.map((group) => group.probe()));
  }

  /** Drops everything that is held back, because this process may no longer own the partitions that it depends on. */
  loseWaiting(): void {
    this.#gate.lose();
  }

  /** Stops sending. Whatever is held back is dropped. */
  close(): void {
    this.#isClosed = true;
    for (const group of this.#groups) group.close();
    this.#gate.lose();
    this.#gate.close();
    for (const look of this.#confirming.splice(0)) look();
  }

  #keepLogsShort(logsCost: number): void {
    this.#addedChars = 0;
    let [cost, longest]: [number, PartitionLog | null] = [0, null];
    for (const log of this.#logs.values()) {
      cost += log.uncovered;
      if (log.uncovered > (longest?.uncovered ?? 0)) longest = log;
    }
    if (cost > logsCost) longest?.wantSnapshot();
  }

  /**
   * If Redis has no memory left, only one snapshot is written at a time, because each one needs memory until it
   * replaces older data.
   */
  #isCrowded(log: PartitionLog): boolean {
    const [first = log] = this.#snapshots;
    return this.#groupOf(log.partition).isFull && first !== log;
  }

  #noteFull(): void {
    const { isFull } = this;
    if (isFull === this.#wasFull) return;
    this.#wasFull = isFull;
    const { log } = this.#options;
    if (isFull) log.error({}, 'Redis has no memory for more: nothing new is admitted');
    else log.info({}, 'Redis has memory again');
  }

  #groupOf(partition: number): SlotGroup {
    const group = this.#groups[this.#options.keys.groupOf(partition)];
    if (!group) throw new Error(`the partition ${partition} is in no slot group`);
    return group;
  }

  #collect(collected: Map<SlotGroup, Collected>, { partition }: PartitionLog): Collected {
    const group = this.#groupOf(partition);
    const known = collected.get(group);
    if (known) return known;
    const made: Collected = { batches: [], checks: [], mail: [] };
    collected.set(group, made);
    return made;
  }

  /**
   * Adds a message to the call that records what the message depends on. If that takes several calls, the message is
   * published after them.
   */
  #address(collected: Map<SlotGroup, Collected>, { process, text, after }: OutgoingMail, turn: number): void {
    const logs = this.#dependencies(after);
    // A partition that the message depends on is lost, so the message must not be sent.
    if (!logs) return;
    const { keys } = this.#options;
    const plain = (): void => this.#publish([keys.mailOf(process, keys.mailGroupOf(process)), text]);
    const [first, ...others] = logs;
    if (!first) return plain();
    const group = this.#groupOf(first.partition);
    if (!group.isRunning || others.some(({ partition }) => this.#groupOf(partition) !== group))
      return this.#gate.pass(turn, plain);
    const call = this.#collect(collected, first);
    for (const log of logs)
      if (!call.checks.includes(log) && !call.batches.some(([appended]) => appended === log)) call.checks.push(log);
    call.mail.push(keys.mailOf(process, keys.groupOf(first.partition)), text);
  }

  #dependencies(after: OutgoingMail['after']): readonly PartitionLog[] | null {
    // Recorded facts need no check: if one of them is lost, this process is told.
    if (after === 'all') return [...this.#unconfirmed].filter(({ tail }) => tail.unconfirmedChars > 0);
    const logs = [...after].map((partition) => this.#logs.get(partition));
    return logs.every((log) => log !== undefined) ? logs : null;
  }

  #publish(mail: readonly string[]): void {
    const { client } = this.#options;
    for (let at = 0; at + 1 < mail.length; at += 2)
      publish(client, mail[at] ?? '', mail[at + 1] ?? '').catch(() => undefined);
  }

  #lose(log: PartitionLog): void {
    this.#forget(log);
    this.#gate.lose();
    log.lose();
    this.#release();
  }

  #forget(log: PartitionLog): void {
    if (this.#logs.get(log.partition) === log) this.#logs.delete(log.partition);
    this.#groupOf(log.partition).remove(log);
    this.#woken.delete(log);
    this.#unconfirmed.delete(log);
  }

  #release(): void {
    let first = this.#last + 1;
    for (const log of this.#unconfirmed) {
      const turn = log.tail.unconfirmedTurn;
      if (turn === Infinity) this.#unconfirmed.delete(log);
      first = Math.min(first, turn);
    }
    this.#gate.open(first - 1);
    if (this.#confirming.length > 0) for (const look of this.#confirming.splice(0)) look();
  }
}
