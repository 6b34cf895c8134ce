/** Creates the history rows of links that opened or ended. Adding them to history is the task of history-rows.ts. */
import type { NewMessage } from '../../core/history/message.ts';
import { linkRowId, type LinkDetails } from '../../core/link-details.ts';
import { Row, type Placed } from './history-row.ts';

/** A message of a link history. */
export type LinkMessage = NewMessage & { readonly link: LinkDetails };

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
