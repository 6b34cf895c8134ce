import type { Message, NewMessage } from '../../core/history/message.ts';
import { utf8Length } from '../../core/json.ts';
import { HISTORY_BYTES, RETENTION_MS, STREAM_MESSAGES, STREAMS_PER_USER } from '../../core/limits.ts';
import { createEvictions, type Evictions } from './evictions.ts';
import { createList, type Entry, type List } from './list.ts';
import { createSortedMap, type SortedMap } from './sorted.ts';

export type HistoryLimits = {
  /** Messages of one stream. */
  readonly streamMessages: number;
  readonly retentionMs: number;
  /** Of all streams together: inline payloads and ROW_BYTES a message. */
  readonly bytes: number;
  readonly streamsPerUser: number;
};

export const HISTORY_LIMITS: HistoryLimits = {
  streamMessages: STREAM_MESSAGES,
  retentionMs: RETENTION_MS,
  bytes: HISTORY_BYTES,
  streamsPerUser: STREAMS_PER_USER,
};

/**
 * What a message costs beside its payload: its object, its ids, and its places in its stream, among all messages and among those of its
 * command. Measured on Node 24 as the growth of the heap over 200,000 messages with ids of 36 characters: 768 bytes each; the rest is for
 * longer ids and a terminal error.
 */
export const ROW_BYTES = 1024;

export type Row = {
  readonly message: Message;
  readonly bytes: number;
  readonly stream: Stream;
  place: Entry<Row> | null;
};

/** Its messages are `rows` from `head` on, of consecutive `seq`. `evictedAt`: time of the newest one dropped for lack of room. */
export type Stream = {
  readonly user: User;
  readonly suffix: string;
  readonly rows: (Row | undefined)[];
  head: number;
  nextSeq: number;
  evictedAt: number;
  place: Entry<Stream> | null;
};

export type User = {
  readonly userId: string;
  readonly streams: SortedMap<Stream>;
  readonly byLastWrite: List<Stream>;
  readonly byCommand: Map<string, Row[]>;
};

export type Totals = { messages: number; bytes: number; evictedMessages: number; evictedStreams: number };

/** The messages of the history store, in every order that they are asked for, and the only hands that add or drop one. */
export interface Rows {
  readonly users: SortedMap<User>;
  readonly evictions: Evictions;
  readonly totals: Readonly<Totals>;
  /** Of all streams, newest first. */
  newest(): Iterable<Row>;
  /** `at` never goes back from one call to the next. Amortised constant time. */
  add(message: NewMessage, at: number): Message;
  /** Drops what was retained at this time or before. */
  expire(before: number): void;
}

type State = {
  readonly limits: HistoryLimits;
  readonly users: SortedMap<User>;
  readonly byAge: List<Row>;
  readonly evictions: Evictions;
  readonly totals: Totals;
  /** No stream that is gone had given a `seq` of this or above, so one that comes again begins here. */
  seqFloor: number;
};

/** Why a message goes: a bound that holds for every stream alike, or lack of room, which is a gap. */
type Why = 'bound' | 'room';

export function createRows(limits: HistoryLimits): Rows {
  const state: State = {
    limits,
    users: createSortedMap(),
    byAge: createList(),
    evictions: createEvictions(),
    totals: { messages: 0, bytes: 0, evictedMessages: 0, evictedStreams: 0 },
    seqFloor: 1,
  };
  return {
    users: state.users,
    evictions: state.evictions,
    totals: state.totals,
    newest: () => backwards(state.byAge),
    add(message, at) {
      const row = append(state, streamFor(state, message), { message, at });
      while (lengthOf(row.stream) > limits.streamMessages) dropFirst(state, row.stream, 'bound');
      for (let old = state.byAge.first(); old && old.value !== row; old = state.byAge.first()) {
        if (state.totals.bytes <= limits.bytes) break;
        dropFirst(state, old.value.stream, 'room');
      }
      return row.message;
    },
    expire(before) {
      state.evictions.expire(before);
      for (let old = state.byAge.first(); old && old.value.message.at <= before; old = state.byAge.first()) {
        dropFirst(state, old.value.stream, 'bound');
      }
    },
  };
}

export function lengthOf(stream: Stream): number {
  return stream.rows.length - stream.head;
}

/** The message at this place, counted from the oldest that is retained. */
export function messageAt(stream: Stream, index: number): Message | undefined {
  return stream.rows[stream.head + index]?.message;
}

function* backwards(rows: List<Row>): Generator<Row> {
  for (let entry = rows.last(); entry; entry = entry.previous) yield entry.value;
}

function streamFor(state: State, { userId, suffix }: NewMessage): Stream {
  const known = state.users.get(userId)?.streams.get(suffix);
  if (known) return known;
  const crowded = state.users.get(userId);
  if (crowded && crowded.streams.size >= state.limits.streamsPerUser) {
    const longestUnwritten = crowded.byLastWrite.first()?.value;
    while (longestUnwritten && lengthOf(longestUnwritten) > 0) dropFirst(state, longestUnwritten, 'room');
  }
  const user = state.users.get(userId) ?? newUser(userId);
  const stream: Stream = {
    user,
    suffix,
    rows: [],
    head: 0,
    nextSeq: state.seqFloor,
    // It may be one of those that were dropped whole, come again.
    evictedAt: state.evictions.wholeStreamAt(userId),
    place: null,
  };
  state.users.set(userId, user);
  user.streams.set(suffix, stream);
  return stream;
}

function newUser(userId: string): User {
  return { userId, streams: createSortedMap(), byLastWrite: createList(), byCommand: new Map() };
}

function append(state: State, stream: Stream, given: { readonly message: NewMessage; readonly at: number }): Row {
  const { payload, spill } = given.message;
  const inlineBytes = payload === null ? 0 : utf8Length(payload);
  const payloadBytes = payload === null ? (spill?.bytes ?? 0) : inlineBytes;
  const message: Message = { ...given.message, seq: stream.nextSeq++, at: given.at, payloadBytes };
  const row: Row = { message, bytes: ROW_BYTES + inlineBytes, stream, place: null };
  const { user } = stream;
  row.place = state.byAge.push(row);
  stream.rows.push(row);
  if (stream.place) user.byLastWrite.remove(stream.place);
  stream.place = user.byLastWrite.push(stream);
  if (message.commandId !== null) {
    const rows = user.byCommand.get(message.commandId);
    if (rows) rows.push(row);
    else user.byCommand.set(message.commandId, [row]);
  }
  state.totals.messages++;
  state.totals.bytes += row.bytes;
  return row;
}

function dropFirst(state: State, stream: Stream, why: Why): void {
  const row = stream.rows[stream.head];
  if (!row) return;
  // The slot is emptied at once, so that a dropped payload is not held until the array is shortened.
  stream.rows[stream.head++] = undefined;
  if (stream.head * 2 > stream.rows.length) {
    stream.rows.splice(0, stream.head);
    stream.head = 0;
  }
  if (row.place) state.byAge.remove(row.place);
  forgetCommandOf(row);
  state.totals.messages--;
  state.totals.bytes -= row.bytes;
  if (why === 'room') {
    state.totals.evictedMessages++;
    stream.evictedAt = row.message.at;
    state.evictions.note(stream.user.userId, row.message.at, lengthOf(stream) === 0);
  }
  if (lengthOf(stream) === 0) removeStream(state, stream, why);
}

function forgetCommandOf({ message, stream: { user } }: Row): void {
  if (message.commandId === null) return;
  const rows = user.byCommand.get(message.commandId) ?? [];
  // Nearly always the first: only another stream's bound can take a younger one before it.
  rows.splice(
    rows.findIndex((row) => row.message === message),
    1,
  );
  if (rows.length === 0) user.byCommand.delete(message.commandId);
}

function removeStream(state: State, stream: Stream, why: Why): void {
  const { user } = stream;
  user.streams.delete(stream.suffix);
  if (stream.place) user.byLastWrite.remove(stream.place);
  state.seqFloor = Math.max(state.seqFloor, stream.nextSeq);
  if (why === 'room') state.totals.evictedStreams++;
  if (user.streams.size === 0) state.users.delete(user.userId);
}
