/** The form of a row in the access table of REST. */
import type { Ids } from './planted.ts';

/**
 * `access`: who may send the request; a `grant` opens its own session, which its owner uses with the scope `invoke`, or
 * `host` for changes. `found` and `absent`: the answers for a permitted requester about present and absent rows.
 */
export type Route = {
  readonly access: 'admin' | 'invoke' | 'host' | 'grant';
  readonly target: (ids: Ids) => string;
  readonly body?: (ids: Ids) => object;
  readonly found: number;
  readonly absent: number;
  /** The answer contains nothing of a single user, so the mark cannot occur in it. */
  readonly plain?: true;
  /** For `grant`: the request changes the session. */
  readonly scope?: 'host';
  /** The request names no user, so another user gets their own rows, which may exist. */
  readonly mine?: true;
  /** The request would remove what later rows need, so only requesters without permission send it. */
  readonly harmful?: true;
};
