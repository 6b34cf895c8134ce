/** What a row of a user's link history says about the link. */
import type { ClientType, DisconnectCause } from './connections/connection.ts';

/** A client link that opened or ended. None of it comes from the client's own texts except its type. */
export type LinkDetails = {
  readonly clientType: ClientType;
  readonly nodeId: string;
  /** The epoch of the link: the row of its opening and the row of its end have the same one. */
  readonly epoch: number;
  /**
   * Of an end: why the link ended. Of an opening: why the client's previous link had ended, `replaced` if it was still
   * up; null if the relay remembers none.
   */
  readonly cause: DisconnectCause | null;
  /**
   * How long the link was open, in milliseconds, as far as is known: of a link that was lost with its node, until the
   * lease of the node ended or until the client's last sign of life. Null for an opening.
   */
  readonly openMs: number | null;
  /** Of an opening: the instance of the client's previous link; null for an end, and if the relay remembers none. */
  readonly previousInstanceId: string | null;
};
