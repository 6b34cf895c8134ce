/** Runs the verbs `users ls`, `users get` and `actions ls`: users, and the actions that their clients advertise. */
import { ListActionsDocument, ListUsersDocument, UserSummaryDocument } from '../../../generated/cli.ts';
import { notFound, usageFailure } from '../failure.ts';
import { printListing } from '../listing.ts';
import { objectText } from '../output.ts';
import type { RunVerb } from '../verb.ts';

const USERS = { shown: ['user_id', 'connection_count', 'stream_count'], id: ['user_id'] };
const ACTIONS = {
  shown: ['action.name', 'user_id', 'client_id', 'action.version', 'action.summary'],
  id: ['user_id', 'client_id', 'action.name'],
};

export const usersLs: RunVerb = (run) =>
  printListing(run, USERS, async (page) => (await run.relay.query(ListUsersDocument, page)).users);

export const usersGet: RunVerb = async ({ relay, args, io, output }) => {
  const [user_id = ''] = args;
  if (user_id === '') throw usageFailure('expected a user');
  const { user } = await relay.query(UserSummaryDocument, { user_id });
  if (user === null) throw notFound('There is no such user.');
  io.print(objectText(user, output, { id: ['user_id'] }));
};

export const actionsLs: RunVerb = async (run) => {
  const [name] = run.args;
  await printListing(
    run,
    ACTIONS,
    async () => (await run.relay.query(ListActionsDocument, name === undefined ? {} : { name })).actions,
  );
};
