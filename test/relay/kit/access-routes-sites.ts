/** Lists who may use which REST route of sites, and with which answer. */
import type { Route } from './access-route.ts';
import type { Ids } from './planted.ts';

const site = ({ site: id }: Ids): string => `/sites/${id}`;
const session = ({ session: id }: Ids): string => `/site-sessions/${id}`;

/** The documented operations of sites and of their sessions, with example requests. */
export const SITE_ROUTES: Readonly<Record<string, readonly Route[]>> = {
  'GET /sites': [
    { access: 'invoke', target: () => '/sites', found: 200, absent: 200, mine: true },
    { access: 'invoke', target: ({ user }) => `/sites?owner=${user}`, found: 200, absent: 200 },
  ],
  'GET /sites/{site_id}': [
    { access: 'invoke', target: (ids) => `${site(ids)}?owner=${ids.user}`, found: 200, absent: 404 },
  ],
  'PUT /sites/{site_id}': [
    {
      access: 'host',
      target: () => '/sites/fresh',
      body: () => ({ client_id: 'loose' }),
      found: 200,
      absent: 200,
      mine: true,
    },
  ],
  'DELETE /sites/{site_id}': [{ access: 'host', target: site, found: 200, absent: 404, harmful: true }],
  'POST /sites/{site_id}/sessions': [
    { access: 'host', target: (ids) => `${site(ids)}/sessions`, found: 200, absent: 404, plain: true },
  ],
  'GET /site-sessions/{session_id}': [{ access: 'grant', target: session, found: 200, absent: 404 }],
  'DELETE /site-sessions/{session_id}': [{ access: 'host', target: session, found: 200, absent: 404, harmful: true }],
  'POST /site-sessions/{session_id}/grants': [
    {
      access: 'grant',
      scope: 'host',
      target: (ids) => `${session(ids)}/grants`,
      found: 200,
      absent: 404,
      plain: true,
    },
  ],
  'DELETE /site-sessions/{session_id}/grants/{grant_id}': [
    {
      access: 'grant',
      scope: 'host',
      target: (ids) => `${session(ids)}/grants/${ids.grant}`,
      found: 200,
      absent: 404,
      harmful: true,
    },
  ],
  'POST /site-sessions/{session_id}/ticket': [
    { access: 'grant', target: (ids) => `${session(ids)}/ticket`, found: 200, absent: 404, plain: true },
  ],
  'POST /site-sessions/{session_id}/actions/{action}': [
    // The site does not offer this action, so the owner's call runs nothing.
    {
      access: 'grant',
      target: (ids) => `${session(ids)}/actions/none.such`,
      body: () => ({}),
      found: 403,
      absent: 404,
      plain: true,
    },
  ],
};
