/** Estimates the size of a site or a session in an answer, for the answer's budget of bytes. */
import type { SessionView, SiteView } from '../../core/sites/api.ts';
import type { Grant } from '../../core/sites/session.ts';
import type { RowSize } from './page-budget.ts';

/** The size of a site in an answer. A site lists up to 256 names of each kind. */
export const SITE_SIZE: RowSize<SiteView> = {
  fields: ['eventNames', 'actions'],
  bytes: ({ eventNames, actions }, asks) =>
    (asks('eventNames') ? namesBytes(eventNames) : 0) + (asks('actions') ? namesBytes(actions) : 0),
};

/** Returns the approximate size of the names as a JSON list: their characters, quotes and commas. */
function namesBytes(names: readonly string[]): number {
  return names.reduce((sum, name) => sum + name.length + 3, 0);
}

/** The size of a session in an answer: as large as its grants and its site. */
export const SESSION_SIZE: RowSize<SessionView> = {
  fields: ['grants', 'site'],
  bytes: ({ grants, site }, asks) =>
    (asks('grants') ? (grants ?? []).reduce((sum, grant) => sum + grantBytes(grant), 0) : 0) +
    (asks('site') && site ? SITE_SIZE.bytes(site, asks) : 0),
};

/** The approximate number of bytes that a grant takes in an answer besides its names. */
const GRANT_BYTES = 256;

function grantBytes({ events, actions }: Grant): number {
  return GRANT_BYTES + namesBytes(events ?? []) + namesBytes(actions ?? []);
}
