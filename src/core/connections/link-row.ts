/** The details of a link that a row of the link history contains, and the id of such a row. */
import type { ClientType, DisconnectCause } from './connection.ts';

/** The details of a client link that opened or ended. */
export type LinkDetails = {
  readonly clientType: ClientType;
  readonly nodeId: string;
  /** The epoch of the link. The row of its opening and the row of its end have the same epoch. */
  readonly epoch: number;
  /**
   * In the row of an end, why the link ended. In the row of an opening, why the client's previous link ended:
   * `replaced` if it was still open, and null if the relay remembers no previous link.
   */
  readonly cause: DisconnectCause | null;
  /**
   * In the row of an end, the code of the client's close frame; null if the client sent no frame or no code. In the row
   * of an opening, always null.
   */
  readonly closeCode: number | null;
  /**
   * In the row of an end, how long the link was open, in milliseconds. If the link was lost with its node, this is the
   * time until the node's lease ended or until the client's last sign of life. In the row of an opening, always null.
   */
  readonly openMs: number | null;
  /**
   * In the row of an opening, the instance of the client's previous link; null if the relay remembers none. In the row
   * of an end, always null.
   */
  readonly previousInstanceId: string | null;
};

/** Returns the id of a row in a link history. The id is unique among the rows of one client. */
export function linkRowId(kind: string, epoch: number): string {
  return `${kind}:${epoch}`;
}
