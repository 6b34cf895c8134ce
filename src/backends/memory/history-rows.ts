/**
 * Holds the retained messages and their indexes, and remembers which messages were dropped early. No other file may add
 * or drop a message.
 */
import type { CommandMessage } from '../../core/commands/transaction.ts';
import type { NewMessage } from '../../core/history/message.ts';
import type { CommandKey } from '../../core/ids.ts';
import { HISTORY_BYTES, RETENTION_MS, STREAMS_PER_USER, STREAM_MESSAGES } from '../../core/limits.ts';
import type { Holdings, Shares } from '../../core/shares/shares.ts';
import { List, createSortedMap, type ListItem, type SortedMap } from './collections.ts';
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
  rowDropped(stream: Stream, seq: number): void;
}

/** Forgets which rows were dropped. */
export const NO_DROPS: RowDrops & { recordDropped(): void; resultDropped(): void } = {
  replaying: false,
  rowDropped() {},
  recordDropped() {},
  resultDropped() {},
};

/**
 * The messages of the history store, in every order in which they are read. Messages are added and dropped only here.
 */
export interface Rows {
  readonly users: SortedMap<User>;
  readonly evictions: Evictions;
  readonly totals: Readonly<Totals>;
  /** The rows of all messages. */
  readonly byAge: AgeQueue;
  /**
   * Adds a message and returns its row. `at` must not decrease from one call to the next. `seq`: the number that the
   * message had before the process was restarted; returns null if the stream has it already. Takes amortised constant
   * time.
   */
  add(message: NewMessage, at: number, seq?: number): Row | null;
  /** Adds a message about a command to the stream of the command's client, like `add`. Returns the number of its row. */
  addOfCommand(rows: CommandRows, part: CommandMessage, at: number, seq?: number): number | null;
  /** Returns an object that holds rows of this command, so that its texts are in memory once; undefined without rows. */
  rowsOf(command: CommandKey): CommandRows | undefined;
  /** Drops the rows of a stream up to the number `seq`, as they were dropped for lack of room before a restart. */
  dropUpTo(userId: string, suffix: string, seq: number): void;
  /** What is remembered of rows that were dropped for lack of room, besides `Stream.evictedAt`. */
  gaps(): Iterable<Gap>;
  restoreGap(gap: Gap): void;
  seqFloor: number;
  /** Drops the messages that were retained at `before` or earlier. */
  expire(before: number): void;
}

type State = {
  readonly drops: RowDrops;
  readonly limits: RowLimits;
  readonly shares: Shares;
  readonly users: SortedMap<User>;
  readonly byAge: AgeQueue;
  readonly evictions: Evictions;
  readonly totals: Totals;
  /**
   * The first `seq` of the next stream that is created. It is higher than every `seq` of a removed stream, so a new
   * stream with the same name reuses none.
   */
  seqFloor: number;
};

/**
 * Why a message is dropped. `bound`: a limit that is the same for every stream was reached. `room`: it had to make room
 * for another message, so its stream has a gap.
 */
type Why = 'bound' | 'room';

export function createRows(limits: RowLimits, shares: Shares, drops: RowDrops = NO_DROPS): Rows {
  const state: State = {
    drops,
    limits,
    shares,
    users: createSortedMap(),
    byAge: new AgeQueue(),
    evictions: createEvictions(),
    totals: { messages: 0, bytes: 0, evictedMessages: 0, evictedStreams: 0 },
    seqFloor: 1,
  };
  return {
    users: state.users,
    evictions: state.evictions,
    totals: state.totals,
    byAge: state.byAge,
    get seqFloor() {
      return state.seqFloor;
    },
    set seqFloor(seq) {
      state.seqFloor = Math.max(state.seqFloor, seq);
    },
    add(message, at, seq) {
      const stream = streamFor(state, message, seq);
      if (!stream) return null;
      const number = stream.nextSeq;
      const holder = fitsLinkRow(message) ? new LinkRow(message, at) : new MessageRow(message, number, at);
      if (holder instanceof MessageRow) noteCommandOf(stream.user, holder);
      append(state, stream, holder);
      return new Row(stream, number, holder);
    },
    addOfCommand(rows, part, at, seq) {
      const stream = streamFor(state, rows.head, seq);
      if (!stream) return null;
      const number = stream.nextSeq;
      const holder = rows.fits(part) ? rows : new MessageRow(messageAbout(rows, part), number, at);
      if (holder !== rows || rows.hold(part, number, at)) noteCommandOf(stream.user, holder);
      append(state, stream, holder);
      return number;
    },
    rowsOf({ userId, clientId, commandId }) {
      let holder = state.users.get(userId)?.byCommand.get(commandId) ?? null;
      for (; holder; holder = holder.older)
        if (holder instanceof CommandRows && holder.head.clientId === clientId) return holder;
      return undefined;
    },
    dropUpTo(userId, suffix, seq) {
      const stream = state.users.get(userId)?.streams.get(suffix);
      while (stream && stream.length > 0 && stream.firstSeq <= seq) dropFirst(state, stream, 'room');
    },
    gaps: () => state.evictions.gaps(),
    restoreGap(gap) {
      const stream = gap.suffix === null ? null : state.users.get(gap.userId)?.streams.get(gap.suffix);
      if (stream) stream.evictedAt = Math.max(stream.evictedAt, gap.droppedAt);
      if (gap.suffix === null) state.evictions.restore(gap);
    },
    expire(before) {
      state.evictions.expire(before);
      for (let old = state.byAge.first(); old && old.firstAt <= before; old = state.byAge.first())
        dropFirst(state, old, 'bound');
    },
  };
}

/**
 * Returns the stream whose oldest row is to be dropped next: that of the user who is most over their guarantee, or the
 * oldest row of all if no user is over. Null if this is the only row of the stream `newest`, which was written last.
 */
function nextToGo({ shares, users, byAge }: State, newest: Stream): Stream | null {
  const isNewestRow = (stream: Stream | undefined): boolean => stream === newest && newest.length === 1;
  const holder = shares.mostOver('history_bytes');
  const ofHolder = holder && users.get(holder.userId)?.byAge.first();
  const old = ofHolder && !isNewestRow(ofHolder) ? ofHolder : byAge.first();
  return old && !isNewestRow(old) ? old : null;
}

type StreamName = { readonly userId: string; readonly suffix: string };

/**
 * Returns the stream for a new row, and creates it if there is none. `seq`: as for `Rows.add`; null if the stream has a
 * row of this number already.
 */
function streamFor(state: State, name: StreamName, seq?: number): Stream | null {
  const stream = state.users.get(name.userId)?.streams.get(name.suffix) ?? createStream(state, name);
  if (seq === undefined || seq === stream.nextSeq) return stream;
  if (stream.length > 0 && seq < stream.nextSeq) return null;
  // The rows between were dropped while a snapshot was written, and so were those before them.
  while (stream.length > 0) takeFirst(state, stream);
  stream.skipTo(seq);
  return stream;
}

function createStream(state: State, { userId, suffix }: StreamName): Stream {
  const crowded = state.users.get(userId);
  if (crowded && crowded.streams.size >= state.limits.streamsPerUser && !state.drops.replaying) {
    const longestUnwritten = crowded.byLastWrite.first?.value;
    while (longestUnwritten && longestUnwritten.length > 0) dropFirst(state, longestUnwritten, 'room');
  }
  const user = state.users.get(userId) ?? newUser(userId, state.shares.of(userId));
  // A stream with the same name may have been dropped before, with all its messages.
  const evictedAt = state.evictions.wholeStreamAt(userId);
  const stream = new Stream(user, suffix, { seq: state.seqFloor, evictedAt });
  state.users.set(userId, user);
  user.streams.set(suffix, stream);
  return stream;
}

function newUser(userId: string, holdings: Holdings): User {
  const orders = { byLastWrite: new List<Stream>(), byCommand: new Map(), byAge: new AgeQueue() };
  return { userId, streams: createSortedMap(), ...orders, holdings };
}

/** Adds the next row of a stream, and then drops the rows that exceed the limits. */
function append(state: State, stream: Stream, holder: RowHolder): void {
  insert(state, stream, holder);
  const { limits } = state;
  while (stream.length > limits.streamMessages) dropFirst(state, stream, 'bound');
  while (state.totals.bytes > limits.bytes && !state.drops.replaying) {
    const old = nextToGo(state, stream);
    if (!old) break;
    dropFirst(state, old, 'room');
  }
}

function insert({ byAge, totals }: State, stream: Stream, holder: RowHolder): void {
  const { user, nextSeq: seq } = stream;
  const bytes = holder.bytesOf(seq);
  byAge.push(stream, seq);
  user.byAge.push(stream, seq);
  stream.push(holder);
  if (!stream.place || user.byLastWrite.last !== stream.place) {
    if (stream.place) user.byLastWrite.remove(stream.place);
    stream.place = user.byLastWrite.push(stream);
  }
  totals.messages++;
  totals.bytes += bytes;
  user.holdings.take('history_bytes', bytes);
}

function dropFirst(state: State, stream: Stream, why: Why): void {
  const [seq, at] = [stream.firstSeq, stream.firstAt];
  takeFirst(state, stream);
  if (why === 'room') {
    state.drops.rowDropped(stream, seq);
    state.totals.evictedMessages++;
    stream.evictedAt = at;
    state.evictions.note(stream.user.userId, at, stream.length === 0);
  }
  if (stream.length === 0) removeStream(state, stream, why);
}

/** Takes the oldest row out of its stream and out of all orders. */
function takeFirst({ byAge, totals }: State, stream: Stream): void {
  const { user, firstSeq: seq } = stream;
  const holder = stream.dropFirst();
  if (!holder) return;
  const bytes = holder.bytesOf(seq);
  byAge.noteDropped();
  user.byAge.noteDropped();
  totals.messages--;
  totals.bytes -= bytes;
  user.holdings.release('history_bytes', bytes);
  if (!(holder instanceof LinkRow) && holder.drop(seq)) forgetCommandOf(user, holder);
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

function removeStream(state: State, stream: Stream, why: Why): void {
  const { user } = stream;
  user.streams.delete(stream.suffix);
  if (stream.place) user.byLastWrite.remove(stream.place);
  state.seqFloor = Math.max(state.seqFloor, stream.nextSeq);
  if (why === 'room') state.totals.evictedStreams++;
  if (user.streams.size === 0) state.users.delete(user.userId);
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
