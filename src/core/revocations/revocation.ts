/**
 * Revocations: which tokens a revocation covers, the index in memory, the admissions to wait for, and the storage port.
 */
import type { Principal, TokenIdentity } from '../auth/principal.ts';
import type { CommandCaller } from '../commands/command.ts';
import type { MaybePromise } from '../maybe-promise.ts';

/**
 * The tokens and links that a revocation covers: those that match every member that is not null; at least one is not
 * null. `userId`: the subject of the token. `clientId`: the client of the link, or the device of the token; a
 * revocation with it covers no HTTP request with another token. `issuedBefore`: tokens that were issued before this
 * time (epoch milliseconds), and tokens without a time of issue.
 */
export type RevocationTarget = {
  readonly userId: string | null;
  readonly clientId: string | null;
  readonly tokenId: string | null;
  readonly issuedBefore: number | null;
};

export type NewRevocation = RevocationTarget & {
  readonly revocationId: string;
  readonly reason: string;
  /** Who revoked the tokens: `subjectOf` the requester. */
  readonly who: string;
  /** When the revocation was made, and when no token that it covers can be valid any more; epoch milliseconds. */
  readonly at: number;
  readonly expiresAt: number;
};

/** A stored revocation. `seq`: its number; later revocations have higher numbers. */
export type Revocation = NewRevocation & { readonly seq: number };

/** Stores revocations until they expire. */
export interface RevocationStore {
  /**
   * Adds a revocation and returns it with its number. Atomic. Null if there is no room for it, in total
   * (REVOCATIONS_MAX, or REVOCATIONS_MAX_WIDE if it names no token) or of the user who revokes (REVOCATIONS_PER_USER,
   * or REVOCATIONS_PER_USER_WIDE). Throws `not_supported` if the store cannot store revocations.
   */
  add(row: NewRevocation): MaybePromise<Revocation | null>;
  /** Returns at most `first` revocations with a number above `seq`, in order, without the expired ones. */
  after(seq: number, first: number): MaybePromise<readonly Revocation[]>;
}

/**
 * Whether a revocation covers a token. `clientId`: the client of the link on which the token is used; null if the token
 * is not used on a client's link. A device's token belongs to its client wherever it is used.
 */
export function covers(row: RevocationTarget, principal: Principal, clientId: string | null): boolean {
  // A grant is no token of a user. It is revoked together with its session.
  if (principal.kind === 'grant' || principal.token === undefined) return false;
  const subject = principal.kind === 'admin' ? principal.name : principal.userId;
  const client = clientId ?? (principal.kind === 'user' ? principal.device?.clientId : null) ?? null;
  return matches(row, { subject, client, token: principal.token });
}

const UNKNOWN_TOKEN: TokenIdentity = { id: null, issuedAt: null };

/**
 * Whether a revocation covers the token with which a command was invoked. If the record of a user's command contains no
 * token, the token counts as one without an id and without a time of issue. If the record of an administrator's command
 * contains none, the token is a configured one, which no revocation covers.
 */
export function coversCaller(row: RevocationTarget, { kind, name, token }: CommandCaller): boolean {
  if (kind === 'grant' || (kind === 'admin' && token === undefined)) return false;
  return matches(row, { subject: name, client: null, token: token ?? UNKNOWN_TOKEN });
}

type Holder = { readonly subject: string; readonly client: string | null; readonly token: TokenIdentity };

function matches(
  { userId, clientId, tokenId, issuedBefore }: RevocationTarget,
  { subject, client, token: { id, issuedAt } }: Holder,
): boolean {
  return (
    (userId === null || userId === subject) &&
    (clientId === null || clientId === client) &&
    (tokenId === null || tokenId === id) &&
    (issuedBefore === null || issuedAt === null || issuedAt < issuedBefore)
  );
}

/** The revocations that a node knows. They are found by token and by user. */
export class RevocationIndex {
  readonly #all = new Map<number, Revocation>();
  /**
   * The revocations that name a token, by its id; of the others, those that name a user, by the user; and all others.
   */
  readonly #byToken = new Map<string, Revocation[]>();
  readonly #byUser = new Map<string, Revocation[]>();
  readonly #wide: Revocation[] = [];

  get size(): number {
    return this.#all.size;
  }

  /** Returns the revocations, newest first. */
  newest(): readonly Revocation[] {
    return [...this.#all.values()].sort((a, b) => b.seq - a.seq);
  }

  /** Adds a revocation. Returns false if it is already known. */
  add(row: Revocation): boolean {
    if (this.#all.has(row.seq)) return false;
    this.#all.set(row.seq, row);
    this.#placeOf(row).push(row);
    return true;
  }

  /** Removes the revocations that have expired. */
  expire(now: number): void {
    for (const row of this.#all.values()) {
      if (row.expiresAt > now) continue;
      this.#all.delete(row.seq);
      const rows = this.#placeOf(row);
      rows.splice(rows.indexOf(row), 1);
      if (rows.length > 0) continue;
      if (row.tokenId !== null) this.#byToken.delete(row.tokenId);
      else if (row.userId !== null) this.#byUser.delete(row.userId);
    }
  }

  /** Returns a revocation that covers the token; null if there is none. `clientId`: as for `covers`. */
  find(principal: Principal, clientId: string | null): Revocation | null {
    if (this.#all.size === 0 || principal.kind === 'grant') return null;
    const isCovering = (row: Revocation): boolean => covers(row, principal, clientId);
    const subject = principal.kind === 'admin' ? principal.name : principal.userId;
    return (
      this.#byToken.get(principal.token?.id ?? '')?.find(isCovering) ??
      this.#byUser.get(subject)?.find(isCovering) ??
      this.#wide.find(isCovering) ??
      null
    );
  }

  #placeOf({ tokenId, userId }: Revocation): Revocation[] {
    if (tokenId !== null) return listIn(this.#byToken, tokenId);
    return userId === null ? this.#wide : listIn(this.#byUser, userId);
  }
}

function listIn(rows: Map<string, Revocation[]>, key: string): Revocation[] {
  const known = rows.get(key);
  if (known) return known;
  const made: Revocation[] = [];
  rows.set(key, made);
  return made;
}

/**
 * The admissions that the store has not answered yet, with their requesters. A revocation waits for those of its
 * tokens.
 */
export class Admissions {
  readonly #running = new Map<Promise<unknown>, Principal>();

  /** Remembers an admission until it is answered. Returns `answer`. If `answer` is not a promise, remembers nothing. */
  note<T>(principal: Principal, answer: MaybePromise<T>): MaybePromise<T> {
    if (!(answer instanceof Promise)) return answer;
    const running: Promise<T> = answer.finally(() => this.#running.delete(running));
    this.#running.set(running, principal);
    return running;
  }

  /** Resolves when the present admissions of covered principals are answered. Never rejects. */
  async ended(isCovered: (principal: Principal) => boolean): Promise<void> {
    const covered = [...this.#running].filter(([, principal]) => isCovered(principal));
    await Promise.allSettled(covered.map(([running]) => running));
  }
}
