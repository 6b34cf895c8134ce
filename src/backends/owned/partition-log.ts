/**
 * The log of a partition that this process owns: numbers its batches, knows the fence that Redis must have, and begins
 * snapshots. `turns.ts` sends the batches of all partitions.
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

/** The most characters of batches that Redis has not confirmed, before nothing may be added any more. */
const UNCONFIRMED_CHARS = 8 * 1024 * 1024;

export type PartitionLogOptions = {
  readonly partition: number;
  readonly keys: PartitionKeys;
  /** The fence that this process has set. */
  readonly fence: Fence;
  readonly version: string;
  /** The records to append. Their `onFirst` wakes the turns. */
  readonly records: Pick<ActWriter, 'take' | 'beginFile'>;
  readonly room: Pick<RecordRoom, 'full' | 'written' | 'uncovered' | 'want'>;
  /** What the first batch begins with, if the records go on that an earlier log of this process had; absent: they begin. */
  readonly head?: string | undefined;
  /** Called once, when another process owns the partition. */
  readonly onLost: () => void;
  /** Writes a whole snapshot, because Redis has lost more of the log than is kept here. */
  readonly writeSnapshot: () => Promise<void>;
};

/** What the turns of a process do for each of its logs. */
export type TurnsOfLog = {
  readonly client: Client;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /** Appends what was decided so far. */
  flush(): void;
  /** Resolves once everything that was decided so far in this process is recorded. */
  recorded(): Promise<void>;
  /** A log has batches that Redis has not confirmed. */
  noteUnconfirmed(log: PartitionLog): void;
  /** Whether the Redis of a log has no memory for more. */
  isFull(log: PartitionLog): boolean;
  /** Whether a snapshot of a log must wait for another one, because both together may be too much for Redis. */
  isCrowded(log: PartitionLog): boolean;
  /** A snapshot of a log begins or ends. */
  noteSnapshot(log: PartitionLog, isWritten: boolean): void;
};

/** `begin`: resolves when a log must be begun anew with a snapshot. */
type Anew = { readonly begin: PromiseWithResolvers<void>; isWanted: boolean; isDone: boolean };

function newAnew(): Anew {
  return { begin: Promise.withResolvers(), isWanted: false, isDone: false };
}

export class PartitionLog implements FactLog {
  readonly partition: number;
  readonly keys: PartitionKeys;
  readonly tail: Tail;
  /** The epoch that this process last tried to set; 0: none. The answer may be lost although it is set. */
  triedEpoch = 0;
  readonly #options: PartitionLogOptions;
  readonly #turns: TurnsOfLog;
  #isLost = false;
  /** The fence after the last batch that was decided. */
  #fence: Fence;
  /** How many snapshots were begun. */
  #begun = 0;
  /** The record with which a new numbering of commands begins. */
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

  /** What the next batch begins with. */
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

  /** Whether Redis has all that was decided. */
  get isConfirmed(): boolean {
    return this.tail.confirmed >= this.#fence.number;
  }

  get full(): boolean {
    return this.#options.room.full;
  }

  /** Whether no snapshot may be written. A log that must begin anew has no choice. */
  get crowded(): boolean {
    return this.#isLost || (!this.#anew.isWanted && this.#turns.isCrowded(this));
  }

  /** What no snapshot covers of the log, as RecordRoom counts it. */
  get uncovered(): number {
    return this.#options.room.uncovered;
  }

  wantSnapshot(): void {
    this.#options.room.want();
  }

  /** Makes a batch of what was decided since the last call; null: nothing was. */
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

  /** What a call needs to append a batch. */
  append({ number, text }: Batch): Append {
    return { keys: this.keys, before: this.#textAt(number - 1), after: this.#textAt(number), number, text };
  }

  /** The fence that Redis has once all batches are appended. */
  get expected(): string {
    return fenceText(this.#fence);
  }

  /** Redis has all batches up to this number. */
  confirm(number: number): void {
    this.tail.confirm(number, this.#turns.clock.monotonic());
    this.judgeRoom();
  }

  /** The log goes on after this batch, under a new epoch. */
  resume(epoch: number, number: number): void {
    this.#fence = { ...this.#fence, epoch };
    this.tail.lose(number);
    this.#turns.noteUnconfirmed(this);
  }

  /** Another process owns the partition: nothing is appended any more. */
  lose(): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#options.onLost();
  }

  /**
   * Begins the log in Redis anew with the whole state, because it ends before what is kept of it here. Resolves with
   * whether it did. Nothing else may be appended meanwhile.
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
    // A commit before this one may have run although its answer was lost.
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

  /** Refuses what would add to the log while Redis has no memory for more, or does not confirm what it got. */
  judgeRoom(): void {
    this.#options.room.full = this.#turns.isFull(this) || this.tail.unconfirmedChars > UNCONFIRMED_CHARS;
  }
}
