/**
 * The bounds of sites, their sessions and grants. Importers use them through limits.ts. Times are milliseconds, unless
 * a name says otherwise.
 */
export const SITES_PER_USER = 100;
export const SESSIONS_PER_SITE = 1000;
export const GRANTS_PER_SESSION = 100;
/** The most event names, and the most actions, that a site's descriptor or a grant may list. */
export const SITE_NAMES = 256;
export const SESSION_TTL_SECONDS = { default: 3600, min: 1, max: 24 * 3600 } as const;
/** How long an ended session is remembered, so that it is not reported as unknown. */
export const SESSION_KEPT_MS = 3600_000;
export const TICKET_MS = 30_000;
/** The most tickets of one session that have not been redeemed. */
export const SESSION_TICKETS = 100;
/**
 * The most redeemed tickets of one session that are valid for reconnects. Beyond that, the one redeemed longest ago is
 * dropped.
 */
export const SESSION_TICKETS_REDEEMED = 1000;
/** The longest time between two checks whether the session of an open event stream still permits the stream. */
export const SESSION_WATCH_MS = 1_000;
