/**
 * The rows of the memory history: each holds one retained message in few bytes. Also the streams and users that have
 * the rows, and a linked list of rows. Only history-rows.ts adds and drops rows.
 */
import { linkRowId, type LinkDetails } from '../../core/connections/connection.ts';
import type { Message, NewMessage, StoredPayload } from '../../core/history/message.ts';
import { utf8Length } from '../../core/json.ts';
import type { Holdings } from '../../core/shares/shares.ts';
import { packTime, unpackTime, type List, type ListItem, type SortedMap, type SparseQueue } from './collections.ts';

/**
 * The size that a message counts for besides its payload, in bytes. It covers the message's object, its ids, and its
 * entries in three orders: in its stream, among all messages, and among those of its command. In a measurement with
 * 200,000 messages and ids of 36 characters, each message took 768 bytes of the heap (Node 24). The rest is for longer
 * ids and an error.
 */
export const ROW_BYTES = 1024;

/**
 * A stream and its messages: the elements of `rows` from index `head` on, with consecutive `seq`. `evictedAt`: when the
 * newest of the messages that were dropped for lack of room was retained.
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
  /** The newest row of each command, by command id. From there, `olderOfCommand` leads to the others. */
  readonly byCommand: Map<string, Row>;
  /** Rows of all streams, oldest first. */
  readonly byAge: SparseQueue<Row>;
  /** The user's holdings, in which the bytes of these rows are counted as `history_bytes`. */
  readonly holdings: Holdings;
};

/** Where a new message belongs: its stream, and the time at which it is retained. */
export type Placed = { readonly stream: Stream; readonly at: number };

/** One retained message. Its Message object is made at the first read, because hardly any message is ever read. */
export abstract class Row {
  readonly stream: Stream;
  readonly seq: number;
  readonly payloadBytes: number;
  /** The number of bytes that the row counts for in the limit on the size of history. */
  readonly bytes: number;
  /** The neighbours of the row in a RowList of all messages. Only RowList changes them. */
  before: Row | null = null;
  after: Row | null = null;
  /** The next older row of the same command. */
  olderOfCommand: Row | null = null;
  newerOfCommand: Row | null = null;
  /** True once the row is no longer retained. */
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

  /** The message that was given. Unlike `message`, it keeps no object. */
  get content(): NewMessage {
    return this.given;
  }

  /** The row as a message. Every read returns the same object. */
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

/** Makes the message of a row. Copies each member, because `given` may be the row itself. */
function shape(given: NewMessage, { seq, at, payloadBytes }: Row): Message {
  const { id, userId, suffix, kind, clientId, instanceId, commandId, traceId, parentSpanId } = given;
  const { payload, spill, error, link, contextId, callerLabel } = given;
  const ids = { id, userId, suffix, kind, clientId, instanceId, commandId, traceId, parentSpanId };
  const message = { ...ids, payload, spill, error, seq, at, payloadBytes };
  if (link) return { ...message, link };
  if (contextId === undefined && !callerLabel) return message;
  return { ...message, ...(contextId !== undefined && { contextId }), ...(callerLabel && { callerLabel }) };
}

/** A linked list of rows, in the order in which they were added. A row is its own node in the list. */
export class RowList {
  /** The next row of a reader that comes back in later turns. If this row is removed, the cursor moves on. */
  cursor: Row | null = null;
  #first: Row | null = null;
  #last: Row | null = null;

  get first(): Row | null {
    return this.#first;
  }

  get last(): Row | null {
    return this.#last;
  }

  push(row: Row): void {
    row.before = this.#last;
    if (this.#last) this.#last.after = row;
    else this.#first = row;
    this.#last = row;
  }

  /** Removes a row, which must be in the list. */
  remove(row: Row): void {
    const { before, after } = row;
    if (this.cursor === row) this.cursor = after;
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

// The history rows of links that opened or ended.

/** A message of a link history. */
type LinkMessage = NewMessage & { readonly link: LinkDetails };

/** Says whether a LinkRow, which stores no id, can hold the message. */
export function fitsLinkRow(message: NewMessage): message is LinkMessage {
  return message.link !== undefined && message.id === linkRowId(message.kind, message.link.epoch);
}

/**
 * A row that is also its message. It is one object, because each open link retains such a row and hardly any is ever
 * read.
 */
export class LinkRow extends Row implements LinkMessage {
  readonly kind: NewMessage['kind'];
  readonly clientId: string | null;
  readonly instanceId: string | null;
  readonly #clientType: LinkDetails['clientType'];
  readonly #nodeId: string;
  readonly #epoch: number;
  readonly #cause: LinkDetails['cause'];
  readonly #closeCode: number | null;
  readonly #openMs: number | null;
  readonly #previousInstanceId: string | null;

  constructor(placed: Placed, message: LinkMessage) {
    super(placed, message);
    const { kind, clientId, instanceId, link } = message;
    this.kind = kind;
    this.clientId = clientId;
    this.instanceId = instanceId;
    this.#clientType = link.clientType;
    this.#nodeId = link.nodeId;
    this.#epoch = link.epoch;
    this.#cause = link.cause;
    this.#closeCode = link.closeCode;
    this.#openMs = link.openMs;
    this.#previousInstanceId = link.previousInstanceId;
  }

  protected get given(): NewMessage {
    return this;
  }

  get id(): string {
    return linkRowId(this.kind, this.#epoch);
  }

  get userId(): string {
    return this.stream.user.userId;
  }

  get suffix(): string {
    return this.stream.suffix;
  }

  get link(): LinkDetails {
    return {
      clientType: this.#clientType,
      nodeId: this.#nodeId,
      epoch: this.#epoch,
      cause: this.#cause,
      closeCode: this.#closeCode,
      openMs: this.#openMs,
      previousInstanceId: this.#previousInstanceId,
    };
  }

  get commandId(): null {
    return null;
  }

  get traceId(): null {
    return null;
  }

  get parentSpanId(): null {
    return null;
  }

  get error(): null {
    return null;
  }

  get payload(): null {
    return null;
  }

  get spill(): null {
    return null;
  }
}
