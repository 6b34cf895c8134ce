/** Parses the params of a command, and separates the site context that the relay adds to them. */
import type { Params, SiteCall } from './types.ts';

const RESERVED = '__cooperative_site_';

export type ParsedParams = { readonly params: Params; readonly site: SiteCall | null };

/**
 * Parses a payload; null if it is not a JSON object. Reserved members, which only the relay may add, are moved from
 * params to `site`.
 */
export function parseParams(payload: string | null): ParsedParams | null {
  const value = payload === null ? {} : parse(payload);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const members = Object.entries(value);
  const reserved = new Map(members.filter(([name]) => name.startsWith(RESERVED)));
  if (reserved.size === 0) return { params: Object.fromEntries(members), site: null };
  return { params: Object.fromEntries(members.filter(([name]) => !reserved.has(name))), site: siteOf(reserved) };
}

function siteOf(reserved: ReadonlyMap<string, unknown>): SiteCall | null {
  const sessionId = reserved.get(`${RESERVED}session_id`);
  const siteId = reserved.get(`${RESERVED}id`);
  return typeof sessionId === 'string' && typeof siteId === 'string' ? { sessionId, siteId } : null;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
