/** The details of a link in a row of its user's link history, and the id of such a row. */
import type { ClientType, DisconnectCause } from './connection.ts';

/** The details of a client link that opened or ended. */
export type LinkDetails = {
  readonly clientType: ClientType;
  readonly nodeId: string;
  /** The epoch of the link: the row of its opening and the row of its end have the same one. */
  readonly epoch: number;
  /**
   * In the row of an end: why the link ended. In the row of an opening: why the client's previous link ended. That is
   * `replaced` if the previous link was still up, and null if the relay remembers none.
   */
  readonly cause: DisconnectCause | null;
  /**
   * In the row of an end: the code of the client's close frame; null if it sent no frame or no code. Always null in the
   * row of an opening.
   */
  readonly closeCode: number | null;
  /**
   * How long the link was open, in milliseconds; null in the row of an opening. If the link was lost with its node, the
   * time counts until the node's lease ended or until the client's last sign of life.
   */
  readonly openMs: number | null;
  /**
   * In the row of an opening: the instance of the client's previous link; null if the relay remembers none. Always null
   * in the row of an end.
   */
  readonly previousInstanceId: string | null;
};

/** Returns the id of a row of a link history. It is unique among the rows of one client. */
export function linkRowId(kind: string, epoch: number): string {
  return `${kind}:${epoch}`;
}
