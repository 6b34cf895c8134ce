import {
  NO_PAYLOAD,
  type StoredPayload,
  type MessageKind,
  type NewMessage,
  type PayloadRef,
  type TerminalError,
} from '../../core/history/message.ts';
import type { CommandKey } from '../../core/ids.ts';
import type { JsonText } from '../../core/json.ts';

/** What all rows of one command share. */
export type CommandHead = CommandKey & {
  readonly suffix: string;
  readonly traceId: string | null;
  readonly parentSpanId: string | null;
};

export type MessagePart = {
  readonly kind: MessageKind;
  readonly instanceId: string | null;
  readonly id?: string;
  readonly kept?: StoredPayload;
  readonly error?: TerminalError | null;
};

/** A message about a command, as a view of objects that the command keeps anyway. */
export class CommandMessage implements NewMessage {
  readonly kind: MessageKind;
  readonly instanceId: string | null;
  readonly error: TerminalError | null;
  readonly #head: CommandHead;
  readonly #id: string | null;
  readonly #kept: StoredPayload;

  constructor(head: CommandHead, { kind, instanceId, id, kept = NO_PAYLOAD, error = null }: MessagePart) {
    this.kind = kind;
    this.instanceId = instanceId;
    this.error = error;
    this.#head = head;
    this.#id = id ?? null;
    this.#kept = kept;
  }

  get id(): string {
    return this.#id ?? `${this.#head.commandId}:${this.kind}`;
  }

  get userId(): string {
    return this.#head.userId;
  }

  get clientId(): string {
    return this.#head.clientId;
  }

  get commandId(): string {
    return this.#head.commandId;
  }

  get suffix(): string {
    return this.#head.suffix;
  }

  get traceId(): string | null {
    return this.#head.traceId;
  }

  get parentSpanId(): string | null {
    return this.#head.parentSpanId;
  }

  get payload(): JsonText | null {
    return this.#kept.payload;
  }

  get spill(): PayloadRef | null {
    return this.#kept.spill;
  }
}
