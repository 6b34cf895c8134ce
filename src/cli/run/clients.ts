/** Runs the verbs about clients, users, advertised actions, contexts, windows and sites. */
import {
  ConnectionActionsDocument,
  DisconnectClientDocument,
  GetClientDocument,
  ListActionsDocument,
  ListBrowserWindowsDocument,
  ListConnectionsDocument,
  ListContextsDocument,
  ListFlappingClientsDocument,
  UserSummaryDocument,
  WatchClientsDocument,
} from '../../../generated/cli.ts';
import { confirmed, readAddress } from '../arguments.ts';
import { accepted, notFound, usageFailure } from '../exit-codes.ts';
import { listing, printEvents, queryListing } from '../listing.ts';
import type { OperatorRun, RunVerb } from '../verb.ts';
import { objectText } from '../output.ts';
import { readWord } from '../enum-words.ts';
import { bodyOf, pathOf } from '../relay.ts';

const CLIENT_ID = ['user_id', 'client_id'];

export const clientsLs = queryListing({
  shown: [...CLIENT_ID, 'status', 'client_type', 'node_id', 'connected_at', 'last_seen_at'],
  id: CLIENT_ID,
  document: ListConnectionsDocument,
  variables: ({ flags, lists }) => ({
    user_id: flags['userId'],
    node_id: flags['nodeId'],
    action: flags['action'],
    text: flags['text'],
    labels: lists['label'],
    status: readWord('ConnectionStatus', flags['status']),
    client_type: readWord('ClientType', flags['clientType']),
  }),
  page: ({ connections }) => connections,
});

export const clientsGet: RunVerb = async ({ relay, args, io, output }) => {
  const [user_id, client_id] = readAddress(args[0] ?? '', 2);
  const { connection } = await relay.query(GetClientDocument, { user_id, client_id });
  if (connection === null) throw notFound('There is no connection of this client.');
  io.print(objectText(connection, output, { id: CLIENT_ID }));
};

export const clientsActions = queryListing({
  shown: ['name', 'version', 'summary'],
  id: ['name'],
  document: ConnectionActionsDocument,
  variables({ args }) {
    const [user_id, client_id] = readAddress(args[0] ?? '', 2);
    return { user_id, client_id };
  },
  page({ connection }) {
    if (connection === null) throw notFound('There is no connection of this client.');
    return connection.actions;
  },
});

export const clientsFlapping = queryListing({
  shown: [...CLIENT_ID, 'reconnects', 'connection.status', 'connection.disconnect_cause', 'connection.last_seen_at'],
  id: CLIENT_ID,
  document: ListFlappingClientsDocument,
  variables: () => ({}),
  page: ({ flapping }) => flapping,
});

export const clientsWatch: RunVerb = (run) =>
  printEvents(run, {
    shown: ['at', 'change', 'cause', 'connection.user_id', 'connection.client_id', 'connection.status'],
    id: ['connection.user_id', 'connection.client_id'],
    document: WatchClientsDocument,
    variables: { user_id: run.flags['userId'] },
    event: ({ connectionEvents }) => connectionEvents,
  });

export const clientsDisconnect: RunVerb = async (run) => {
  const { relay, args, io, output, flags } = run;
  const [user_id, client_id] = readAddress(args[0] ?? '', 2);
  await confirmed(run, `Closing the link of ${user_id}/${client_id}`, client_id);
  const variables = { user_id, client_id, reason: flags['reason'] };
  // Not repeated after a broken connection: a second request could close the new link of a client that has reconnected.
  const { disconnectClient } = await relay.query(DisconnectClientDocument, variables, { repeatable: false });
  io.print(objectText(accepted(disconnectClient), output, { id: CLIENT_ID.map((name) => `connection.${name}`) }));
};

export const usersLs = listing('/users', { shown: ['user_id', 'connection_count', 'stream_count'], id: ['user_id'] });

export const usersGet: RunVerb = async ({ relay, args, io, output }) => {
  const [user_id = ''] = args;
  if (user_id === '') throw usageFailure('expected a user');
  const { user } = await relay.query(UserSummaryDocument, { user_id });
  if (user === null) throw notFound('There is no such user.');
  io.print(objectText(user, output, { id: ['user_id'] }));
};

export const actionsLs = queryListing({
  shown: ['action.name', 'user_id', 'client_id', 'action.version', 'action.summary'],
  id: ['user_id', 'client_id', 'action.name'],
  document: ListActionsDocument,
  variables: ({ args: [name] }) => ({ name }),
  page: ({ actions }) => actions,
});

export const placesLs: RunVerb = (run) => (run.flags['kind'] === 'window' ? windowsLs(run) : contextsLs(run));

const contextsLs = queryListing({
  shown: ['user_id', 'client_id', 'context_id', 'client_type', 'status', 'ownership', 'window_id', 'task_id', 'title'],
  id: ['user_id', 'client_id', 'context_id'],
  document: ListContextsDocument,
  variables: (run) => ({
    ...filterOf(run),
    status: readWord('ContextStatus', run.flags['status']),
    window_id: run.flags['windowId'],
  }),
  page: ({ contexts }) => contexts,
});

const windowsLs = queryListing({
  shown: [...CLIENT_ID, 'window_id', 'status', 'ownership', 'tab_count', 'capacity', 'idle_count', 'busy_count'],
  id: [...CLIENT_ID, 'window_id'],
  document: ListBrowserWindowsDocument,
  variables(run) {
    if (run.flags['windowId'] !== undefined) throw usageFailure('--window-id: is for contexts');
    return { ...filterOf(run), status: readWord('WindowStatus', run.flags['status']) };
  },
  page: ({ browserWindows }) => browserWindows,
});

function filterOf({ flags }: OperatorRun) {
  return {
    user_id: flags['userId'],
    client_id: flags['clientId'],
    client_type: readWord('ClientType', flags['clientType']),
    ownership: readWord('Ownership', flags['ownership']),
  };
}

const SITE_ID = ['owner', 'site_id'];

export const sitesLs = listing(
  '/sites',
  { shown: [...SITE_ID, 'client_id', 'title', 'actions', 'event_names'], id: SITE_ID },
  ({ flags: { owner } }) => ({ owner }),
);

export const sitesGet: RunVerb = async ({ relay, args, io, output }) => {
  const [owner, site_id] = readAddress(args[0] ?? '', 'site');
  const answer = await relay.request(`/sites${pathOf(site_id)}`, { query: { owner } });
  if (answer.status === 404) throw notFound('There is no such site.');
  io.print(objectText(bodyOf(answer), output, { id: SITE_ID }));
};
