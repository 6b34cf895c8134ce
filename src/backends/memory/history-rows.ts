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
 * Learns which rows were dropped for lack of room. Which rows these are depends on what all users hold, so a journal
 * has to record it.
 */
export interface RowDrops {
  /** True while a journal is read: nothing is dropped for lack of room, because the journal says what was dropped. */
  readonly replaying: boolean;
  /** `at`: when the row was retained, in epoch milliseconds. */
  rowDropped(stream: Stream, seq: number, at: number): void;
  /** What is dropped next is no part of an act that is in progress. */
  beginApart(): void;
}

/** Forgets which rows were dropped. */
export const NO_DROPS: RowDrops & { recordDropped(): void; resultDropped(): void } = {
  replaying: false,
  rowDropped() {},
  beginApart() {},
  recordDropped() {},
  resultDropped() {},
};

/**
 * Why a message is dropped. `bound`: a limit that is the same for every stream was reached. `room`: it had to make room
 * for another message, so its stream has a gap.
 */
type Why = 'bound' | 'room';

type StreamName = { readonly userId: string; readonly suffix: string };

/**
 * The messages of the history store, in every order in which they are read. Messages are added and dropped only here.
 */
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
  /** The stream to which the act in progress has added a row. */
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

  /** Keeps the total without an act that adds rows. Returns as `EvidenceKind.keepWithin` does. */
  keepWithin(now: number): boolean {
    return this.#evidence.keepWithin(this.#limits.bytes, now, null);
  }

  /** Gives up the table: no user holds anything of it. */
  discard(): void {
    this.#evidence.remove(this);
    for (const { holdings } of this.users.values()) holdings.release('history_bytes', holdings.held('history_bytes'));
  }

  /**
   * The first `seq` of the next stream that is created. It is higher than every `seq` of a removed stream, so a new
   * stream with the same name reuses none.
   */
  get seqFloor(): number {
    return this.#seqFloor;
  }

  /** Makes `seqFloor` at least this number. */
  raiseSeqFloor(seq: number): void {
    this.#seqFloor = Math.max(this.#seqFloor, seq);
  }

  /**
   * Adds a message and returns its row. `at` must not decrease from one call to the next. `seq`: the number that the
   * message had before the process was restarted; returns null if the stream has it already. Takes amortised constant
   * time.
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

  /** Adds a message about a command to the stream of the command's client, like `add`. Returns the number of its row. */
  addOfCommand(rows: CommandRows, part: CommandMessage, at: number, seq?: number): number | null {
    const stream = this.#streamFor(rows.head, seq);
    if (!stream) return null;
    const number = stream.nextSeq;
    const holder = rows.fits(part) ? rows : new MessageRow(messageAbout(rows, part), number, at);
    if (holder !== rows || rows.hold(part, number, at)) noteCommandOf(stream.user, holder);
    this.#append(stream, holder, at);
    return number;
  }

  /** Returns an object that holds rows of this command, so that its texts are in memory once; undefined without rows. */
  rowsOf({ userId, clientId, commandId }: CommandKey): CommandRows | undefined {
    let holder = this.users.get(userId)?.byCommand.get(commandId) ?? null;
    for (; holder; holder = holder.older)
      if (holder instanceof CommandRows && holder.head.clientId === clientId) return holder;
    return undefined;
  }

  /**
   * Drops the rows of a stream up to the number `seq`, which was retained at `at`, as they were dropped for lack of room
   * before a restart. A snapshot lacks a row that was dropped while it was written: then only the gap is put back.
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

  /** Puts back what was remembered of rows that were dropped for lack of room. */
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
   * Returns the stream for a new row, and creates it if there is none. `seq`: as for `add`; null if the stream has a row
   * of this number already.
   */
  #streamFor(name: StreamName, seq?: number): Stream | null {
    const stream = this.users.get(name.userId)?.streams.get(name.suffix) ?? this.#createStream(name);
    if (seq === undefined || seq === stream.nextSeq) return stream;
    if (stream.length > 0 && seq < stream.nextSeq) return null;
    // The rows between were dropped while a snapshot was written, and so were those before them.
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
    // A stream with the same name may have been dropped before, with all its messages.
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

  /** Returns the stream with the oldest row, of this user or of all; null if that is the row of the act in progress. */
  #nextToGo(userId: string | null): Stream | null {
    const old = (userId === null ? this : this.users.get(userId))?.byAge.first();
    return old && !(old === this.#newest && old.length === 1) ? old : null;
  }

  #dropFirst(stream: Stream, why: Why): void {
    const { user, firstSeq, firstAt } = stream;
    this.#takeFirst(stream);
    if (why === 'room') {
      this.#drops.rowDropped(stream, firstSeq, firstAt);
      this.totals.evictedMessages++;
      this.#noteGap({ userId: user.userId, stream, at: firstAt });
    }
    if (stream.length === 0) this.#removeStream(stream, why);
  }

  /** Takes the oldest row out of its stream and out of all orders. */
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

  #removeStream({ user, suffix, place, nextSeq }: Stream, why: Why): void {
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

// Remembers when messages were dropped early, so that answers can report the gap.

/**
 * What is remembered about one user's messages that were dropped for lack of room. `droppedAt`: when the newest of them
 * was retained, in epoch milliseconds. `wholeStreamAt`: the same, but only of messages that were the last of their
 * stream.
 */
type Note = { readonly userId: string; droppedAt: number; wholeStreamAt: number; place: ListItem<Note> | null };

const NEVER = -Infinity;

/** A Note as it outlives a restart. `suffix`: the stream that it is about; null for all streams of the user. */
export type Gap = Pick<Note, 'userId' | 'droppedAt' | 'wholeStreamAt'> & { readonly suffix: string | null };

type Evictions = ReturnType<typeof createEvictions>;

/**
 * Remembers that messages were dropped early, for as long as these messages would still be shown. An answer that could
 * have contained one of them has a gap. Each method takes amortised constant time, and each user takes one small
 * object.
 */
function createEvictions() {
  const notes = new Map<string, Note>();
  const byEviction = new List<Note>();
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
