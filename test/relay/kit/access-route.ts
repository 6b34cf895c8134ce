/** Defines a row in the access table of REST: a request, who may send it, and the answers. */
import type { Ids } from './planted.ts';

/**
 * A row of the access table of REST. `access`: who may send the request. A `grant` opens the session for which it was
 * issued; the session's owner needs the scope `invoke`, or `host` for changes. `found` and `absent`: the answers for a
 * permitted requester about present and absent rows.
 */
export type Route = {
  readonly access: 'admin' | 'invoke' | 'host' | 'grant';
  readonly target: (ids: Ids) => string;
  readonly body?: (ids: Ids) => object;
  readonly found: number;
  readonly absent: number;
  /** Whether the answer contains no data of any single user. Such an answer must not contain the word `planted`. */
  readonly plain?: true;
  /** The scope that the session's owner needs, if `access` is `grant` and the request changes the session. */
  readonly scope?: 'host';
  /** Whether the request names no user, so that another user gets their own rows, which may exist. */
  readonly mine?: true;
  /** Whether the request would remove what later rows need. If so, only requesters without permission send it. */
  readonly harmful?: true;
};
