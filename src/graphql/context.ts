import { audit } from '../core/audit.ts';
import type { Principal } from '../core/auth/principal.ts';
import type { Core, HangUp } from '../core/core.ts';
import { canonicalJson } from '../core/json.ts';
import type { Log } from '../core/log.ts';
import { createLoaders, type Loaders } from './loaders.ts';
import type { RequestNotes } from './request-notes.ts';

/** What one request's resolvers work with. Never shared by two requests: the loaders remember what this asker was shown. */
export type Context = {
  readonly core: Core;
  /** Null: no token was given. */
  readonly who: Principal | null;
  readonly loaders: Loaders;
  /** Aborted when the caller hung up: ends its waits, never its commands. */
  readonly signal: HangUp | undefined;
  /**
   * Notes that payloads of `subject` were shown. Writes one audit line per request and subject when the asker is an administrator;
   * a user's own payloads are not audited.
   */
  readonly auditPayload: (subject: Readonly<Record<string, string>>) => void;
  /** For the access log; absent where no request of its own is logged. */
  readonly notes: RequestNotes | undefined;
};

export type ContextOptions = {
  readonly core: Core;
  readonly who: Principal | null;
  readonly log: Log;
  readonly signal?: HangUp | undefined;
  readonly notes?: RequestNotes | undefined;
};

/** A fresh context for one operation of `who`. */
export function createContext(options: ContextOptions): Context {
  return new OwnContext(options);
}

class OwnContext implements Context {
  readonly core: Core;
  readonly who: Principal | null;
  readonly signal: HangUp | undefined;
  readonly auditPayload: Context['auditPayload'];
  readonly notes: RequestNotes | undefined;
  #loaders: Loaders | null = null;

  constructor({ core, who, log, signal, notes }: ContextOptions) {
    this.core = core;
    this.who = who;
    this.signal = signal;
    this.notes = notes;
    this.auditPayload = who?.kind === 'admin' ? createAudit(who, log) : () => {};
  }

  /** Made when one is asked for: commands need none. */
  get loaders(): Loaders {
    return (this.#loaders ??= createLoaders(this.core, this.who));
  }
}

function createAudit(who: Principal, log: Log): Context['auditPayload'] {
  const noted = new Set<string>();
  return (subject) => {
    const key = canonicalJson(subject);
    if (noted.has(key)) return;
    noted.add(key);
    audit(log, who, { deed: 'payload', ...subject });
  };
}
