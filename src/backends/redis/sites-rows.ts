/** Decodes rows of sites, sessions, grants and tickets, and encodes the permissions of a grant. Pure functions. */
import type { Grant, SiteSession } from '../../core/sites/site-session.ts';
import type { NewGrant, NewSite, Ticket } from '../../core/sites/site-stores.ts';
import type { Site } from '../../core/sites/site.ts';
import { fieldsOf, numberOr, type Reply } from './replies.ts';

const LIFE = 'life:';

/** The part of a grant that acts read and change, as JSON. Its times are texts. */
type Life = {
  readonly order: string;
  readonly parentId?: string;
  readonly grantedAt: string;
  readonly expiresAt: string;
  readonly revokedAt?: string;
};
type What = Pick<Grant, 'events' | 'actions' | 'share'>;

/**
 * Decodes a site from its definition and the time when it was first registered; null if either is absent. Does not
 * validate the JSON, because only this backend writes it.
 */
export function decodeSite(definition: Reply | undefined, registeredAt: Reply | undefined): Site | null {
  if (typeof definition !== 'string' || typeof registeredAt !== 'string') return null;
  return { ...(JSON.parse(definition) as NewSite), registeredAt: Number(registeredAt) };
}

/** Decodes a session from its row; null if there is none. */
export function decodeSession(row: Reply | undefined): SiteSession | null {
  const fields = fieldsOf(row ?? null);
  if (fields.size === 0) return null;
  const text = (name: string): string => fields.get(name) ?? '';
  return {
    userId: text('userId'),
    siteId: text('siteId'),
    sessionId: text('sessionId'),
    openedAt: Number(text('openedAt')),
    expiresAt: Number(text('expiresAt')),
    closedAt: numberOr(fields.get('closedAt')),
    grants: grantsOf(fields),
  };
}

function grantsOf(fields: ReadonlyMap<string, string>): readonly Grant[] {
  const found: { readonly order: number; readonly grant: Grant }[] = [];
  for (const [name, life] of fields) {
    if (!name.startsWith(LIFE)) continue;
    const grantId = name.slice(LIFE.length);
    const { order } = JSON.parse(life) as Life;
    found.push({ order: Number(order), grant: decodeGrant(grantId, life, fields.get(`what:${grantId}`) ?? '') });
  }
  return found.sort((a, b) => a.order - b.order).map(({ grant }) => grant);
}

/**
 * Decodes a grant from two fields of its session's row: `life` contains its times and its parent, `what` its
 * permissions.
 */
export function decodeGrant(grantId: string, life: string, what: string): Grant {
  const { parentId, grantedAt, expiresAt, revokedAt } = JSON.parse(life) as Life;
  return {
    grantId,
    parentId: parentId ?? null,
    ...(JSON.parse(what) as What),
    grantedAt: Number(grantedAt),
    expiresAt: Number(expiresAt),
    revokedAt: numberOr(revokedAt),
  };
}

/**
 * Encodes the permissions of a grant as JSON. Acts return this text without parsing it, because Lua cannot write an
 * empty list as JSON.
 */
export function encodeWhat({ events, actions, share }: NewGrant): string {
  return JSON.stringify({ events, actions, share } satisfies What);
}

/** Decodes a ticket from its row; null if there is none. */
export function decodeTicket(row: Reply): Ticket | null {
  const fields = fieldsOf(row);
  if (fields.size === 0) return null;
  return {
    sessionId: fields.get('sessionId') ?? '',
    grantId: fields.get('grantId') ?? '',
    holderExpiresAt: numberOr(fields.get('holderExpiresAt')),
  };
}
