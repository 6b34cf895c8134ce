/**
 * The context of one GraphQL operation: its requester, its audited reads, its loaders, and what it has read from the
 * store.
 */
import type { AuditSubject } from '../../core/audit/audit-rows.ts';
import type { Principal } from '../../core/auth/principal.ts';
import type { CallerSide, Core, HangUp } from '../../core/core.ts';
import { DocumentReading } from '../../core/document-reading.ts';
import { canonicalJson } from '../../core/json.ts';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import type { TraceContext } from '../../core/trace-context.ts';
import type { RequestNotes } from '../../web/request-notes.ts';
import { AnswerBudget, type Asks } from './answer-budget.ts';

export type ContextOptions = {
  readonly core: Core;
  /** The requester; null if the request had no token. */
  readonly requester: Principal | null;
  /** Aborted when the caller hangs up. This ends the caller's waits, but never its commands. */
  readonly signal?: HangUp | undefined;
  /** Remembers what the operation reads; absent: the context creates one. */
  readonly reading?: DocumentReading | undefined;
  /** The names of the fields that the operation may select; absent: unknown. */
  readonly asks?: Asks | undefined;
  /** For the context of an event: the context of its subscription, whose audited reads it shares. */
  readonly subscription?: Context | undefined;
  /** Receives the admission and the progress of the command for which the operation waits. */
  readonly updates?: CallUpdates | undefined;
  /** Notes for the access log; absent if the operation has no log line of its own. */
  readonly notes?: RequestNotes | undefined;
  /** The trace context of the request. Commands that the request admits belong to this trace. */
  readonly trace?: TraceContext | undefined;
};

export type CallUpdates = Required<Pick<CallerSide, 'onAdmitted' | 'onProgress'>>;

export function createContext(options: ContextOptions): Context {
  return new Context(options);
}

/**
 * The context of one request's resolvers. It must never be shared between requests, because the loaders cache what this
 * requester may see.
 */
export class Context {
  readonly core: Core;
  readonly requester: Principal | null;
  readonly signal: HangUp | undefined;
  /** What this operation has read from the store. It is remembered until the next event of a subscription. */
  readonly reading: DocumentReading;
  readonly updates: CallUpdates | undefined;
  readonly notes: RequestNotes | undefined;
  readonly trace: TraceContext | undefined;
  readonly #asks: Asks;
  readonly #subscription: Context | undefined;
  #payloadReads: PayloadReads | null = null;
  #loaders: Forgets[] | null = null;
  #budget: AnswerBudget | null = null;

  constructor(options: ContextOptions) {
    const { core, requester, signal, reading = new DocumentReading(), updates, notes, trace, asks = null } = options;
    this.#asks = asks;
    this.#subscription = options.subscription;
    this.core = core;
    this.requester = requester;
    this.signal = signal;
    this.reading = reading;
    this.updates = updates;
    this.notes = notes;
    this.trace = trace;
  }

  /** Created on first use, because few requests read payloads. */
  get payloadReads(): PayloadReads {
    return (this.#payloadReads ??= this.#subscription?.payloadReads ?? new PayloadReads(this));
  }

  get readPayload(): ReadPayload {
    return this.payloadReads.read;
  }

  /** The bytes that the lists of this answer may still take. */
  get budget(): AnswerBudget {
    return (this.#budget ??= new AnswerBudget(this.#asks));
  }

  /** Resets the budget for an operation that is executed again from its start. */
  restart(): void {
    this.#budget?.restart();
  }

  /** Returns the loader with this number. Created on first use, because most requests need few loaders. */
  loader(number: number, create: (context: Context) => Forgets): Forgets {
    return ((this.#loaders ??= [])[number] ??= create(this));
  }

  /** Forgets what was loaded and read, so that an event of a subscription never shows values of an earlier event. */
  forget(): void {
    this.#loaders?.forEach((loader) => loader.forget());
    this.reading.forget();
  }
}

/** What a context must be able to forget between two events of a subscription. */
export type Forgets = { forget(): void };

/**
 * Must have completed before payloads of `subject` are shown. For an administrator, it writes one audit row per request
 * and subject. It throws `audit_unavailable` if it cannot, and `forbidden` if administrators may not read payloads
 * here. For any other requester it does nothing, because access to one's own payloads is not audited.
 */
type ReadPayload = (subject: AuditSubject) => MaybePromise<void>;

/**
 * The audited reads of one request. A subject is audited once, however many fields or events of the request show
 * payloads of it.
 */
class PayloadReads {
  readonly #context: Context;
  readonly #rows = new Map<string, MaybePromise<void>>();

  constructor(context: Context) {
    this.#context = context;
  }

  readonly read: ReadPayload = (subject) => {
    const { core, requester, notes } = this.#context;
    if (requester?.kind !== 'admin') return;
    const key = canonicalJson(subject);
    if (this.#rows.has(key)) return this.#rows.get(key);
    return this.#add(key, core.reveals.read(requester, subject, notes?.requestId ?? null));
  };

  /**
   * Writes the audit row for reading payloads of `subject` for this reason. Later reads of the subject in this request
   * are covered by this row.
   */
  readFor(reason: string, subject: AuditSubject): MaybePromise<void> {
    const { core, requester, notes } = this.#context;
    const row = core.reveals.readFor(requester, { subject, reason, requestId: notes?.requestId ?? null });
    return this.#add(canonicalJson(subject), row);
  }

  /** Whether the requester may read payloads of `subject` in this request. */
  mayRead(subject: AuditSubject): boolean {
    const { core, requester } = this.#context;
    return core.reveals.shows(requester) || this.#rows.has(canonicalJson(subject));
  }

  #add(key: string, row: MaybePromise<void>): MaybePromise<void> {
    this.#rows.set(key, row);
    return row;
  }
}
