/**
 * Holds the retained messages and their indexes, and remembers which messages were dropped early. No other file may add
 * or drop a message.
 */
import type { CommandMessage } from '../../core/commands/transaction.ts';
import type { NewMessage } from '../../core/history/message.ts';
import type { CommandKey } from '../../core/ids.ts';
import { HISTORY_BYTES, RETENTION_MS, STREAMS_PER_USER, STREAM_MESSAGES } from '../../core/limits.ts';
import type { Holdings } from '../../core/shares/shares.ts';
import type { EvidenceKind, EvidenceTable } from './evidence.ts';
import { List, type ListItem } from './linked-list.ts';
import { createSortedMap, type SortedMap } from './sorted-map.ts';
import {
  AgeQueue,
  CommandRows,
  LinkRow,
  MessageRow,
  Row,
  Stream,
  fitsLinkRow,
  messageAbout,
  type CommandHolder,
  type RowHolder,
  type User,
} from './history-row.ts';

export type RowLimits = {
  /** The most messages of one stream. */
  readonly streamMessages: number;
  readonly retentionMs: number;
  /**
   * The most bytes of all streams together. Each message counts ROW_BYTES and the size of its inline payload. Beyond
   * this limit, the oldest rows of the user who is most over their guarantee are dropped first.
   */
  readonly bytes: number;
  readonly streamsPerUser: number;
};

export const HISTORY_LIMITS: RowLimits = {
  streamMessages: STREAM_MESSAGES,
  retentionMs: RETENTION_MS,
  bytes: HISTORY_BYTES,
  streamsPerUser: STREAMS_PER_USER,
};

export type Totals = { messages: number; bytes: number; evictedMessages: number; evictedStreams: number };

/**
 * Receives the rows that are dropped for lack of room. The choice depends on what all users hold, so a replay cannot
 * repeat it, and a journal must record it.
 */
export interface RowDrops {
  /**
   * True while a journal is replayed. Then nothing is dropped for lack of room, because the journal records the drops.
   */
  readonly replaying: boolean;
  /** Called for each row that was dropped. `at`: when the row was retained, in epoch milliseconds. */
  rowDropped(stream: Stream, seq: number, at: number): void;
  /** The drops after this call do not belong to the act that is in progress. */
  beginApart(): void;
}

/** Ignores dropped rows. */
export const NO_DROPS: RowDrops & { recordDropped(): void; resultDropped(): void } = {
  replaying: false,
  rowDropped() {},
  beginApart() {},
  recordDropped() {},
  resultDropped() {},
};

/**
 * Why a message is dropped. `bound`: a limit that is the same for every stream was reached. `room`: the message made
 * room for another one, so its stream has a gap.
 */
type DropReason = 'bound' | 'room';

type StreamName = { readonly userId: string; readonly suffix: string };

/** A table of retained messages, with all orders in which they are read. */
export class Rows implements EvidenceTable {
  readonly users: SortedMap<User> = createSortedMap();
  readonly evictions: Evictions = createEvictions();
  readonly totals: Totals = { messages: 0, bytes: 0, evictedMessages: 0, evictedStreams: 0 };
  /** The rows of all messages. */
  readonly byAge = new AgeQueue();
  readonly #limits: RowLimits;
  readonly #evidence: EvidenceKind;
  readonly #drops: RowDrops;
  #seqFloor = 1;
  /** The stream that the act in progress has added a row to. */
  #newest: Stream | null = null;

  constructor(limits: RowLimits, evidence: EvidenceKind, drops: RowDrops = NO_DROPS) {
    this.#limits = limits;
    this.#evidence = evidence;
    this.#drops = drops;
    evidence.add(this);
  }

  get isFilling(): boolean {
    return this.#drops.replaying;
  }

  get held(): number {
    return this.totals.bytes;
  }

  oldestAt(): number {
    return this.#drops.replaying ? Infinity : (this.#nextToGo(null)?.firstAt ?? Infinity);
  }

  dropOldest(userId: string | null, _now: number, isApart: boolean): boolean {
    const old = this.#drops.replaying ? null : this.#nextToGo(userId);
    if (!old) return false;
    if (isApart) this.#drops.beginApart();
    this.#dropFirst(old, 'room');
    return true;
  }

  /**
   * Drops rows until the total is within its limit, if no act has added rows. Returns the same as
   * `EvidenceKind.keepWithin`.
   */
  keepWithin(now: number): boolean {
    return this.#evidence.keepWithin(this.#limits.bytes, now, null);
  }

  /** Gives up the table: no user holds anything of it afterwards. */
  discard(): void {
    this.#evidence.remove(this);
    for (const { holdings } of this.users.values()) holdings.release('history_bytes', holdings.held('history_bytes'));
  }

  /**
   * The `seq` of the first row of the next stream that is created. It is higher than every `seq` of a removed stream,
   * so a new stream never uses a number that an earlier stream of the same name used.
   */
  get seqFloor(): number {
    return this.#seqFloor;
  }

  /** Sets `seqFloor` to this number, unless it is higher already. */
  raiseSeqFloor(seq: number): void {
    this.#seqFloor = Math.max(this.#seqFloor, seq);
  }

  /**
   * Adds a message and returns its row. `at` must not decrease from one call to the next. `seq`: the number that the
   * message had before a restart; if the stream already has a row with this number, the method returns null. Takes
   * amortised constant time.
   */
  add(message: NewMessage, at: number, seq?: number): Row | null {
    const stream = this.#streamFor(message, seq);
    if (!stream) return null;
    const number = stream.nextSeq;
    const holder = fitsLinkRow(message) ? new LinkRow(message, at) : new MessageRow(message, number, at);
    if (holder instanceof MessageRow) noteCommandOf(stream.user, holder);
    this.#append(stream, holder, at);
    return new Row(stream, number, holder);
  }

  /**
   * Adds a message about a command to the stream of its client. Parameters as for `add`. Returns the number of the row,
   * or null where `add` returns null.
   */
  addOfCommand(rows: CommandRows, part: CommandMessage, at: number, seq?: number): number | null {
    const stream = this.#streamFor(rows.head, seq);
    if (!stream) return null;
    const number = stream.nextSeq;
    const holder = rows.fits(part) ? rows : new MessageRow(messageAbout(rows, part), number, at);
    if (holder !== rows || rows.hold(part, number, at)) noteCommandOf(stream.user, holder);
    this.#append(stream, holder, at);
    return number;
  }

  /**
   * Returns an object that already holds rows of this command, so that its texts are in memory only once; undefined if
   * no rows are held.
   */
  rowsOf({ userId, clientId, commandId }: CommandKey): CommandRows | undefined {
    let holder = this.users.get(userId)?.byCommand.get(commandId) ?? null;
    for (; holder; holder = holder.older)
      if (holder instanceof CommandRows && holder.head.clientId === clientId) return holder;
    return undefined;
  }

  /**
   * Repeats a drop for lack of room that happened before a restart: drops the rows of a stream up to the number `seq`,
   * which was retained at `at`. If those rows are not here, because they were dropped while the snapshot was being
   * written, only records the gap.
   */
  dropUpTo(userId: string, suffix: string, { seq, at }: { readonly seq: number; readonly at: number }): void {
    const stream = this.users.get(userId)?.streams.get(suffix);
    if (stream && stream.length > 0 && stream.firstSeq <= seq)
      while (stream.length > 0 && stream.firstSeq <= seq) this.#dropFirst(stream, 'room');
    else this.#noteGap({ userId, stream, at });
  }

  #noteGap({ userId, stream, at }: { readonly userId: string; readonly stream: Stream | undefined; at: number }): void {
    if (stream) stream.evictedAt = Math.max(stream.evictedAt, at);
    this.evictions.note(userId, at, !stream || stream.length === 0);
  }

  /** Restores a gap that was remembered before a restart. */
  restoreGap(gap: Gap): void {
    const stream = gap.suffix === null ? null : this.users.get(gap.userId)?.streams.get(gap.suffix);
    if (stream) stream.evictedAt = Math.max(stream.evictedAt, gap.droppedAt);
    if (gap.suffix === null) this.evictions.restore(gap);
  }

  /** Drops the messages that were retained at `before` or earlier. */
  expire(before: number): void {
    this.evictions.expire(before);
    for (let old = this.byAge.first(); old && old.firstAt <= before; old = this.byAge.first())
      this.#dropFirst(old, 'bound');
  }

  /**
   * Returns the stream for a new row, and creates it if it does not exist. `seq`: as for `add`. Returns null if the
   * stream already has a row with this number.
   */
  #streamFor(name: StreamName, seq?: number): Stream | null {
    const stream = this.users.get(name.userId)?.streams.get(name.suffix) ?? this.#createStream(name);
    if (seq === undefined || seq === stream.nextSeq) return stream;
    if (stream.length > 0 && seq < stream.nextSeq) return null;
    // The missing rows were dropped while a snapshot was being written, and rows are dropped oldest first, so the rows
    // of the stream were dropped too.
    while (stream.length > 0) this.#takeFirst(stream);
    stream.skipTo(seq);
    return stream;
  }

  #createStream({ userId, suffix }: StreamName): Stream {
    const crowded = this.users.get(userId);
    if (crowded && crowded.streams.size >= this.#limits.streamsPerUser && !this.#drops.replaying) {
      const longestUnwritten = crowded.byLastWrite.first?.value;
      while (longestUnwritten && longestUnwritten.length > 0) this.#dropFirst(longestUnwritten, 'room');
    }
    const user = this.users.get(userId) ?? newUser(userId, this.#evidence.shares.of(userId));
    // A stream of this name may have existed before and been dropped with all its messages.
    const evictedAt = this.evictions.wholeStreamAt(userId);
    const stream = new Stream(user, suffix, { seq: this.#seqFloor, evictedAt });
    this.users.set(userId, user);
    user.streams.set(suffix, stream);
    return stream;
  }

  /** Adds the next row of a stream, and then drops the rows that exceed the limits. */
  #append(stream: Stream, holder: RowHolder, at: number): void {
    this.#insert(stream, holder);
    const { streamMessages, bytes } = this.#limits;
    while (stream.length > streamMessages) this.#dropFirst(stream, 'bound');
    if (this.#drops.replaying) return;
    this.#newest = stream;
    this.#evidence.keepWithin(bytes, at, this);
    this.#newest = null;
  }

  #insert(stream: Stream, holder: RowHolder): void {
    const { user, nextSeq: seq } = stream;
    const bytes = holder.bytesOf(seq);
    this.byAge.push(stream, seq);
    user.byAge.push(stream, seq);
    stream.push(holder);
    if (!stream.place || user.byLastWrite.last !== stream.place) {
      if (stream.place) user.byLastWrite.remove(stream.place);
      stream.place = user.byLastWrite.push(stream);
    }
    this.totals.messages++;
    this.totals.bytes += bytes;
    user.holdings.take('history_bytes', bytes);
  }

  /**
   * Returns the stream with the oldest row, of this user or (null) of all; null if that row is the one that the act in
   * progress added.
   */
  #nextToGo(userId: string | null): Stream | null {
    const old = (userId === null ? this : this.users.get(userId))?.byAge.first();
    return old && !(old === this.#newest && old.length === 1) ? old : null;
  }

  #dropFirst(stream: Stream, why: DropReason): void {
    const { user, firstSeq, firstAt } = stream;
    this.#takeFirst(stream);
    if (why === 'room') {
      this.#drops.rowDropped(stream, firstSeq, firstAt);
      this.totals.evictedMessages++;
      this.#noteGap({ userId: user.userId, stream, at: firstAt });
    }
    if (stream.length === 0) this.#removeStream(stream, why);
  }

  /** Removes the oldest row from its stream and from all orders. */
  #takeFirst(stream: Stream): void {
    const { user, firstSeq: seq } = stream;
    const holder = stream.dropFirst();
    if (!holder) return;
    const bytes = holder.bytesOf(seq);
    this.byAge.noteDeleted();
    user.byAge.noteDeleted();
    this.totals.messages--;
    this.totals.bytes -= bytes;
    user.holdings.release('history_bytes', bytes);
    if (!(holder instanceof LinkRow) && holder.drop(seq)) forgetCommandOf(user, holder);
  }

  #removeStream({ user, suffix, place, nextSeq }: Stream, why: DropReason): void {
    user.streams.delete(suffix);
    if (place) user.byLastWrite.remove(place);
    this.raiseSeqFloor(nextSeq);
    if (why === 'room') this.totals.evictedStreams++;
    if (user.streams.size === 0) this.users.delete(user.userId);
  }
}

function newUser(userId: string, holdings: Holdings): User {
  const orders = {
    byLastWrite: new List<Stream>(),
    byCommand: new Map<string, CommandHolder>(),
    byAge: new AgeQueue(),
  };
  return { userId, streams: createSortedMap(), ...orders, holdings };
}

function noteCommandOf({ byCommand }: User, holder: CommandHolder): void {
  const { commandId } = holder;
  if (commandId === null) return;
  const newest = byCommand.get(commandId) ?? null;
  holder.older = newest;
  if (newest) newest.newer = holder;
  byCommand.set(commandId, holder);
}

function forgetCommandOf({ byCommand }: User, holder: CommandHolder): void {
  const { commandId, older, newer } = holder;
  if (commandId === null) return;
  if (older) older.newer = newer;
  if (newer) newer.older = older;
  else if (older) byCommand.set(commandId, older);
  else byCommand.delete(commandId);
  holder.older = null;
  holder.newer = null;
}

/** Returns all rows of a command of this user, in no particular order. */
export function rowsOfCommand({ byCommand, streams }: User, commandId: string): readonly Row[] {
  const rows: Row[] = [];
  for (let holder = byCommand.get(commandId) ?? null; holder; holder = holder.older) {
    const stream = streams.get(holder.suffix);
    for (const seq of holder.seqs) if (stream) rows.push(new Row(stream, seq, holder));
  }
  return rows;
}

// The record of messages that were dropped early, so that answers can report the gap.

/**
 * The gaps of one user. `droppedAt`: when the newest message among those dropped for lack of room was retained, in
 * epoch milliseconds. `wholeStreamAt`: the same time, counting only messages that were the last of their stream.
 */
type UserGaps = { readonly userId: string; droppedAt: number; wholeStreamAt: number; place: ListItem<UserGaps> | null };

const NEVER = -Infinity;

/** A gap as a snapshot stores it. `suffix`: the stream with the gap; null for all streams of the user. */
export type Gap = Pick<UserGaps, 'userId' | 'droppedAt' | 'wholeStreamAt'> & { readonly suffix: string | null };

type Evictions = ReturnType<typeof createEvictions>;

/**
 * Remembers each dropped message for as long as it would have been shown. An answer that could have contained the
 * message has a gap. Each method takes amortised constant time, and each user takes one small object.
 */
function createEvictions() {
  const notes = new Map<string, UserGaps>();
  const byEviction = new List<UserGaps>();
  let anyDropped = NEVER;
  let anyWholeStream = NEVER;
  return {
    /**
     * Records that a message of this user was dropped. `at`: when the message was retained. `streamGone`: whether it
     * was the last message of its stream.
     */
    note(userId: string, at: number, streamGone: boolean): void {
      const note = notes.get(userId) ?? { userId, droppedAt: NEVER, wholeStreamAt: NEVER, place: null };
      notes.set(userId, note);
      note.droppedAt = Math.max(note.droppedAt, at);
      anyDropped = Math.max(anyDropped, at);
      if (streamGone) {
        note.wholeStreamAt = Math.max(note.wholeStreamAt, at);
        anyWholeStream = Math.max(anyWholeStream, at);
      }
      if (note.place) byEviction.remove(note.place);
      note.place = byEviction.push(note);
    },
    *gaps(): Generator<Gap> {
      for (const { userId, droppedAt, wholeStreamAt } of notes.values())
        yield { userId, suffix: null, droppedAt, wholeStreamAt };
    },
    restore({ userId, droppedAt, wholeStreamAt }: Gap): void {
      this.note(userId, droppedAt, false);
      if (wholeStreamAt > NEVER) this.note(userId, wholeStreamAt, true);
    },
    droppedAt: (userId: string) => notes.get(userId)?.droppedAt ?? NEVER,
    wholeStreamAt: (userId: string) => notes.get(userId)?.wholeStreamAt ?? NEVER,
    /** Returns the latest `droppedAt` of all users. */
    anyDroppedAt: () => anyDropped,
    anyWholeStreamAt: () => anyWholeStream,
    /** Forgets dropped messages that would no longer be shown, because they were retained at `before` or earlier. */
    expire(before: number): void {
      for (let head = byEviction.first; head && head.value.droppedAt <= before; head = byEviction.first) {
        byEviction.remove(head);
        notes.delete(head.value.userId);
      }
    },
  };
}
