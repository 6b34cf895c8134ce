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
  /** The answer contains nothing of one user, so no mark can be in it. */
  readonly plain?: true;
  /** For `grant`: the request changes the session. */
  readonly scope?: 'host';
  /** The request names nobody: another user gets its own rows, which may exist. */
  readonly mine?: true;
  /** It would remove what later rows need, so only requesters without permission are tested. */
  readonly harmful?: true;
};
