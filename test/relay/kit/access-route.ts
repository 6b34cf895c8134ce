import type { Ids } from './planted.ts';

/**
 * `access`: who may ask; a `grant` opens its own session, which its owner enters with the scope `invoke`, or `host` to change it. `found` and
 * `absent`: what whoever may is told of what is there, and of what is not.
 */
export type Route = {
  readonly access: 'admin' | 'invoke' | 'host' | 'grant';
  readonly target: (ids: Ids) => string;
  readonly body?: (ids: Ids) => object;
  readonly found: number;
  readonly absent: number;
  /** Answers nothing that is one user's, so that no mark can stand in it. */
  readonly plain?: true;
  /** Of `grant`: changes the session. */
  readonly scope?: 'host';
  /** Names nobody: another user who asks is answered about its own, which may be there. */
  readonly mine?: true;
  /** It would take away what later rows need: only those are asked who must not be able to. */
  readonly harmful?: true;
};
