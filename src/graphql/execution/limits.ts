/** Decides whether a requester may run an operation, and bounds the time of queries. */
import type { Clock } from '../../core/clock.ts';
import type { Core, HangUp } from '../../core/core.ts';
import { CallboardError } from '../../core/errors.ts';
import { QUERY_COST_ADMIN, QUERY_COST_USER, QUERY_MS } from '../../core/limits.ts';
import type { Principal } from '../../core/auth/principal.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { DocumentReading } from '../../core/reading.ts';
import type { Bound } from './bound.ts';
import type { Plan } from './plan.ts';

/** Who may read the schema through introspection. */
export type Introspection = 'admin' | 'all' | 'off';

export type Admission = {
  readonly requester: Principal | null;
  readonly bound: Bound;
  readonly introspection: Introspection;
};

/**
 * Returns the reason why this requester may not run this operation, checked before anything of it runs. Null when the
 * requester may.
 */
export function refusalOf(plan: Plan, { requester, bound, introspection }: Admission): CallboardError | null {
  if (!requester && !plan.onlyMeta) return new CallboardError('unauthenticated', 'A bearer token is needed.');
  if (plan.introspects) {
    const refused = introspectionRefusal(requester, introspection);
    if (refused) return refused;
  }
  const most = requester?.kind === 'admin' ? QUERY_COST_ADMIN : QUERY_COST_USER;
  const cost = bound.cost(requester);
  if (cost <= most) return null;
  const advice = bound.advice(requester, most) ?? 'Ask for shorter lists.';
  return new CallboardError('too_complex', `The operation may cost ${cost}; at most ${most}. ${advice}`);
}

function introspectionRefusal(requester: Principal | null, introspection: Introspection): CallboardError | null {
  if (introspection === 'all') return null;
  if (introspection === 'off') return new CallboardError('forbidden', 'Introspection is switched off.');
  if (!requester) return new CallboardError('unauthenticated', 'Introspection needs the token of an administrator.');
  return requester.kind === 'admin'
    ? null
    : new CallboardError('forbidden', 'Only an administrator may read the schema.');
}

export type ReadingRequest = {
  readonly requester: Principal | null;
  readonly cost: number;
  /** Aborted when the requester hangs up. */
  readonly signal?: HangUp | undefined;
};

/**
 * Runs a document that only reads, when it is its requester's turn and for at most QUERY_MS. `run` gets the reading of
 * the document, which ends when the requester hangs up or the time is over. Throws `share_exceeded` if the requester has
 * too many documents in progress; rejects with `store_unavailable` when the time is over.
 */
export function readDocument<T>(
  { documents, clock }: Pick<Core, 'documents' | 'clock'>,
  { requester, cost, signal }: ReadingRequest,
  run: (reading: DocumentReading) => MaybePromise<T>,
): MaybePromise<T> {
  const reading = new DocumentReading(signal);
  const answer = documents.run(requester, { cost, reading }, () => run(reading));
  return withinTime(answer, { clock, ms: QUERY_MS, reading });
}

/**
 * Returns the answer, or rejects with `store_unavailable` after `ms` milliseconds. The cost of a query is bounded
 * before it runs, so only a slow store and the turns of others can delay its answer this long. A late answer is dropped,
 * and `reading` ends, so that the store is not read any further.
 */
function withinTime<T>(
  answer: MaybePromise<T>,
  { clock, ms, reading }: { clock: Clock; ms: number; reading: DocumentReading },
): MaybePromise<T> {
  if (!(answer instanceof Promise)) return answer;
  return new Promise((resolve, reject) => {
    const late = (): CallboardError =>
      new CallboardError('store_unavailable', `The query was not answered within ${ms} ms.`);
    const cancel = clock.after(ms, () => {
      reading.end();
      reject(late());
    });
    const settled = <V>(settle: (value: V) => void) => {
      return (value: V): void => (cancel(), settle(value));
    };
    answer.then(settled(resolve), settled(reject));
  });
}
