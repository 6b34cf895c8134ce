/** Defines the types of the rows in tables of retained messages. */
import type { CallPageQuery, MessageKind, PayloadState } from '../../generated/console.ts';

type Row = NonNullable<CallPageQuery['command']>['history']['nodes'][number];
export type { MessageKind, PayloadState };
export type MessageError = NonNullable<Row['error']>;

export type HistoryRow = {
  readonly id: string;
  readonly messageId: string;
  readonly userId: string;
  readonly at: string;
  readonly kind: MessageKind;
  readonly stream?: string;
  readonly clientId?: string | null;
  readonly commandId?: string | null;
  readonly commandHref?: string | null;
  readonly payloadBytes: number;
  readonly payloadState: PayloadState;
  readonly error: MessageError | null;
};
