/** Creates the history rows of commands. It retains nothing; history.ts does. */
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

/** What all rows of one client's commands share. */
export type StreamHead = ClientKey & { readonly suffix: string };

/** The trace of a command. Most commands have none, and share NO_TRACE. */
export type TraceIds = Pick<Command, 'traceId' | 'parentSpanId' | 'traceFlags' | 'traceState' | 'callSpan'>;

export const NO_TRACE: TraceIds = {
  traceId: null,
  parentSpanId: null,
  traceFlags: null,
  traceState: null,
  callSpan: null,
};

/** The command that a message is about. */
export type About = { readonly commandId: string; readonly trace: TraceIds; readonly head: StreamHead };

/** A message about a command. Its id is `<command>:<kind>` if none is given. */
export type MessagePart = {
  readonly kind: MessageKind;
  readonly instanceId: string | null;
  readonly id?: string;
  readonly kept?: StoredPayload;
  readonly error?: TerminalError | null;
};

/**
 * A row of a message about a command. One object holds row and message, because each call retains two of them and
 * hardly any is ever read.
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
