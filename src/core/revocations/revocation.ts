/**
 * Revocations: the tokens that a row covers, what a node looks up and waits for when it revokes, and the port that keeps
 * the rows.
 */
import type { Principal, TokenIdentity } from '../auth/principal.ts';
import type { CommandCaller } from '../commands/command.ts';
import type { MaybePromise } from '../maybe-promise.ts';

/**
 * What a revocation covers: the tokens, and links, that match every member that is not null; one is not null.
 * `userId`: the subject of the token. `clientId`: the client that a link is of, or the device of the token; such a row
 * covers no other request over HTTP.
 * `issuedBefore`: tokens that were issued before this time, in epoch milliseconds, and tokens that do not say when.
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
  /** Who revoked: `subjectOf` the requester. */
  readonly who: string;
  /** When it was revoked, and when no token that it covers can live any more; epoch milliseconds. */
  readonly at: number;
  readonly expiresAt: number;
};

/** A stored revocation. `seq`: its number, which grows from row to row. */
export type Revocation = NewRevocation & { readonly seq: number };

/** Keeps revocations until they expire. */
export interface RevocationStore {
  /**
   * Adds a row and returns it with its number. Atomic. Null: there are as many rows as the store keeps, in all
   * (REVOCATIONS_MAX; REVOCATIONS_MAX_WIDE for a row that names no token), or of the user who revokes
   * (REVOCATIONS_PER_USER, REVOCATIONS_PER_USER_WIDE). Throws `not_supported` if the store keeps no revocations.
   */
  add(row: NewRevocation): MaybePromise<Revocation | null>;
  /** Returns the rows with a greater number, in order: at most `first`. Expired rows are left out. */
  after(seq: number, first: number): MaybePromise<readonly Revocation[]>;
}

/**
 * Whether a row covers a token. `clientId`: the client of the link that has it; null for other uses of the token, which
 * are those of a client only if the token is that of a device.
 */
export function covers(row: RevocationTarget, principal: Principal, clientId: string | null): boolean {
  // The holder of a grant has no token of its own: a grant is revoked with its session.
  if (principal.kind === 'grant' || principal.token === undefined) return false;
  const subject = principal.kind === 'admin' ? principal.name : principal.userId;
  const client = clientId ?? (principal.kind === 'user' ? principal.device?.clientId : null) ?? null;
  return matches(row, { subject, client, token: principal.token });
}

const UNKNOWN_TOKEN: TokenIdentity = { id: null, issuedAt: null };

/**
 * Whether a row covers the token with which a command was invoked. A record of a user without a token counts as one of
 * a token without an id and a time of issue; one of an administrator is of a configured token, which no row covers.
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

/** The revocations that a node knows, found by token and by user. */
export class RevocationIndex {
  readonly #all = new Map<number, Revocation>();
  /** The rows that name a token, by its id; of the others those that name a user, by the user; and the rest. */
  readonly #byToken = new Map<string, Revocation[]>();
  readonly #byUser = new Map<string, Revocation[]>();
  readonly #wide: Revocation[] = [];

  get size(): number {
    return this.#all.size;
  }

  /** Returns the rows, the newest first. */
  newest(): readonly Revocation[] {
    return [...this.#all.values()].sort((a, b) => b.seq - a.seq);
  }

  /** Adds a row. Returns false if it was added before. */
  add(row: Revocation): boolean {
    if (this.#all.has(row.seq)) return false;
    this.#all.set(row.seq, row);
    this.#placeOf(row).push(row);
    return true;
  }

  /** Removes the rows that have expired. */
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

  /** Returns a row that covers the token; null if none does. `clientId`: as for `covers`. */
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

/** The admissions that a store has not answered yet, by who asked for them, so that a revocation can wait for them. */
export class Admissions {
  readonly #running = new Map<Promise<unknown>, Principal>();

  /** Returns the same answer. One that is there already is not remembered. */
  note<T>(principal: Principal, answer: MaybePromise<T>): MaybePromise<T> {
    if (!(answer instanceof Promise)) return answer;
    const running: Promise<T> = answer.finally(() => this.#running.delete(running));
    this.#running.set(running, principal);
    return running;
  }

  /** Resolves when the admissions that run now, of principals that are covered, have ended. Never rejects. */
  async ended(isCovered: (principal: Principal) => boolean): Promise<void> {
    const covered = [...this.#running].filter(([, principal]) => isCovered(principal));
    await Promise.allSettled(covered.map(([running]) => running));
  }
}
