/** One retained message in few bytes, and its stream. Rows are added and dropped only in history-rows.ts. */
import type { Message, NewMessage, StoredPayload } from '../../core/history/message.ts';
import { utf8Length } from '../../core/json.ts';
import type { Holdings } from '../../core/shares/shares.ts';
import type { List, ListItem } from './list.ts';
import type { SparseQueue } from './list-sparse.ts';
import { packTime, unpackTime } from './list-times.ts';
import type { SortedMap } from './sorted.ts';

/**
 * The bytes that a message takes besides its payload: its object, its ids, and its places in its stream, among all
 * messages and among those of its command. The growth of the heap over 200,000 messages with ids of 36 characters was
 * 768 bytes for each (Node 24). The rest is for longer ids and a terminal error.
 */
export const ROW_BYTES = 1024;

/**
 * The messages of a stream are `rows` from `head` on, with consecutive `seq`. `evictedAt`: the time of the newest
 * message that was dropped for lack of room.
 */
export type Stream = {
  readonly user: User;
  readonly suffix: string;
  readonly rows: (Row | undefined)[];
  head: number;
  nextSeq: number;
  evictedAt: number;
  place: ListItem<Stream> | null;
};

export type User = {
  readonly userId: string;
  readonly streams: SortedMap<Stream>;
  readonly byLastWrite: List<Stream>;
  /** The newest row of each command; `olderOfCommand` leads to the others. */
  readonly byCommand: Map<string, Row>;
  /** Rows of all streams, oldest first. */
  readonly byAge: SparseQueue<Row>;
  /** Counts the share `history_bytes`. */
  readonly holdings: Holdings;
};

/** A message to place in a stream. */
export type Placed = { readonly stream: Stream; readonly at: number };

/** One retained message. Its Message object is made at the first read, because hardly any message is ever read. */
export abstract class Row {
  readonly stream: Stream;
  readonly seq: number;
  readonly payloadBytes: number;
  /** The number of bytes that the row counts for in the bound on bytes. */
  readonly bytes: number;
  /** Its neighbours among all messages; only RowList changes them. */
  before: Row | null = null;
  after: Row | null = null;
  /** Its neighbours among the rows of its command. */
  olderOfCommand: Row | null = null;
  newerOfCommand: Row | null = null;
  /** True once it is no longer retained. */
  gone = false;
  /** When the row was retained, as `packTime` packs it. */
  readonly #at: number;
  #shaped: Message | null = null;

  constructor({ stream, at }: Placed, { payload, spill }: StoredPayload) {
    const inlineBytes = payload === null ? 0 : utf8Length(payload);
    this.stream = stream;
    this.seq = stream.nextSeq++;
    this.payloadBytes = payload === null ? (spill?.bytes ?? 0) : inlineBytes;
    this.bytes = ROW_BYTES + inlineBytes;
    this.#at = packTime(at);
  }

  abstract get commandId(): string | null;
  protected abstract get given(): NewMessage;

  get at(): number {
    return unpackTime(this.#at);
  }

  /** The row as a message: the same object on each read. */
  get message(): Message {
    return (this.#shaped ??= shape(this.given, this));
  }
}

/** A row of any message. */
export class MessageRow extends Row {
  protected readonly given: NewMessage;

  constructor(placed: Placed, message: NewMessage) {
    super(placed, message);
    this.given = message;
  }

  get commandId(): string | null {
    return this.given.commandId;
  }
}

/** Copies each member, because `given` may be the row itself. */
function shape(given: NewMessage, { seq, at, payloadBytes }: Row): Message {
  const { id, userId, suffix, kind, clientId, instanceId, commandId, traceId, parentSpanId } = given;
  const { payload, spill, error, link } = given;
  const ids = { id, userId, suffix, kind, clientId, instanceId, commandId, traceId, parentSpanId };
  const message = { ...ids, payload, spill, error, seq, at, payloadBytes };
  return link ? { ...message, link } : message;
}

/** Rows in the order added. A row is its own list node. */
export class RowList {
  #first: Row | null = null;
  #last: Row | null = null;

  get first(): Row | null {
    return this.#first;
  }

  push(row: Row): void {
    row.before = this.#last;
    if (this.#last) this.#last.after = row;
    else this.#first = row;
    this.#last = row;
  }

  /** The row must be in the list. */
  remove(row: Row): void {
    const { before, after } = row;
    if (before) before.after = after;
    else this.#first = after;
    if (after) after.before = before;
    else this.#last = before;
    row.before = null;
    row.after = null;
  }

  /** Reads the rows, newest first. */
  *backwards(): Generator<Row> {
    for (let row = this.#last; row; row = row.before) yield row;
  }
}
