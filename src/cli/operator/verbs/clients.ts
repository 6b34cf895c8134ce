/** Declares the verbs about clients, users, advertised actions, reported execution contexts, and sites. */
import type { Verb } from '../verb.ts';
import { wordsOf } from '../wire.ts';
import { CLIENT_FLAGS, COUNT_FLAG, PAGE_FLAGS, USER_FLAG, YES_FLAG } from './shared.ts';

const CLIENT = ['user/client'];

export const CLIENT_VERBS: readonly Verb[] = [
  {
    name: 'clients ls',
    brief: 'List clients that are connected, or were until lately',
    flags: {
      ...USER_FLAG,
      status: { help: 'Only this status', values: wordsOf('ConnectionStatus') },
      clientType: { help: 'Only this kind of client', values: wordsOf('ClientType') },
      action: 'Only clients that advertise this action',
      text: 'Only where an id, or the value of a label, contains this',
      label: { help: 'Only with this label, as key=value', many: true },
      nodeId: 'Only this node',
      ...PAGE_FLAGS,
    },
    examples: ['clients ls --status stale -o ids', 'clients ls --client-type browser --label room=12'],
    load: async () => (await import('../run/clients.ts')).clientsLs,
  },
  {
    name: 'clients get',
    brief: 'Show one client',
    args: CLIENT,
    load: async () => (await import('../run/clients.ts')).clientsGet,
  },
  {
    name: 'clients actions',
    brief: 'List the actions that a client advertises',
    args: CLIENT,
    load: async () => (await import('../run/clients.ts')).clientsActions,
  },
  {
    name: 'clients flapping',
    brief: 'List the clients that reconnected most in the last hour',
    flags: { limit: 'Most rows, 1 to 1000 (default 100)' },
    load: async () => (await import('../run/clients.ts')).clientsFlapping,
  },
  {
    name: 'clients watch',
    brief: 'Print changes of connections from now on',
    flags: { ...USER_FLAG, ...COUNT_FLAG },
    load: async () => (await import('../run/clients.ts')).clientsWatch,
  },
  {
    name: 'clients disconnect',
    brief: 'Close the link of a client, which may connect again at once',
    args: CLIENT,
    flags: { reason: 'Why, for the audit', ...YES_FLAG },
    load: async () => (await import('../run/clients.ts')).clientsDisconnect,
  },
  {
    name: 'users ls',
    brief: 'List users',
    flags: PAGE_FLAGS,
    load: async () => (await import('../run/users.ts')).usersLs,
  },
  {
    name: 'users get',
    brief: 'Show a user: connections, streams and waits',
    args: ['user'],
    load: async () => (await import('../run/users.ts')).usersGet,
  },
  {
    name: 'actions ls',
    brief: 'List a sample of the actions that connected clients advertise',
    args: ['action?'],
    load: async () => (await import('../run/users.ts')).actionsLs,
  },
  {
    name: 'places ls',
    brief: 'List execution contexts, or browser windows, that clients report',
    flags: {
      kind: { help: 'What to list (default context)', values: ['context', 'window'] },
      ...CLIENT_FLAGS,
      clientType: { help: 'Only this kind of client', values: wordsOf('ClientType') },
      ownership: { help: 'Only for this use', values: wordsOf('Ownership') },
      status: 'Only this status: active, idle, closed or stale; of windows open, stale or closed',
      windowId: 'Only contexts in this window',
      ...PAGE_FLAGS,
    },
    load: async () => (await import('../run/places.ts')).placesLs,
  },
  {
    name: 'sites ls',
    brief: 'List cooperative sites',
    flags: { owner: 'Only sites of this user', ...PAGE_FLAGS },
    load: async () => (await import('../run/sites.ts')).sitesLs,
  },
  {
    name: 'sites get',
    brief: 'Show one site',
    args: ['owner/site'],
    load: async () => (await import('../run/sites.ts')).sitesGet,
  },
];
