/** What was revoked in a simulation, and answered, and which token may therefore do nothing any more. */
import type { RevocationTarget } from '../../src/core/revocations/revocation.ts';
import type { HeldToken } from './held-tokens.ts';

/** A use of a token. `clientId`: the client of a link; null for a caller's link and for a request over HTTP. */
export type Use = { readonly token: HeldToken; readonly clientId: string | null };

/** A revocation that somebody asked for. Times are those of the simulation. */
export type Revoked = {
  /** What was asked for; once there is an answer, what it says. */
  target: RevocationTarget;
  /** The token with which it was asked for; null: an administrator's, which cannot be revoked. */
  readonly by: HeldToken | null;
  readonly askedAt: number;
  /** When its answer arrived; Infinity: it has not arrived, so the revocation may hold or not. */
  from: number;
  /** The relays that its answer names as silent. */
  silent: ReadonlySet<string>;
};

/** Whether a target covers a use of a token. Said here once more, so that a mistake of the relay shows. */
export function isCovered({ userId, clientId, tokenId, issuedBefore }: RevocationTarget, { token, clientId: of }: Use) {
  if (userId !== null && userId !== token.userId) return false;
  if (clientId !== null && clientId !== of) return false;
  if (tokenId !== null && tokenId !== token.id) return false;
  return issuedBefore === null || token.issuedAt === null || token.issuedAt < issuedBefore;
}

export class RevocationLedger {
  readonly #revoked: Revoked[] = [];
  /** Whether what was acknowledged between these times may be lost. */
  readonly #mayBeLost: (from: number, to: number) => boolean;

  constructor(mayBeLost: (from: number, to: number) => boolean) {
    this.#mayBeLost = mayBeLost;
  }

  get all(): readonly Revoked[] {
    return this.#revoked;
  }

  /** Notes a request to revoke. */
  ask(target: RevocationTarget, by: HeldToken | null, now: number): Revoked {
    const revoked: Revoked = { target, by, askedAt: now, from: Infinity, silent: new Set() };
    this.#revoked.push(revoked);
    return revoked;
  }

  /**
   * Returns an answered revocation because of which a relay must not serve this use at `now`, if it began at `began`;
   * undefined: there is none. `relay`: null for any relay, the silent ones too.
   */
  holding(use: Use, relay: string | null, { began, now }: { readonly began: number; readonly now: number }) {
    return this.#revoked.find(
      (one) =>
        one.from <= began &&
        (relay === null || !one.silent.has(relay)) &&
        isCovered(one.target, use) &&
        !this.#mayBeLost(one.askedAt, now),
    );
  }

  /** Whether some revocation that was asked for so far may cover a use. One without an answer may be of any time. */
  mayCover(use: Use): boolean {
    return this.#revoked.some(({ target, from }) =>
      isCovered(from < Infinity || target.tokenId !== null ? target : { ...target, issuedBefore: null }, use),
    );
  }
}
