/**
 * The log of a partition that this process owns: numbers its batches, tracks the fence that Redis should have, and
 * begins snapshots.
 *
 * `turns.ts` sends the batches of all partitions.
 */
import type { Clock } from '../../core/ports.ts';
import { CallboardError } from '../../core/errors.ts';
import type { FactLog, SnapshotPieces } from '../journal/log.ts';
import { headOf, type ActWriter, type Header } from '../journal/records.ts';
import type { RecordRoom } from '../journal/room.ts';
import type { Client } from '../redis/client.ts';
import { fenceText, type Fence } from './fence.ts';
import type { PartitionKeys } from './keys.ts';
import { beginAnew, commitSnapshot, type Append, type SnapshotCommit } from './scripts.ts';
import { readSnapshotAt, STREAM_FORMAT, writePieces } from './stream.ts';
import { Tail, type Batch } from './tail.ts';

/** The most unconfirmed characters of batches. Beyond this, nothing may be added. */
const UNCONFIRMED_CHARS = 8 * 1024 * 1024;

export type PartitionLogOptions = {
  readonly partition: number;
  readonly keys: PartitionKeys;
  /** The fence that this process has set in Redis. */
  readonly fence: Fence;
  readonly version: string;
  /** The records to append. Their `onFirst` must wake the turns. */
  readonly records: Pick<ActWriter, 'take' | 'beginFile'>;
  readonly room: Pick<RecordRoom, 'full' | 'written' | 'uncovered' | 'want'>;
  /**
   * The text before the first batch, if an earlier PartitionLog of this process used the same records. If absent, the
   * log begins a new numbering of commands.
   */
  readonly head?: string | undefined;
  /** Called once, when another process is found to own the partition. */
  readonly onLost: () => void;
  /** Writes a snapshot of the whole state. Called if Redis has lost more of the log than this process still holds. */
  readonly writeSnapshot: () => Promise<void>;
};

/** The parts of `Turns` that a log uses. */
export type TurnsOfLog = {
  readonly client: Client;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /** Sends everything decided so far. */
  flush(): void;
  /** Resolves once everything decided so far in this process is recorded. */
  recorded(): Promise<void>;
  /** Called when a log has batches that Redis has not confirmed. */
  noteUnconfirmed(log: PartitionLog): void;
  /** Whether the Redis of a log has no memory left. */
  isFull(log: PartitionLog): boolean;
  /** Whether a snapshot of this log must wait until another one is complete, because Redis may lack memory for both. */
  isCrowded(log: PartitionLog): boolean;
  /** Called when a snapshot of a log begins (`isWritten` true) or ends. */
  noteSnapshot(log: PartitionLog, isWritten: boolean): void;
};

/** The state of a replacement of the whole log by a snapshot. `begin` resolves when a replacement is wanted. */
type Anew = { readonly begin: PromiseWithResolvers<void>; isWanted: boolean; isDone: boolean };

function newAnew(): Anew {
  return { begin: Promise.withResolvers(), isWanted: false, isDone: false };
}

export class PartitionLog implements FactLog {
  readonly partition: number;
  readonly keys: PartitionKeys;
  readonly tail: Tail;
  /** The last epoch that this process tried to set; 0 if it tried none. It may be set although no answer arrived. */
  triedEpoch = 0;
  readonly #options: PartitionLogOptions;
  readonly #turns: TurnsOfLog;
  #isLost = false;
  /** The fence that Redis has once all decided batches are appended. */
  #fence: Fence;
  /** The number of snapshots that were begun. */
  #begun = 0;
  /** The record that begins a new numbering of commands; '' if the next batch goes on with the current one. */
  #head: string;
  #anew = newAnew();

  constructor(options: PartitionLogOptions, turns: TurnsOfLog) {
    this.partition = options.partition;
    this.keys = options.keys;
    this.#options = options;
    this.#turns = turns;
    this.#fence = options.fence;
    this.tail = new Tail(options.fence.number);
    this.#head = options.head ?? this.#newHead();
    this.judgeRoom();
  }

  /** The text that the next batch begins with. */
  get head(): string {
    return this.#head;
  }

  get fence(): Fence {
    return this.#fence;
  }

  /** Whether another process owns the partition. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Whether Redis has confirmed everything decided so far. */
  get isConfirmed(): boolean {
    return this.tail.confirmed >= this.#fence.number;
  }

  get full(): boolean {
    return this.#options.room.full;
  }

  /**
   * Whether a snapshot that is being written must be given up. A snapshot that replaces the whole log is always
   * written.
   */
  get crowded(): boolean {
    return this.#isLost || (!this.#anew.isWanted && this.#turns.isCrowded(this));
  }

  /** The cost of the records that no snapshot covers, as RecordRoom counts it. */
  get uncovered(): number {
    return this.#options.room.uncovered;
  }

  wantSnapshot(): void {
    this.#options.room.want();
  }

  /** Returns a batch of the records made since the last call; null if there are none. */
  take(turn: number): Batch | null {
    const { records, room } = this.#options;
    const text = records.take();
    if (text === '' || this.#isLost) return null;
    const { clock } = this.#turns;
    const number = this.#fence.number + 1;
    const batch = { number, text: this.#head + text, turn, at: clock.monotonic() };
    this.#head = '';
    this.#fence = { ...this.#fence, number };
    this.tail.add(batch);
    this.#turns.noteUnconfirmed(this);
    room.written(batch.text.length);
    this.judgeRoom();
    return batch;
  }

  /** Returns the arguments with which the script appends a batch. */
  append({ number, text }: Batch): Append {
    return { keys: this.keys, before: this.#textAt(number - 1), after: this.#textAt(number), number, text };
  }

  /** The text of the fence that Redis has once all batches are appended. */
  get expected(): string {
    return fenceText(this.#fence);
  }

  /** Notes that Redis has all batches up to this number. */
  confirm(number: number): void {
    this.tail.confirm(number, this.#turns.clock.monotonic());
    this.judgeRoom();
  }

  /**
   * Notes that this process has set the fence to the new epoch and to the batch `number`, after which the log goes on.
   */
  resume(epoch: number, number: number): void {
    this.#fence = { ...this.#fence, epoch };
    this.tail.lose(number);
    this.#turns.noteUnconfirmed(this);
  }

  /** Notes that another process owns the partition. Nothing is appended from then on. */
  lose(): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#options.onLost();
  }

  /**
   * Replaces the log in Redis by a snapshot of the whole state, because Redis has lost more batches than this process
   * still holds. Resolves with whether it was replaced. Nothing else may be appended until then.
   */
  async beginAnew(): Promise<boolean> {
    this.#anew.isWanted = true;
    this.#anew.begin.resolve();
    await this.#options.writeSnapshot();
    const { isDone } = this.#anew;
    this.#anew = newAnew();
    return isDone;
  }

  beginSnapshot(): SnapshotPieces {
    const { records } = this.#options;
    const { client, clock } = this.#turns;
    if (this.#isLost) throw new CallboardError('store_unavailable', 'Another relay owns the partition.');
    this.#turns.flush();
    const { number, epoch } = this.#fence;
    const at = clock.now();
    records.beginFile();
    this.#head = this.#newHead();
    const name = `${epoch}-${number}-${++this.#begun}`;
    this.#turns.noteSnapshot(this, true);
    const pieces = writePieces({ client, key: this.keys.snapshot(name), header: this.#header(), at });
    return {
      get size() {
        return pieces.size;
      },
      append: (text) => pieces.append(text),
      commit: () => this.#commit(name, number),
      discard: () => {
        this.#turns.noteSnapshot(this, false);
        pieces.discard();
      },
    };
  }

  async #commit(name: string, number: number): Promise<void> {
    const { client } = this.#turns;
    await Promise.race([this.#turns.recorded(), this.#anew.begin.promise]);
    const { process, epoch } = this.#fence;
    // The previous commit may have run although its answer was lost, so the name of the valid snapshot is read again.
    const { name: replaces } = readSnapshotAt(await client.get(this.keys.snapshotAt));
    const commit = { keys: this.keys, owner: { process, epoch }, name, number, replaces };
    if (this.#anew.isWanted) await this.#commitAnew(commit);
    else await commitSnapshot(client, commit);
    this.tail.replace(number);
    this.#turns.noteSnapshot(this, false);
  }

  async #commitAnew(commit: SnapshotCommit): Promise<void> {
    const { client } = this.#turns;
    const batches = this.tail.after(commit.number);
    if (!batches) throw new CallboardError('store_unavailable', 'The snapshot was begun too long ago.');
    await beginAnew(client, commit, batches);
    this.confirm(batches.at(-1)?.number ?? commit.number);
    this.#anew.isDone = true;
  }

  #textAt(number: number): string {
    return fenceText({ ...this.#fence, number });
  }

  #header(): Header {
    return { format: STREAM_FORMAT, version: this.#options.version, boot: null, sync: 'always' };
  }

  #newHead(): string {
    return headOf(this.#header(), this.#turns.clock.now());
  }

  /**
   * Sets `room.full`, which refuses new data, while Redis has no memory left or has too much unconfirmed data of this
   * log.
   */
  judgeRoom(): void {
    this.#options.room.full = this.#turns.isFull(this) || this.tail.unconfirmedChars > UNCONFIRMED_CHARS;
  }
}
