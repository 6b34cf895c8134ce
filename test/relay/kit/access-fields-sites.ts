/** Lists who may call which GraphQL field of sites, and with which answer. */
import type { FieldAccess } from './access-field.ts';

/** The root fields of sites and of their sessions, with example calls. */
export const SITE_FIELDS: Readonly<Record<string, readonly FieldAccess[]>> = {
  'Query.sites': [
    { rule: 'mine', call: 'sites', found: 'shows', other: 'empty' },
    { rule: 'owned', call: 'sites(userId: $user)', found: 'shows', other: 'not_found', absent: 'empty' },
  ],
  'Query.site': [
    { rule: 'owned', call: 'site(owner: $user, siteId: $site)', found: 'shows', other: 'null', alikeAtHome: true },
    { rule: 'mine', call: 'site(siteId: $site)', found: 'shows', admin: 'invalid_argument', other: 'null' },
  ],
  'Query.siteSession': [{ rule: 'session', call: 'siteSession(sessionId: $session)', found: 'shows', other: 'null' }],
  'Mutation.registerSite': [
    {
      rule: 'mine',
      scope: 'host',
      call: 'registerSite(input: { siteId: "fresh", clientId: "loose" })',
      found: 'shows',
      admin: 'forbidden',
      other: 'empty',
    },
  ],
  'Mutation.removeSite': [
    {
      rule: 'mine',
      scope: 'host',
      call: 'removeSite(siteId: $site)',
      found: '',
      admin: 'forbidden',
      other: 'not_found',
      harmful: true,
    },
  ],
  'Mutation.openSiteSession': [
    {
      rule: 'mine',
      scope: 'host',
      call: 'openSiteSession(input: { siteId: $site })',
      found: 'shows',
      admin: 'forbidden',
      other: 'not_found',
    },
  ],
  'Mutation.closeSiteSession': [
    {
      rule: 'session',
      scope: 'host',
      call: 'closeSiteSession(sessionId: $session)',
      found: '',
      admin: 'forbidden',
      viewer: 'forbidden',
      other: 'not_found',
      harmful: true,
    },
  ],
  'Mutation.shareSiteSession': [
    {
      rule: 'session',
      scope: 'host',
      call: 'shareSiteSession(input: { sessionId: $session })',
      found: 'shows',
      admin: 'forbidden',
      other: 'not_found',
    },
  ],
  'Mutation.revokeGrant': [
    {
      rule: 'session',
      scope: 'host',
      call: 'revokeGrant(sessionId: $session, grantId: $grant)',
      found: '',
      admin: 'forbidden',
      other: 'not_found',
      harmful: true,
    },
  ],
  'Mutation.createSiteTicket': [
    {
      rule: 'session',
      call: 'createSiteTicket(sessionId: $session)',
      found: 'empty',
      admin: 'forbidden',
      other: 'not_found',
    },
  ],
  'Mutation.invokeSiteAction': [
    {
      rule: 'session',
      // The site does not offer this action, so the owner's call runs nothing.
      call: 'invokeSiteAction(input: { sessionId: $session, action: "none.such" })',
      found: 'refused: site_action_denied',
      admin: 'forbidden',
      other: 'not_found',
    },
  ],
};
