/**
 * Holds the retained messages and their indexes, remembers which messages were dropped early, and has the rows of
 * messages about commands. No other file may add or drop a message.
 */
import type { CallerLabel } from '../../core/auth/principal.ts';
import type { Command } from '../../core/commands/command.ts';
import {
  NO_PAYLOAD,
  type MessageKind,
  type NewMessage,
  type PayloadRef,
  type TerminalError,
} from '../../core/history/message.ts';
import type { CommandMessage } from '../../core/commands/transaction.ts';
import type { ClientKey, CommandKey } from '../../core/ids.ts';
import type { JsonText } from '../../core/json.ts';
import { HISTORY_BYTES, RETENTION_MS, STREAMS_PER_USER, STREAM_MESSAGES } from '../../core/limits.ts';
import type { Holdings, Shares } from '../../core/shares/shares.ts';
import { List, SparseQueue, createSortedMap, type ListItem, type SortedMap } from './collections.ts';
import { LinkRow, MessageRow, Row, RowList, fitsLinkRow, type Placed, type Stream, type User } from './history-row.ts';

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

export type { Stream } from './history-row.ts';

export type Totals = { messages: number; bytes: number; evictedMessages: number; evictedStreams: number };

/**
 * Learns which rows were dropped for lack of room. Which rows these are depends on what all users hold, so a journal
 * has to record it.
 */
export interface RowDrops {
  /** True while a journal is read: nothing is dropped for lack of room, because the journal says what was dropped. */
  readonly replaying: boolean;
  rowDropped(row: Row): void;
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
  /** All messages, oldest first. */
  readonly byAge: RowList;
  /** Reads all messages, newest first. */
  newest(): Iterable<Row>;
  /**
   * Adds a message and returns its row. `at` must not decrease from one call to the next. `seq`: the number that the
   * message had before the process was restarted; returns null if the stream has it already. Takes amortised constant
   * time.
   */
  add(message: NewMessage, at: number, seq?: number): Row | null;
  /** Adds a message about a command to the stream of the command's client, like `add`. */
  addOfCommand(about: About, part: CommandMessage, at: number, seq?: number): Row | null;
  /** Returns the command id as the rows of this command have it, so that it is in memory once; undefined without rows. */
  idOf(command: Pick<CommandKey, 'userId' | 'commandId'>): string | undefined;
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
  readonly byAge: RowList;
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
    byAge: new RowList(),
    evictions: createEvictions(),
    totals: { messages: 0, bytes: 0, evictedMessages: 0, evictedStreams: 0 },
    seqFloor: 1,
  };
  return {
    users: state.users,
    evictions: state.evictions,
    totals: state.totals,
    byAge: state.byAge,
    newest: () => state.byAge.backwards(),
    get seqFloor() {
      return state.seqFloor;
    },
    set seqFloor(seq) {
      state.seqFloor = Math.max(state.seqFloor, seq);
    },
    add(message, at, seq) {
      const placed = { stream: streamFor(state, message), at };
      if (seq !== undefined && !hasPlace(placed.stream, seq)) return null;
      return append(state, fitsLinkRow(message) ? new LinkRow(placed, message) : new MessageRow(placed, message));
    },
    addOfCommand(about, part, at, seq) {
      const stream = streamFor(state, about.head);
      if (seq !== undefined && !hasPlace(stream, seq)) return null;
      return append(state, new CommandRow({ stream, at }, about, part));
    },
    idOf: ({ userId, commandId }) => state.users.get(userId)?.byCommand.get(commandId)?.commandId ?? undefined,
    dropUpTo(userId, suffix, seq) {
      const stream = state.users.get(userId)?.streams.get(suffix);
      for (let row = stream?.rows[stream.head]; stream && row && row.seq <= seq; row = stream.rows[stream.head])
        dropFirst(state, stream, 'room');
    },
    gaps: () => state.evictions.gaps(),
    restoreGap(gap) {
      const stream = gap.suffix === null ? null : state.users.get(gap.userId)?.streams.get(gap.suffix);
      if (stream) stream.evictedAt = Math.max(stream.evictedAt, gap.droppedAt);
      if (gap.suffix === null) state.evictions.restore(gap);
    },
    expire(before) {
      state.evictions.expire(before);
      for (let old = state.byAge.first; old && old.at <= before; old = state.byAge.first) {
        dropFirst(state, old.stream, 'bound');
      }
    },
  };
}

/**
 * Returns the row to drop next: the oldest row of the user who is most over their guarantee, or the oldest of all if no
 * user is over. Never returns the newest row.
 */
function nextToGo({ shares, users, byAge }: State, newest: Row): Row | null {
  const holder = shares.mostOver('history_bytes');
  const ofHolder = holder && users.get(holder.userId)?.byAge.first();
  const old = ofHolder && ofHolder !== newest ? ofHolder : byAge.first;
  return old === newest ? null : old;
}

export function lengthOf(stream: Stream): number {
  return stream.rows.length - stream.head;
}

/** Returns the row at this index. Index 0 is the oldest row that is retained. */
export function rowAt(stream: Stream, index: number): Row | undefined {
  return stream.rows[stream.head + index];
}

/** Makes `seq` the number of the stream's next row; false if the stream has a row of this number already. */
function hasPlace(stream: Stream, seq: number): boolean {
  if (lengthOf(stream) > 0 && seq < stream.nextSeq) return false;
  stream.nextSeq = seq;
  return true;
}

function streamFor(state: State, { userId, suffix }: Pick<StreamHead, 'userId' | 'suffix'>): Stream {
  const crowded = state.users.get(userId);
  const known = crowded?.streams.get(suffix);
  if (known) return known;
  if (crowded && crowded.streams.size >= state.limits.streamsPerUser && !state.drops.replaying) {
    const longestUnwritten = crowded.byLastWrite.first?.value;
    while (longestUnwritten && lengthOf(longestUnwritten) > 0) dropFirst(state, longestUnwritten, 'room');
  }
  const user = state.users.get(userId) ?? newUser(userId, state.shares.of(userId));
  const stream: Stream = {
    user,
    suffix,
    rows: [],
    head: 0,
    nextSeq: state.seqFloor,
    // A stream with the same name may have been dropped before, with all its messages.
    evictedAt: state.evictions.wholeStreamAt(userId),
    place: null,
  };
  state.users.set(userId, user);
  user.streams.set(suffix, stream);
  return stream;
}

function newUser(userId: string, holdings: Holdings): User {
  const byAge = new SparseQueue<Row>((row) => row.gone);
  return { userId, streams: createSortedMap(), byLastWrite: new List(), byCommand: new Map(), byAge, holdings };
}

/** Adds the row, and then drops the rows that exceed the limits. */
function append(state: State, row: Row): Row {
  insert(state, row);
  const { limits } = state;
  while (lengthOf(row.stream) > limits.streamMessages) dropFirst(state, row.stream, 'bound');
  while (state.totals.bytes > limits.bytes && !state.drops.replaying) {
    const old = nextToGo(state, row);
    if (!old) break;
    dropFirst(state, old.stream, 'room');
  }
  return row;
}

function insert(state: State, row: Row): void {
  const { stream } = row;
  const { user } = stream;
  state.byAge.push(row);
  stream.rows.push(row);
  if (!stream.place || user.byLastWrite.last !== stream.place) {
    if (stream.place) user.byLastWrite.remove(stream.place);
    stream.place = user.byLastWrite.push(stream);
  }
  noteCommandOf(row);
  state.totals.messages++;
  state.totals.bytes += row.bytes;
  user.byAge.push(row);
  user.holdings.take('history_bytes', row.bytes);
}

function dropFirst(state: State, stream: Stream, why: Why): void {
  const row = stream.rows[stream.head];
  if (!row) return;
  // Clears the element at once, so that a dropped payload is not kept in memory until the array is shortened.
  stream.rows[stream.head++] = undefined;
  if (stream.head * 2 > stream.rows.length) {
    stream.rows.splice(0, stream.head);
    stream.head = 0;
  }
  state.byAge.remove(row);
  forgetCommandOf(row);
  state.totals.messages--;
  state.totals.bytes -= row.bytes;
  row.gone = true;
  stream.user.byAge.noteDeleted();
  stream.user.holdings.release('history_bytes', row.bytes);
  if (why === 'room') {
    state.drops.rowDropped(row);
    state.totals.evictedMessages++;
    stream.evictedAt = row.at;
    state.evictions.note(stream.user.userId, row.at, lengthOf(stream) === 0);
  }
  if (lengthOf(stream) === 0) removeStream(state, stream, why);
}

function noteCommandOf(row: Row): void {
  const { commandId } = row;
  if (commandId === null) return;
  const { byCommand } = row.stream.user;
  const newest = byCommand.get(commandId) ?? null;
  row.olderOfCommand = newest;
  if (newest) newest.newerOfCommand = row;
  byCommand.set(commandId, row);
}

function forgetCommandOf(row: Row): void {
  const { commandId, olderOfCommand: older, newerOfCommand: newer } = row;
  if (commandId === null) return;
  const { byCommand } = row.stream.user;
  if (older) older.newerOfCommand = newer;
  if (newer) newer.olderOfCommand = older;
  else if (older) byCommand.set(commandId, older);
  else byCommand.delete(commandId);
  row.olderOfCommand = null;
  row.newerOfCommand = null;
}

/** Returns all rows of a command of this user, newest first. */
export function rowsOfCommand({ byCommand }: User, commandId: string): readonly Row[] {
  const rows: Row[] = [];
  for (let row = byCommand.get(commandId) ?? null; row; row = row.olderOfCommand) rows.push(row);
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

// The history rows of messages about commands.

/** The values that the rows of all commands of one client share: the client's ids, and the suffix of their stream. */
export type StreamHead = ClientKey & { readonly suffix: string };

/**
 * What the rows of a command show of its call: its trace, the context that it named, and the program that made it. Most
 * commands have none of these and use the object NO_TRACE.
 */
export type TraceIds = Pick<
  Command,
  'traceId' | 'parentSpanId' | 'traceFlags' | 'traceState' | 'callSpan' | 'contextId'
> &
  Pick<NewMessage, 'callerLabel'>;

export const NO_TRACE: TraceIds = {
  traceId: null,
  parentSpanId: null,
  traceFlags: null,
  traceState: null,
  callSpan: null,
};

/** The command that a message is about: its id, its trace and its stream. */
export type About = { readonly commandId: string; readonly trace: TraceIds; readonly head: StreamHead };

/**
 * A row that is also its message. It is one object, because each call retains two of these rows and hardly any is ever
 * read.
 */
class CommandRow extends Row implements NewMessage {
  readonly kind: MessageKind;
  readonly commandId: string;
  readonly instanceId: string | null;
  readonly error: TerminalError | null;
  readonly payload: JsonText | null;
  readonly spill: PayloadRef | null;
  readonly #head: StreamHead;
  readonly #trace: TraceIds;
  readonly #id: string | null;

  constructor(placed: Placed, { commandId, trace, head }: About, part: CommandMessage) {
    const { kind, instanceId, id, kept = NO_PAYLOAD, error } = part;
    super(placed, kept);
    this.kind = kind;
    this.commandId = commandId;
    this.instanceId = instanceId;
    this.error = error ?? null;
    this.payload = kept.payload;
    this.spill = kept.spill;
    this.#head = head;
    this.#trace = trace;
    this.#id = id ?? null;
  }

  protected get given(): NewMessage {
    return this;
  }

  get id(): string {
    return this.#id ?? `${this.commandId}:${this.kind}`;
  }

  get userId(): string {
    return this.#head.userId;
  }

  get clientId(): string {
    return this.#head.clientId;
  }

  get suffix(): string {
    return this.#head.suffix;
  }

  get traceId(): string | null {
    return this.#trace.traceId;
  }

  get parentSpanId(): string | null {
    return this.#trace.parentSpanId;
  }

  /** Undefined where other messages lack the member; so is `callerLabel`. */
  get contextId(): string | undefined {
    return this.#trace.contextId;
  }

  get callerLabel(): CallerLabel | undefined {
    return this.kind === 'command' ? this.#trace.callerLabel : undefined;
  }
}
