/** Creates the history rows of messages about commands. Adding them to history is the task of history-rows.ts. */
import {
  NO_PAYLOAD,
  type StoredPayload,
  type MessageKind,
  type NewMessage,
  type PayloadRef,
  type TerminalError,
} from '../../core/history/message.ts';
import type { Command } from '../../core/delivery/command.ts';
import type { ClientKey } from '../../core/ids.ts';
import type { JsonText } from '../../core/json.ts';
import { Row, type Placed } from './history-row.ts';

/** The values that the rows of all commands of one client share: the client's ids, and the suffix of their stream. */
export type StreamHead = ClientKey & { readonly suffix: string };

/** The trace of a command. Most commands have none and use the object NO_TRACE. */
export type TraceIds = Pick<Command, 'traceId' | 'parentSpanId' | 'traceFlags' | 'traceState' | 'callSpan'>;

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
 * The members of a message about a command, except those in `About`. If no id is given, the id is `<command>:<kind>`.
 */
export type MessagePart = {
  readonly kind: MessageKind;
  readonly instanceId: string | null;
  readonly id?: string;
  readonly kept?: StoredPayload;
  readonly error?: TerminalError | null;
};

/**
 * A row that is also its message. It is one object, because each call retains two of these rows and hardly any is ever
 * read.
 */
export class CommandRow extends Row implements NewMessage {
  readonly kind: MessageKind;
  readonly commandId: string;
  readonly instanceId: string | null;
  readonly error: TerminalError | null;
  readonly payload: JsonText | null;
  readonly spill: PayloadRef | null;
  readonly #head: StreamHead;
  readonly #trace: TraceIds;
  readonly #id: string | null;

  constructor(placed: Placed, { commandId, trace, head }: About, part: MessagePart) {
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
}
