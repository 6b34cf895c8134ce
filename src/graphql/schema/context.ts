/** The context of one GraphQL operation: who asks, and the loaders and the budget of bytes of this answer. */
import type { AuditSubject } from '../../core/audit/row.ts';
import type { Principal } from '../../core/auth/principal.ts';
import type { Core, HangUp } from '../../core/core.ts';
import { canonicalJson } from '../../core/json.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { DocumentReading } from '../../core/reading.ts';
import type { TraceContext } from '../../core/trace-context.ts';
import { createLoaders, type Loaders } from './loaders.ts';
import { AnswerBudget, type Asks } from './page-budget.ts';
import type { RequestNotes } from '../../web/request-notes.ts';

/**
 * The context of one request's resolvers. Never shared between requests: the loaders cache what this requester may see.
 */
export type Context = {
  readonly core: Core;
  /** The requester; null if the request had no token. */
  readonly requester: Principal | null;
  readonly loaders: Loaders;
  /** What this operation reads: it is remembered until the next event of a subscription. */
  readonly reading: DocumentReading;
  /** The bytes that the lists of this answer may still hold. */
  readonly budget: AnswerBudget;
  /** The signal that is aborted when the caller hangs up. That ends the caller's waits, never its commands. */
  readonly signal: HangUp | undefined;
  /**
   * Asks core whether payloads of `subject` may be shown. They may be shown once the call has completed. If the
   * requester is an administrator, one audit row per request and subject is written first. Throws `audit_unavailable`,
   * and `forbidden` if administrators may not read payloads here. A user's access to their own payloads is not audited.
   */
  readonly readPayload: (subject: AuditSubject) => MaybePromise<void>;
  /** Notes for the access log; undefined if the operation has no access log line of its own. */
  readonly notes: RequestNotes | undefined;
  /** The trace context of the request; commands that it admits belong to that trace. */
  readonly trace: TraceContext | undefined;
};

export type ContextOptions = {
  readonly core: Core;
  readonly requester: Principal | null;
  readonly signal?: HangUp | undefined;
  /** What the operation reads; absent: the context begins a reading of its own. */
  readonly reading?: DocumentReading | undefined;
  /** The fields that the operation selects; undefined if unknown. */
  readonly asks?: Asks | undefined;
  readonly notes?: RequestNotes | undefined;
  readonly trace?: TraceContext | undefined;
};

/** Creates a new context for one operation of `requester`. */
export function createContext(options: ContextOptions): Context {
  return new OwnContext(options);
}

class OwnContext implements Context {
  readonly core: Core;
  readonly requester: Principal | null;
  readonly signal: HangUp | undefined;
  readonly reading: DocumentReading;
  readonly readPayload: Context['readPayload'];
  readonly #asks: Asks;
  readonly notes: RequestNotes | undefined;
  readonly trace: TraceContext | undefined;
  #loaders: Loaders | null = null;
  #budget: AnswerBudget | null = null;

  constructor({ core, requester, signal, reading = new DocumentReading(), notes, trace, asks = null }: ContextOptions) {
    this.#asks = asks;
    this.core = core;
    this.requester = requester;
    this.signal = signal;
    this.reading = reading;
    this.notes = notes;
    this.trace = trace;
    this.readPayload = requester?.kind === 'admin' ? readOnce(core, requester, notes) : () => {};
  }

  /** The loaders, created on first use: invocations need none. */
  get loaders(): Loaders {
    return (this.#loaders ??= createLoaders(this.core, this.requester, this.reading));
  }

  get budget(): AnswerBudget {
    return (this.#budget ??= new AnswerBudget(this.#asks));
  }
}

/** Creates a `readPayload` that writes one audit row per subject, however many fields show the subject's payloads. */
function readOnce(core: Core, requester: Principal, notes: RequestNotes | undefined): Context['readPayload'] {
  const rows = new Map<string, MaybePromise<void>>();
  return (subject) => {
    const key = canonicalJson(subject);
    const known = rows.get(key);
    if (rows.has(key)) return known;
    const row = core.reveals.read(requester, subject, notes?.requestId ?? null);
    rows.set(key, row);
    return row;
  };
}
