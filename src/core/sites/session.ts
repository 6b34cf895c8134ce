import type { SiteKey } from './site.ts';

/** `suspended`: the host is away, so nothing can be invoked; viewers go on listening. */
export type SessionState = 'active' | 'suspended' | 'closed' | 'expired';

/**
 * What the holder of one token may do in a session: never more than its parent and the descriptor. Immutable; never the token itself,
 * of which only a digest is stored.
 */
export type Grant = {
  readonly grantId: string;
  /** Null: the session's first grant, given by the owner, or one that the owner gave beside it. */
  readonly parentId: string | null;
  /** Null: all that the descriptor allows. */
  readonly events: readonly string[] | null;
  /** Null only for the owner: all that the descriptor allows. */
  readonly actions: readonly string[] | null;
  /** Whether its holder may share the session on. */
  readonly share: boolean;
  readonly grantedAt: number;
  readonly expiresAt: number;
  readonly revokedAt: number | null;
};

/** Viewers of a site, for a time. Immutable. Its state is derived on reading. */
export type SiteSession = SiteKey & {
  readonly sessionId: string;
  readonly openedAt: number;
  readonly expiresAt: number;
  readonly closedAt: number | null;
  /** In the order given. */
  readonly grants: readonly Grant[];
};

/** Stands for the owner in the place of a grant's id; no grant has it. */
export const OWNER_GRANT = 'owner';

/** Whoever opened the session holds all of it, for as long as it lasts. */
export function ownerGrant({ openedAt, expiresAt }: SiteSession): Grant {
  const all = { events: null, actions: null, share: true } as const;
  return { grantId: OWNER_GRANT, parentId: null, ...all, grantedAt: openedAt, expiresAt, revokedAt: null };
}

export function sessionState(session: SiteSession, hostConnected: boolean, now: number): SessionState {
  if (session.closedAt !== null) return 'closed';
  if (now >= session.expiresAt) return 'expired';
  return hostConnected ? 'active' : 'suspended';
}

/** Neither closed nor expired. */
export function isOpen(session: SiteSession, now: number): boolean {
  return session.closedAt === null && now < session.expiresAt;
}

export function isGrantLive(grant: Grant, now: number): boolean {
  return grant.revokedAt === null && now < grant.expiresAt;
}

/** Whether `ancestorId` is the grant itself or one that it came from. */
export function descendsFrom(grants: readonly Grant[], grantId: string, ancestorId: string): boolean {
  const byId = new Map(grants.map((grant) => [grant.grantId, grant]));
  for (let at = byId.get(grantId); at; at = at.parentId === null ? undefined : byId.get(at.parentId)) {
    if (at.grantId === ancestorId) return true;
  }
  return false;
}
