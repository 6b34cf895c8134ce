/**
 * The rows of the memory history: the objects that hold them, the view in which a row is read, the streams and users
 * that they belong to, and their order by age.
 *
 * Only history-rows.ts adds and drops rows.
 */
import { endMessageId, type Command } from '../../core/commands/command.ts';
import type { CommandMessage } from '../../core/commands/transaction.ts';
import { linkRowId, type LinkDetails } from '../../core/connections/link-row.ts';
import { NO_PAYLOAD, type Message, type NewMessage, type PayloadRef } from '../../core/history/message.ts';
import type { ClientKey } from '../../core/ids.ts';
import { utf8Length, type JsonText } from '../../core/json.ts';
import type { Holdings } from '../../core/shares/shares.ts';
import type { List, ListItem } from './linked-list.ts';
import { packTime, unpackTime } from './packed-time.ts';
import type { SortedMap } from './sorted-map.ts';
import { SparseQueue } from './sparse-queue.ts';

/**
 * The size that a message counts for besides its payload, in bytes. It covers the message's object, its ids, and its
 * positions in three orders: in its stream, among all messages, and among the messages of its user.
 */
export const ROW_BYTES = 1024;

export type User = {
  readonly userId: string;
  readonly streams: SortedMap<Stream>;
  readonly byLastWrite: List<Stream>;
  /**
   * The newest holder of rows of each command, by command id. Its `older` links lead to the other holders of the
   * command.
   */
  readonly byCommand: Map<string, CommandHolder>;
  /** The rows of all streams. */
  readonly byAge: AgeQueue;
  /** The holdings of the user. The bytes of these rows are counted there as `history_bytes`. */
  readonly holdings: Holdings;
};

/**
 * An object that holds one or more rows. Each method takes the number of a row (`seq`) and returns a value of that row.
 */
interface Holder {
  /** The command that the rows are about; null if they are about no command. */
  readonly commandId: string | null;
  /** When the row was retained, in epoch milliseconds. */
  timeOf(seq: number): number;
  /** The number of bytes that the row counts for in the limit on the size of history. */
  bytesOf(seq: number): number;
  /** Returns the retained message, perhaps as a new object. `stream`: the stream of the row. */
  messageOf(seq: number, stream: Stream): NewMessage;
}

/** A holder of rows that may be about a command. */
export interface CommandHolder extends Holder {
  /** The neighbours in the list of the command's holders. Only history-rows.ts may write these fields. */
  older: CommandHolder | null;
  newer: CommandHolder | null;
  readonly suffix: string;
  /** The numbers of the rows that are retained. */
  readonly seqs: readonly number[];
  /** Forgets the row with this number. Returns true if the object now holds no row. */
  drop(seq: number): boolean;
}
export type RowHolder = LinkRow | CommandHolder;

/** A stream. Its rows have consecutive numbers (`Message.seq`), and are dropped oldest first. */
export class Stream {
  readonly user: User;
  readonly suffix: string;
  /** When the newest message among those dropped for lack of room was retained, in epoch milliseconds. */
  evictedAt: number;
  /** The stream's node in the list of its user's streams; null before the first row. */
  place: ListItem<Stream> | null = null;
  /** The holder of each row, from index `#head` on. */
  readonly #holders: (RowHolder | undefined)[] = [];
  #head = 0;
  #firstSeq: number;
  /** The Message objects that were read, by row number; null before the first read. */
  #shown: Map<number, Message> | null = null;

  constructor(user: User, suffix: string, from: { readonly seq: number; readonly evictedAt: number }) {
    this.user = user;
    this.suffix = suffix;
    this.#firstSeq = from.seq;
    this.evictedAt = from.evictedAt;
  }

  get length(): number {
    return this.#holders.length - this.#head;
  }

  /** The number of the oldest row. Every row with a lower number was dropped. */
  get firstSeq(): number {
    return this.#firstSeq;
  }

  get nextSeq(): number {
    return this.#firstSeq + this.length;
  }

  /** Makes `seq` the number of the next row. The stream must have no rows. */
  skipTo(seq: number): void {
    this.#firstSeq = seq;
  }

  push(holder: RowHolder): void {
    this.#holders.push(holder);
  }

  /** Drops the oldest row, and returns its holder. */
  dropFirst(): RowHolder | undefined {
    const holder = this.#holders[this.#head];
    if (!holder) return undefined;
    this.#shown?.delete(this.#firstSeq);
    this.#firstSeq++;
    // Clears the element at once, so that a dropped payload is not kept in memory until the array is shortened.
    this.#holders[this.#head++] = undefined;
    if (this.#head * 2 > this.#holders.length) {
      this.#holders.splice(0, this.#head);
      this.#head = 0;
    }
    return holder;
  }

  /** Returns when the oldest row was retained; Infinity if there is none. */
  get firstAt(): number {
    return this.#holders[this.#head]?.timeOf(this.#firstSeq) ?? Infinity;
  }

  /** Returns the row at this index. Index 0 is the oldest row. */
  row(index: number): Row | undefined {
    const holder = this.#holders[this.#head + index];
    return holder && new Row(this, this.#firstSeq + index, holder);
  }

  /** Returns a row as a message. Every read of the row returns the same object. */
  show(row: Row): Message {
    const shown = (this.#shown ??= new Map());
    const known = shown.get(row.seq);
    if (known) return known;
    const made = shape(row);
    shown.set(row.seq, made);
    return made;
  }
}

/** One retained row, as it is read. */
export class Row {
  readonly stream: Stream;
  readonly seq: number;
  readonly #holder: RowHolder;

  constructor(stream: Stream, seq: number, holder: RowHolder) {
    this.stream = stream;
    this.seq = seq;
    this.#holder = holder;
  }

  get at(): number {
    return this.#holder.timeOf(this.seq);
  }

  get bytes(): number {
    return this.#holder.bytesOf(this.seq);
  }

  /** The retained message. Unlike `message`, this creates no object that the stream caches. */
  get content(): NewMessage {
    return this.#holder.messageOf(this.seq, this.stream);
  }

  /** The row as a message. Every read returns the same object. */
  get message(): Message {
    return this.stream.show(this);
  }
}

/** Makes the Message of a row. Copies each member by name, because the retained object may have more members. */
function shape({ seq, at, bytes, content }: Row): Message {
  const { id, userId, suffix, kind, clientId, instanceId, commandId, traceId, parentSpanId } = content;
  const { payload, spill, error, link, contextId, callerLabel } = content;
  const ids = { id, userId, suffix, kind, clientId, instanceId, commandId, traceId, parentSpanId };
  const payloadBytes = payload === null ? (spill?.bytes ?? 0) : bytes - ROW_BYTES;
  const message = { ...ids, payload, spill, error, seq, at, payloadBytes };
  if (link) return { ...message, link };
  if (contextId === undefined && !callerLabel) return message;
  return { ...message, ...(contextId !== undefined && { contextId }), ...(callerLabel && { callerLabel }) };
}

function bytesOf(payload: JsonText | null): number {
  return ROW_BYTES + (payload === null ? 0 : utf8Length(payload));
}

/** The number that stands for a row that is not retained. */
const NO_ROW = -1;

/** Holds one row of any message. */
export class MessageRow implements CommandHolder {
  older: CommandHolder | null = null;
  newer: CommandHolder | null = null;
  readonly #message: NewMessage;
  readonly #seq: number;
  /** When the row was retained, as `packTime` packs it. */
  readonly #at: number;
  readonly #bytes: number;

  constructor(message: NewMessage, seq: number, at: number) {
    this.#message = message;
    this.#seq = seq;
    this.#at = packTime(at);
    this.#bytes = bytesOf(message.payload);
  }

  get commandId(): string | null {
    return this.#message.commandId;
  }

  get suffix(): string {
    return this.#message.suffix;
  }

  get seqs(): readonly number[] {
    return [this.#seq];
  }

  timeOf(): number {
    return unpackTime(this.#at);
  }

  bytesOf(): number {
    return this.#bytes;
  }

  messageOf(): NewMessage {
    return this.#message;
  }

  drop(): boolean {
    return true;
  }
}

// The history rows of messages about commands.

/** The values that all rows about the commands of one client share: the client's ids, and the suffix of its stream. */
export type StreamHead = ClientKey & { readonly suffix: string };

/**
 * The data of a call that the history rows of its command show: its trace, the context that the call named, and the
 * program that made the call. Most commands have none of it and share the object NO_TRACE.
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

type Spills = { readonly command: PayloadRef | null; readonly result: PayloadRef | null };
const NO_SPILLS: Spills = { command: null, result: null };

/**
 * Holds the two rows that nearly every command has: its admission, and the first result from its client. One object
 * holds both rows and stores only values that cannot be derived from the command, because hardly any row is ever read.
 */
export class CommandRows implements CommandHolder {
  readonly commandId: string;
  readonly trace: TraceIds;
  readonly head: StreamHead;
  older: CommandHolder | null = null;
  newer: CommandHolder | null = null;
  #admissionSeq = NO_ROW;
  /** When the admission was retained, as `packTime` packs it. */
  #admissionAt = 0;
  #admissionBytes = 0;
  #params: JsonText | null = null;
  /** The instance that the client was bound to at admission. */
  #admittedFor: string | null = null;
  #resultSeq = NO_ROW;
  #resultAt = 0;
  #resultBytes = 0;
  #result: JsonText | null = null;
  /** The instance that reported the result. */
  #reportedBy = '';
  /** The references to stored payloads; null if both rows have none. */
  #spills: Spills | null = null;

  constructor(commandId: string, trace: TraceIds, head: StreamHead) {
    this.commandId = commandId;
    this.trace = trace;
    this.head = head;
  }

  get suffix(): string {
    return this.head.suffix;
  }

  get seqs(): readonly number[] {
    return [this.#admissionSeq, this.#resultSeq].filter((seq) => seq !== NO_ROW);
  }

  get #isEmpty(): boolean {
    return this.#admissionSeq === NO_ROW && this.#resultSeq === NO_ROW;
  }

  /** Whether this object can hold the row: the row is an admission or a result, and its place is free. */
  fits({ kind, instanceId }: CommandMessage): boolean {
    if (kind === 'command') return this.#admissionSeq === NO_ROW;
    return kind === 'result' && this.#resultSeq === NO_ROW && instanceId !== null;
  }

  /** Holds a row until `drop`. The row must fit. Returns true if the object held no row before. */
  hold({ kind, instanceId, kept = NO_PAYLOAD }: CommandMessage, seq: number, at: number): boolean {
    const isFirst = this.#isEmpty;
    const { payload, spill } = kept;
    if (kind === 'command') {
      this.#admissionSeq = seq;
      this.#admissionAt = packTime(at);
      this.#admissionBytes = bytesOf(payload);
      this.#params = payload;
      this.#admittedFor = instanceId;
    } else {
      this.#resultSeq = seq;
      this.#resultAt = packTime(at);
      this.#resultBytes = bytesOf(payload);
      this.#result = payload;
      this.#reportedBy = instanceId ?? '';
    }
    if (spill !== null || this.#spills !== null) this.#spills = { ...NO_SPILLS, ...this.#spills, [kind]: spill };
    return isFirst;
  }

  drop(seq: number): boolean {
    if (seq === this.#resultSeq) {
      this.#resultSeq = NO_ROW;
      this.#result = null;
    } else {
      this.#admissionSeq = NO_ROW;
      this.#params = null;
    }
    return this.#isEmpty;
  }

  timeOf(seq: number): number {
    return unpackTime(seq === this.#resultSeq ? this.#resultAt : this.#admissionAt);
  }

  bytesOf(seq: number): number {
    return seq === this.#resultSeq ? this.#resultBytes : this.#admissionBytes;
  }

  messageOf(seq: number): NewMessage {
    if (seq !== this.#resultSeq) {
      const kept = { payload: this.#params, spill: this.#spills?.command ?? null };
      return messageAbout(this, { kind: 'command', instanceId: this.#admittedFor, kept });
    }
    const kept = { payload: this.#result, spill: this.#spills?.result ?? null };
    const end = { kind: 'result', instanceId: this.#reportedBy } as const;
    return messageAbout(this, { ...end, id: endMessageId(this.commandId, end), kept });
  }
}

/** Makes the message of a row about a command. */
export function messageAbout(
  { commandId, trace, head }: Pick<CommandRows, 'commandId' | 'trace' | 'head'>,
  { kind, instanceId, id = `${commandId}:${kind}`, kept = NO_PAYLOAD, error = null }: CommandMessage,
): NewMessage {
  const { userId, clientId, suffix } = head;
  const { traceId, parentSpanId, contextId, callerLabel } = trace;
  const ids = { id, userId, suffix, kind, clientId, instanceId, commandId, traceId, parentSpanId };
  const message = { ...ids, payload: kept.payload, spill: kept.spill, error };
  if (contextId === undefined && !callerLabel) return message;
  const named = contextId === undefined ? message : { ...message, contextId };
  return callerLabel && kind === 'command' ? { ...named, callerLabel } : named;
}

// The history rows of links that opened or ended.

/** A message of a link history. */
type LinkMessage = NewMessage & { readonly link: LinkDetails };

/**
 * Whether a LinkRow can hold the message. A LinkRow stores no id, so the message's id must be the one that kind and
 * epoch determine.
 */
export function fitsLinkRow(message: NewMessage): message is LinkMessage {
  return message.link !== undefined && message.id === linkRowId(message.kind, message.link.epoch);
}

/** Holds one row of a link history. It is small, because every open link has such a row and hardly any is ever read. */
export class LinkRow implements Holder {
  readonly #kind: NewMessage['kind'];
  readonly #clientId: string | null;
  readonly #instanceId: string | null;
  readonly #clientType: LinkDetails['clientType'];
  readonly #nodeId: string;
  readonly #epoch: number;
  readonly #cause: LinkDetails['cause'];
  readonly #closeCode: number | null;
  readonly #openMs: number | null;
  readonly #previousInstanceId: string | null;
  /** When the row was retained, as `packTime` packs it. */
  readonly #at: number;

  constructor({ kind, clientId, instanceId, link }: LinkMessage, at: number) {
    this.#kind = kind;
    this.#clientId = clientId;
    this.#instanceId = instanceId;
    this.#clientType = link.clientType;
    this.#nodeId = link.nodeId;
    this.#epoch = link.epoch;
    this.#cause = link.cause;
    this.#closeCode = link.closeCode;
    this.#openMs = link.openMs;
    this.#previousInstanceId = link.previousInstanceId;
    this.#at = packTime(at);
  }

  get commandId(): null {
    return null;
  }

  timeOf(): number {
    return unpackTime(this.#at);
  }

  bytesOf(): number {
    return ROW_BYTES;
  }

  messageOf(_seq: number, { user: { userId }, suffix }: Stream): LinkMessage {
    const [kind, epoch] = [this.#kind, this.#epoch];
    const ids = { id: linkRowId(kind, epoch), userId, suffix, kind, clientId: this.#clientId };
    const link = {
      clientType: this.#clientType,
      nodeId: this.#nodeId,
      epoch,
      cause: this.#cause,
      closeCode: this.#closeCode,
      openMs: this.#openMs,
      previousInstanceId: this.#previousInstanceId,
    };
    const none = { commandId: null, traceId: null, parentSpanId: null, error: null };
    return { ...ids, instanceId: this.#instanceId, ...none, ...NO_PAYLOAD, link };
  }
}

/**
 * The rows of several streams, oldest first. An entry is a stream and the number of a row. Dropping a row changes no
 * entry: an entry counts as deleted if its stream begins with a later row.
 */
export class AgeQueue extends SparseQueue<Stream> {
  constructor() {
    super((stream, seq) => seq < stream.firstSeq);
  }

  /** Reads the rows, newest first. */
  *newest(): Generator<Row> {
    for (const { item, number } of this.backwards()) {
      const row = item.row(number - item.firstSeq);
      if (row) yield row;
    }
  }

  /** Returns the next row of the pass that `rewind` started, oldest first; undefined at the end of the pass. */
  nextRow(): Row | undefined {
    const found = this.next();
    return found?.item.row(found.number - found.item.firstSeq);
  }
}
