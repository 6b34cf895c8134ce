/** The context of one GraphQL operation: who asks, and the loaders and the budget of bytes of this answer. */
import { audit } from '../../core/audit.ts';
import type { Principal } from '../../core/auth/principal.ts';
import type { Core, HangUp } from '../../core/core.ts';
import { canonicalJson } from '../../core/json.ts';
import type { Log } from '../../core/log.ts';
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
  /** The bytes that the lists of this answer may still hold. */
  readonly budget: AnswerBudget;
  /** Aborted when the caller hangs up. That ends its waits, never its commands. */
  readonly signal: HangUp | undefined;
  /**
   * Records that payloads of `subject` were shown. Writes one audit line per request and subject if the requester is an
   * administrator; a user's access to its own payloads is not audited.
   */
  readonly auditPayload: (subject: Readonly<Record<string, string>>) => void;
  /** Notes for the access log; undefined if the operation has no access log line of its own. */
  readonly notes: RequestNotes | undefined;
};

export type ContextOptions = {
  readonly core: Core;
  readonly requester: Principal | null;
  readonly log: Log;
  readonly signal?: HangUp | undefined;
  /** The fields that the operation selects; undefined if unknown. */
  readonly asks?: Asks | undefined;
  readonly notes?: RequestNotes | undefined;
};

/** Creates a new context for one operation of `requester`. */
export function createContext(options: ContextOptions): Context {
  return new OwnContext(options);
}

class OwnContext implements Context {
  readonly core: Core;
  readonly requester: Principal | null;
  readonly signal: HangUp | undefined;
  readonly auditPayload: Context['auditPayload'];
  readonly #asks: Asks;
  readonly notes: RequestNotes | undefined;
  #loaders: Loaders | null = null;
  #budget: AnswerBudget | null = null;

  constructor({ core, requester, log, signal, notes, asks = null }: ContextOptions) {
    this.#asks = asks;
    this.core = core;
    this.requester = requester;
    this.signal = signal;
    this.notes = notes;
    this.auditPayload = requester?.kind === 'admin' ? createAudit(requester, log) : () => {};
  }

  /** Created on first use: invocations need no loaders. */
  get loaders(): Loaders {
    return (this.#loaders ??= createLoaders(this.core, this.requester));
  }

  get budget(): AnswerBudget {
    return (this.#budget ??= new AnswerBudget(this.#asks));
  }
}

function createAudit(requester: Principal, log: Log): Context['auditPayload'] {
  const noted = new Set<string>();
  return (subject) => {
    const key = canonicalJson(subject);
    if (noted.has(key)) return;
    noted.add(key);
    audit(log, requester, { action: 'payload', ...subject });
  };
}
