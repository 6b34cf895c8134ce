/**
 * Runs the verbs `clients ls`, `get`, `actions`, `flapping`, `watch` and `disconnect`: connected clients and their
 * links.
 */
import {
  ConnectionActionsDocument,
  DisconnectClientDocument,
  GetClientDocument,
  ListConnectionsDocument,
  ListFlappingClientsDocument,
  WatchClientsDocument,
} from '../../../generated/cli.ts';
import { confirmed } from '../confirm.ts';
import { accepted, notFound } from '../failure.ts';
import { printListing } from '../listing.ts';
import { objectText } from '../output.ts';
import { readAddress } from '../params.ts';
import type { RunVerb } from '../verb.ts';
import { printEvents } from '../watching.ts';
import { readWord } from '../wire.ts';

const ID = ['user_id', 'client_id'];
const CLIENTS = { shown: [...ID, 'status', 'client_type', 'node_id', 'connected_at', 'last_seen_at'], id: ID };
const FLAPPING = {
  shown: [...ID, 'reconnects', 'connection.status', 'connection.disconnect_cause', 'connection.last_seen_at'],
  id: ID,
};
const CHANGES = {
  shown: ['at', 'change', 'cause', 'connection.user_id', 'connection.client_id', 'connection.status'],
  id: ['connection.user_id', 'connection.client_id'],
};

export const clientsLs: RunVerb = (run) => {
  const { flags, lists, relay } = run;
  const variables = {
    user_id: flags['userId'],
    node_id: flags['nodeId'],
    action: flags['action'],
    text: flags['text'],
    labels: lists['label'],
    status: readWord('ConnectionStatus', flags['status']),
    client_type: readWord('ClientType', flags['clientType']),
  };
  return printListing(
    run,
    CLIENTS,
    async (page) => (await relay.query(ListConnectionsDocument, { ...variables, ...page })).connections,
  );
};

export const clientsGet: RunVerb = async ({ relay, args, io, output }) => {
  const [user_id, client_id] = readAddress(args[0] ?? '', 2);
  const { connection } = await relay.query(GetClientDocument, { user_id, client_id });
  if (connection === null) throw notFound('There is no connection of this client.');
  io.print(objectText(connection, output, { id: ID }));
};

export const clientsActions: RunVerb = async (run) => {
  const [user_id, client_id] = readAddress(run.args[0] ?? '', 2);
  await printListing(run, { shown: ['name', 'version', 'summary'], id: ['name'] }, async () => {
    const { connection } = await run.relay.query(ConnectionActionsDocument, { user_id, client_id });
    if (connection === null) throw notFound('There is no connection of this client.');
    return connection.actions;
  });
};

export const clientsFlapping: RunVerb = (run) =>
  printListing(
    run,
    FLAPPING,
    async ({ limit }) =>
      (await run.relay.query(ListFlappingClientsDocument, limit === undefined ? {} : { limit })).flapping,
  );

export const clientsWatch: RunVerb = (run) =>
  printEvents(run, {
    ...CHANGES,
    document: WatchClientsDocument,
    variables: { user_id: run.flags['userId'] },
    event: ({ connectionEvents }) => connectionEvents,
  });

export const clientsDisconnect: RunVerb = async (run) => {
  const { relay, args, io, output, flags } = run;
  const [user_id, client_id] = readAddress(args[0] ?? '', 2);
  await confirmed(run, `Closing the link of ${user_id}/${client_id}`, client_id);
  const variables = { user_id, client_id, reason: flags['reason'] };
  // A repeated request might close the new link of a client that has reconnected.
  const { disconnectClient } = await relay.query(DisconnectClientDocument, variables, { repeatable: false });
  io.print(objectText(accepted(disconnectClient), output, { id: ID.map((name) => `connection.${name}`) }));
};
