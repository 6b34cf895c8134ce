/** What a row of a user's link history says about the link. */
import type { ClientType, DisconnectCause } from './connections/connection.ts';

/** A client link that opened or ended. None of it comes from the client's own texts except its type. */
export type LinkDetails = {
  readonly clientType: ClientType;
  readonly nodeId: string;
  /** The epoch of the link: the row of its opening and the row of its end have the same one. */
  readonly epoch: number;
  /**
   * In the row of an end: why the link ended. In the row of an opening: why the client's previous link ended,
   * `replaced` if it was still up; null if the relay remembers none.
   */
  readonly cause: DisconnectCause | null;
  /**
   * How long the link was open, in milliseconds; null in the row of an opening. If the link was lost with its node, the
   * time counts until the node's lease ended or until the client's last sign of life.
   */
  readonly openMs: number | null;
  /**
   * In the row of an opening: the instance of the client's previous link. Null if the relay remembers none, and in the
   * row of an end.
   */
  readonly previousInstanceId: string | null;
};

/** Returns the id of a row of a link history. It is unique among the rows of one client. */
export function linkRowId(kind: string, epoch: number): string {
  return `${kind}:${epoch}`;
}
