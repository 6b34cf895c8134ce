/** A session of a site, its grants, and when they are live. */
import type { SiteKey } from './site.ts';

/**
 * The state of a session. `suspended`: the host is not connected, so nothing can be invoked; viewers keep listening.
 */
export type SessionState = 'active' | 'suspended' | 'closed' | 'expired';

/**
 * What the holder of one token may do in a session: never more than the parent grant and the site's definition allow.
 * Immutable. It does not contain the token, of which only a digest is stored.
 */
export type Grant = {
  readonly grantId: string;
  /**
   * The grant that this one derives from. Null for the session's first grant, and for a grant that the owner gave
   * directly.
   */
  readonly parentId: string | null;
  /** The names of the events that the holder may receive; null: all that the site's definition allows. */
  readonly events: readonly string[] | null;
  /** The actions that the holder may invoke; null, for the owner only: all that the site's definition allows. */
  readonly actions: readonly string[] | null;
  /** Whether its holder may share the session with others. */
  readonly share: boolean;
  readonly grantedAt: number;
  readonly expiresAt: number;
  readonly revokedAt: number | null;
};

/** A limited time in which viewers use a site. Immutable. Its state is derived when read. */
export type SiteSession = SiteKey & {
  readonly sessionId: string;
  readonly openedAt: number;
  readonly expiresAt: number;
  readonly closedAt: number | null;
  /** The grants of the session, in the order in which they were given. */
  readonly grants: readonly Grant[];
};

/** The grant id that represents the owner; no real grant has it. */
export const OWNER_GRANT = 'owner';

/** Returns the owner's unlimited grant, which lasts as long as the session. */
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

/** Whether `ancestorId` is the grant itself or a grant that it derives from. */
export function descendsFrom(grants: readonly Grant[], grantId: string, ancestorId: string): boolean {
  const byId = new Map(grants.map((grant) => [grant.grantId, grant]));
  for (let at = byId.get(grantId); at; at = at.parentId === null ? undefined : byId.get(at.parentId)) {
    if (at.grantId === ancestorId) return true;
  }
  return false;
}
