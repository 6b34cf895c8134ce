/** Lists who may use which REST route, and with which answer. */
import { CLIENT_FILES } from '../../../src/http/built-files.ts';
import { HAS_DEVICES, HAS_PAUSES, HAS_REVOCATIONS } from '../../kit/store.ts';
import type { Ids } from './planted.ts';

// Defines a row in the access table of REST: a request, who may send it, and the answers.

/**
 * A row of the access table of REST. `access`: who may send the request. A `grant` opens the session for which it was
 * issued; the session's owner needs the scope `invoke`, or `host` for changes. `found` and `absent`: the answers for a
 * permitted requester about present and absent rows.
 */
export type Route = {
  readonly access: 'admin' | 'invoke' | 'host' | 'grant';
  readonly target: (ids: Ids) => string;
  readonly body?: (ids: Ids) => object;
  readonly found: number;
  readonly absent: number;
  /** Whether the answer contains no data of any single user. Such an answer must not contain the word `planted`. */
  readonly plain?: true;
  /** The scope that the session's owner needs, if `access` is `grant` and the request changes the session. */
  readonly scope?: 'host';
  /** Whether the request names no user, so that another user gets their own rows, which may exist. */
  readonly mine?: true;
  /** Whether the request would remove what later rows need. If so, only requesters without permission send it. */
  readonly harmful?: true;
};

/** Returns the rows, or none if the store of the run lacks what they are about: then it refuses with `not_supported`. */
function onlyIf(isKept: boolean, routes: readonly Route[]): readonly Route[] {
  return isKept ? routes : [];
}
/** Whether pauses, revocations and devices are shown by their lists: a store that has none has empty lists. */
const SHOWN = HAS_PAUSES ? {} : { plain: true as const };

// Lists who may use which REST route of sites, and with which answer.

const site = ({ site: id }: Ids): string => `/sites/${id}`;
const session = ({ session: id }: Ids): string => `/site-sessions/${id}`;

/** The documented operations of sites and of their sessions, with example requests. */
const SITE_ROUTES: Readonly<Record<string, readonly Route[]>> = {
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

const command = ({ user, client, command }: Ids): string => `/commands/${user}/${client}/${command}`;

/** The documented operations, each with an example. */
export const ROUTES: Readonly<Record<string, readonly Route[]>> = {
  'GET /users': [{ access: 'admin', target: () => '/users', found: 200, absent: 200 }],
  'GET /users/{user_id}': [{ access: 'admin', target: ({ user }) => `/users/${user}`, found: 200, absent: 404 }],
  'GET /connections': [
    { access: 'admin', target: () => '/connections', found: 200, absent: 200 },
    { access: 'admin', target: ({ user }) => `/connections?user_id=${user}`, found: 200, absent: 200 },
  ],
  'GET /connections/{user_id}/{client_id}/actions': [
    {
      access: 'admin',
      target: ({ user, client }) => `/connections/${user}/${client}/actions`,
      found: 200,
      absent: 404,
    },
  ],
  'GET /actions': [{ access: 'admin', target: () => '/actions', found: 200, absent: 200 }],
  'GET /rpc/pending': [
    { access: 'admin', target: () => '/rpc/pending', found: 200, absent: 200 },
    {
      access: 'admin',
      target: ({ user, client }) => `/rpc/pending?user_id=${user}&client_id=${client}&check_instance=i`,
      found: 200,
      absent: 200,
    },
  ],
  'GET /rpc/pending/count': [
    {
      access: 'admin',
      target: ({ user }) => `/rpc/pending/count?user_id=${user}`,
      found: 200,
      absent: 200,
      plain: true,
    },
  ],
  'GET /rpc/pending/count-by-node': [
    {
      access: 'admin',
      target: ({ user }) => `/rpc/pending/count-by-node?user_id=${user}`,
      found: 200,
      absent: 200,
      plain: true,
    },
  ],
  'GET /history/streams': [
    { access: 'admin', target: ({ user }) => `/history/streams?user_id=${user}`, found: 200, absent: 200 },
  ],
  'GET /history/messages': [
    {
      access: 'admin',
      target: ({ stream }) => `/history/messages?stream=${stream}&include_payload=true`,
      found: 200,
      absent: 404,
    },
  ],
  'GET /history/command/{user_id}/{command_id}': [
    {
      access: 'admin',
      target: ({ user, command }) => `/history/command/${user}/${command}?include_payload=true`,
      found: 200,
      absent: 200,
    },
  ],
  'POST /connections/{user_id}/{client_id}/actions/{action}/preflight': [
    {
      access: 'invoke',
      target: ({ user, client, action }) => `/connections/${user}/${client}/actions/${action}/preflight`,
      body: ({ command, params }) => ({ command_id: command, params }),
      found: 200,
      absent: 200,
    },
  ],
  'POST /connections/{user_id}/{client_id}/actions/{action}': [
    {
      access: 'invoke',
      target: ({ user, client, action }) => `/connections/${user}/${client}/actions/${action}`,
      // The command with this id has ended, so the owner's call replays its outcome and runs nothing.
      body: ({ command, params }) => ({ command_id: command, params }),
      found: 200,
      absent: 409,
    },
  ],
  'GET /commands': [
    {
      access: 'invoke',
      target: (ids) => `/commands?id_or_trace=${ids.command}`,
      found: 200,
      absent: 200,
      mine: true,
    },
  ],
  'GET /commands/{user_id}/{client_id}/{command_id}': [
    { access: 'invoke', target: command, found: 200, absent: 404 },
    { access: 'invoke', target: (ids) => `${command(ids)}?within_ms=1000`, found: 200, absent: 404 },
  ],
  'POST /commands/{user_id}/{client_id}/{command_id}/cancel': [
    // The command has ended, so the owner's call changes nothing.
    { access: 'invoke', target: (ids) => `${command(ids)}/cancel`, body: () => ({}), found: 200, absent: 404 },
  ],
  'GET /pauses': [
    { access: 'invoke', target: () => '/pauses', found: 200, absent: 200, mine: true, ...SHOWN },
    { access: 'invoke', target: ({ user }) => `/pauses?user_id=${user}`, found: 200, absent: 200, ...SHOWN },
  ],
  'POST /pauses': onlyIf(HAS_PAUSES, [
    {
      access: 'invoke',
      target: () => '/pauses',
      body: ({ user }) => ({ user_id: user, client_id: 'none', reason: 'none' }),
      found: 201,
      absent: 201,
      harmful: true,
    },
  ]),
  'DELETE /pauses/{pause_id}': onlyIf(HAS_PAUSES, [
    { access: 'invoke', target: ({ pause }) => `/pauses/${pause}`, found: 200, absent: 404, harmful: true },
  ]),
  'GET /contexts': [
    { access: 'admin', target: () => '/contexts', found: 200, absent: 200 },
    { access: 'admin', target: ({ user }) => `/contexts?user_id=${user}&ownership=worker`, found: 200, absent: 200 },
  ],
  'GET /contexts/count': [
    { access: 'admin', target: ({ user }) => `/contexts/count?user_id=${user}`, found: 200, absent: 200, plain: true },
  ],
  'GET /browser-windows': [
    { access: 'admin', target: () => '/browser-windows', found: 200, absent: 200 },
    { access: 'admin', target: ({ user }) => `/browser-windows?user_id=${user}`, found: 200, absent: 200 },
  ],
  'GET /browser-windows/count': [
    {
      access: 'admin',
      target: ({ user }) => `/browser-windows/count?user_id=${user}`,
      found: 200,
      absent: 200,
      plain: true,
    },
  ],
  'GET /browser-windows/{window_id}': [
    {
      access: 'admin',
      target: ({ user, window }) => `/browser-windows/${window}?user_id=${user}`,
      found: 200,
      absent: 404,
    },
  ],
  'GET /workers': [{ access: 'admin', target: ({ user }) => `/workers?user_id=${user}`, found: 200, absent: 200 }],
  'GET /workers/available': [
    { access: 'admin', target: ({ user }) => `/workers/available?user_id=${user}`, found: 200, absent: 200 },
  ],
  'GET /workers/tasks/{task_id}': [
    {
      access: 'admin',
      target: ({ user, task }) => `/workers/tasks/${task}?user_id=${user}`,
      found: 200,
      absent: 200,
    },
  ],
  'GET /delivery/summary': [
    { access: 'admin', target: () => '/delivery/summary', found: 200, absent: 200, plain: true },
  ],
  'GET /revocations': [{ access: 'admin', target: () => '/revocations', found: 200, absent: 200, ...SHOWN }],
  'POST /revocations': onlyIf(HAS_REVOCATIONS, [
    {
      access: 'invoke',
      target: () => '/revocations',
      body: ({ user }) => ({ user_id: user, token_id: 'none', reason: 'none' }),
      found: 201,
      absent: 201,
      harmful: true,
    },
  ]),
  // Open to everybody: a proof counts, which devices.test.ts tests.
  ...{ 'POST /enrolments': [], 'POST /devices/token': [] },
  'POST /enrolments/lookup': onlyIf(HAS_DEVICES, [
    {
      access: 'invoke',
      target: () => '/enrolments/lookup',
      body: () => ({ code: 'BCDF-GHJK' }),
      found: 404,
      absent: 404,
      mine: true,
      plain: true,
    },
  ]),
  // Users need the scope `connect` as well, which devices.test.ts tests.
  'POST /enrolments/decide': onlyIf(HAS_DEVICES, [
    {
      access: 'admin',
      target: () => '/enrolments/decide',
      body: ({ user }) => ({ code: 'BCDF-GHJK', decision: 'deny', user_id: user }),
      found: 404,
      absent: 404,
      harmful: true,
    },
  ]),
  'GET /devices': [
    { access: 'invoke', target: () => '/devices', found: 200, absent: 200, mine: true, ...SHOWN },
    { access: 'invoke', target: ({ user }) => `/devices?user_id=${user}`, found: 200, absent: 200, ...SHOWN },
  ],
  'PUT /devices/{user_id}/{client_id}': onlyIf(HAS_DEVICES, [
    {
      access: 'invoke',
      target: ({ user, client }) => `/devices/${user}/${client}`,
      body: () => ({ name: 'Hall' }),
      found: 404,
      absent: 404,
      plain: true,
    },
  ]),
  'DELETE /devices/{user_id}/{client_id}': onlyIf(HAS_DEVICES, [
    {
      access: 'invoke',
      target: ({ user, client }) => `/devices/${user}/${client}`,
      found: 404,
      absent: 404,
      plain: true,
    },
  ]),
  'GET /delivery/nodes': [{ access: 'admin', target: () => '/delivery/nodes', found: 200, absent: 200, plain: true }],
  'GET /delivery/tenants': [{ access: 'admin', target: () => '/delivery/tenants', found: 200, absent: 200 }],
  'GET /delivery/status': [
    {
      access: 'admin',
      target: ({ user, client, command: id }) =>
        `/delivery/status?user_id=${user}&client_id=${client}&command_id=${id}`,
      found: 200,
      absent: 404,
    },
  ],
  'GET /delivery/commands': [
    { access: 'admin', target: () => '/delivery/commands', found: 200, absent: 200 },
    { access: 'admin', target: ({ user }) => `/delivery/commands?user_id=${user}`, found: 200, absent: 200 },
  ],
  'GET /delivery/failures': [
    {
      access: 'admin',
      target: ({ user }) => `/delivery/failures?by=client&outcomes=completed&user_id=${user}`,
      found: 200,
      absent: 200,
    },
  ],
  // The requests name absent rows, because later rows of the table need the clients and the node.
  'POST /connections/{user_id}/{client_id}/disconnect': [
    {
      access: 'admin',
      target: ({ user }) => `/connections/${user}/nowhere/disconnect`,
      body: () => ({}),
      found: 404,
      absent: 404,
      plain: true,
    },
  ],
  'POST /delivery/nodes/{node_id}/drain': [
    {
      access: 'admin',
      target: () => '/delivery/nodes/nowhere/drain',
      body: () => ({}),
      found: 404,
      absent: 404,
      plain: true,
    },
  ],
  'GET /dedup/stats': [{ access: 'admin', target: () => '/dedup/stats', found: 200, absent: 200, plain: true }],
  'GET /dedup/backend': [{ access: 'admin', target: () => '/dedup/backend', found: 200, absent: 200, plain: true }],
  'GET /history/raw-messages': [
    { access: 'admin', target: () => '/history/raw-messages', found: 200, absent: 200 },
    {
      access: 'admin',
      target: ({ stream }) => `/history/raw-messages?stream=${stream}&values_only=true`,
      found: 200,
      absent: 404,
    },
  ],
  'POST /ingest': [
    {
      access: 'host',
      target: () => '/ingest',
      body: () => ({ kind: 'event', stream_suffix: 'notes', client_id: 'loose', instance_id: 'i', payload: {} }),
      found: 200,
      absent: 200,
      mine: true,
    },
  ],
  ...SITE_ROUTES,
};

/**
 * The paths that no document describes. `open`: for everybody. `admin`: for administrators. `upgrade`: for upgrades
 * only. `file`: for everybody, if the file was built.
 */
export const BUILTIN_ROUTES: Readonly<Record<string, 'open' | 'admin' | 'upgrade' | 'file'>> = {
  '/': 'open',
  '/healthz': 'open',
  '/readyz': 'open',
  '/openapi.json': 'open',
  '/reference': 'open',
  '/metrics': 'admin',
  '/connect': 'upgrade',
  ...Object.fromEntries(CLIENT_FILES.map((name) => [`/clients/${name}`, 'file'])),
};
