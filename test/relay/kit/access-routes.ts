/** Lists who may use which REST route, and with which answer, and which paths have no document. */
import { CLIENT_FILES } from '../../../src/http/file-reply.ts';
import { SITE_ROUTES } from './access-routes-sites.ts';
import type { Route } from './access-route.ts';
import type { Ids } from './planted.ts';

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
  'GET /commands/{user_id}/{client_id}/{command_id}': [
    { access: 'invoke', target: command, found: 200, absent: 404 },
    { access: 'invoke', target: (ids) => `${command(ids)}?within_ms=1000`, found: 200, absent: 404 },
  ],
  'POST /commands/{user_id}/{client_id}/{command_id}/cancel': [
    // The command has ended, so the owner's call changes nothing.
    { access: 'invoke', target: (ids) => `${command(ids)}/cancel`, body: () => ({}), found: 200, absent: 404 },
  ],
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
