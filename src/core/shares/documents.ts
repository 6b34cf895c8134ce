/** Runs the documents that requesters read with: bounds how many a user has in progress, and lets users take turns. */
import type { Principal } from '../auth/principal.ts';
import { fail } from '../errors.ts';
import type { EventLoop } from '../event-loop.ts';
import { DOCUMENT_TURN_COST, DOCUMENT_SMALL_COST, READ_TURNS } from '../limits-queries.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { DocumentReading } from '../reading.ts';
import { holderOf } from './holders.ts';
import { ReadTurns } from './read-turns.ts';
import { SHARE_MESSAGE, type Holdings, type Shares } from './shares.ts';

/** The estimated cost of a document (graphql/execution/cost.ts), and its reads. */
export type DocumentRun = { readonly cost: number; readonly reading: DocumentReading };

/** Runs queries and REST reads. Mutations are not run by it, because they wait and have the share `waits`. */
export interface DocumentTurns {
  /**
   * Runs `work`, at once if the document is cheap or no other was run in this turn of the event loop; otherwise when it
   * is the user's turn. Its value and its error are passed on. Throws `share_exceeded` if the user has too many
   * documents in progress. Rejects with `store_unavailable` if the answer was given up before its turn.
   */
  run<T>(requester: Principal | null, document: DocumentRun, work: () => MaybePromise<T>): MaybePromise<T>;
}

/** How long a requester with too many documents in progress should wait before the next one. */
const RETRY_AFTER_MS = 1000;

export function createDocumentTurns({
  shares,
  loop,
}: {
  readonly shares: Shares;
  readonly loop: EventLoop;
}): DocumentTurns {
  const paced = { loop, costPerTurn: DOCUMENT_TURN_COST, small: DOCUMENT_SMALL_COST };
  const turns = new ReadTurns({ ...READ_TURNS, paced });
  // A principal is one object as long as its token is cached.
  const known = new WeakMap<Principal, Holdings>();
  const holdingsOf = (requester: Principal | null): Holdings => {
    const before = requester && known.get(requester);
    if (before) return before;
    const holdings = shares.of(holderOf(requester));
    if (requester) known.set(requester, holdings);
    return holdings;
  };
  return {
    run(requester, { cost, reading }, work) {
      const holdings = holdingsOf(requester);
      const refusal = holdings.refusal('documents', 1);
      if (refusal) fail(refusal, SHARE_MESSAGE[refusal], { share: 'documents', retryAfterMs: RETRY_AFTER_MS });
      const begin = (): ReturnType<typeof work> => {
        reading.check();
        return work();
      };
      const answer = turns.run(holdings.userId, begin, cost);
      // A document that is answered in the same tick is over before another one can begin.
      if (!(answer instanceof Promise)) return answer;
      holdings.take('documents', 1);
      return answer.finally(() => holdings.release('documents', 1));
    },
  };
}
