/** The types of a site's sessions and grants, and when these are live. */
import type { SiteKey } from './site.ts';

/**
 * The state of a session. `suspended`: the host is not connected, so actions cannot be invoked; viewers continue to
 * listen.
 */
export type SessionState = 'active' | 'suspended' | 'closed' | 'expired';

/**
 * What the holder of one token may do in a session. It never exceeds the parent grant and the site's definition.
 * Immutable. The token is not part of it: only the token's digest is stored.
 */
export type Grant = {
  readonly grantId: string;
  /**
   * The grant from which this one derives. Null for the session's first grant, and for a grant that the owner gave
   * directly.
   */
  readonly parentId: string | null;
  /** The names of the events that the holder may receive; null: all that the site's definition permits. */
  readonly events: readonly string[] | null;
  /** The actions that the holder may invoke; null, which only the owner has: all that the site's definition permits. */
  readonly actions: readonly string[] | null;
  /** Whether the holder may share the session with others. */
  readonly share: boolean;
  readonly grantedAt: number;
  readonly expiresAt: number;
  readonly revokedAt: number | null;
};

/** A limited time during which viewers may use a site. Immutable. Its state is computed when it is read. */
export type SiteSession = SiteKey & {
  readonly sessionId: string;
  readonly openedAt: number;
  readonly expiresAt: number;
  readonly closedAt: number | null;
  /** The grants of the session, in the order in which they were given. */
  readonly grants: readonly Grant[];
};

/** The grant id that stands for the owner. No real grant has it. */
export const OWNER_GRANT = 'owner';

/** Returns the grant that represents the owner: unlimited, and valid as long as the session. */
export function ownerGrant({ openedAt, expiresAt }: SiteSession): Grant {
  const all = { events: null, actions: null, share: true } as const;
  return { grantId: OWNER_GRANT, parentId: null, ...all, grantedAt: openedAt, expiresAt, revokedAt: null };
}

export function sessionState(session: SiteSession, hostConnected: boolean, now: number): SessionState {
  if (session.closedAt !== null) return 'closed';
  if (now >= session.expiresAt) return 'expired';
  return hostConnected ? 'active' : 'suspended';
}

/** Whether the session is neither closed nor expired. */
export function isOpen(session: SiteSession, now: number): boolean {
  return session.closedAt === null && now < session.expiresAt;
}

export function isGrantLive(grant: Grant, now: number): boolean {
  return grant.revokedAt === null && now < grant.expiresAt;
}

/** Whether `ancestorId` is the grant itself, or a grant from which it derives. */
export function descendsFrom(grants: readonly Grant[], grantId: string, ancestorId: string): boolean {
  const byId = new Map(grants.map((grant) => [grant.grantId, grant]));
  for (let at = byId.get(grantId); at; at = at.parentId === null ? undefined : byId.get(at.parentId)) {
    if (at.grantId === ancestorId) return true;
  }
  return false;
}
