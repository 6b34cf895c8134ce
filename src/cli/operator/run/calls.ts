/** Runs the verbs `calls ls`, `get`, `cancel` and `tail`, which show and cancel commands. */
import {
  CancelCommandDocument,
  GetCallDocument,
  ListDeliveryCommandsDocument,
  TailCallsDocument,
} from '../../../generated/cli.ts';
import { accepted, notFound } from '../failure.ts';
import { printListing } from '../listing.ts';
import { objectText } from '../output.ts';
import { readAddress } from '../params.ts';
import { readTime } from '../times.ts';
import type { RunVerb } from '../verb.ts';
import { printEvents } from '../watching.ts';
import { readWord } from '../wire.ts';

const ID = ['user_id', 'client_id', 'command_id'];
const CALLS = { shown: [...ID, 'action', 'stage', 'outcome', 'code', 'duration_ms', 'admitted_at'], id: ID };
const EVENTS = {
  shown: ['at', 'event', 'record.user_id', 'record.client_id', 'record.command_id', 'record.action', 'record.outcome'],
  id: ['record.user_id', 'record.client_id', 'record.command_id'],
};

export const callsLs: RunVerb = async (run) => {
  const { flags, lists, clock, relay } = run;
  const variables = {
    user_id: flags['userId'],
    client_id: flags['clientId'],
    action: flags['action'],
    code: flags['code'],
    node_id: flags['nodeId'],
    labels: lists['label'],
    outcome: readWord('Outcome', flags['outcome']),
    stage: readWord('Stage', flags['stage']),
    client_type: readWord('ClientType', flags['clientType']),
    admitted_after: readTime(flags['since'], '--since', clock),
    admitted_before: readTime(flags['until'], '--until', clock),
    order: readWord('CommandOrder', flags['order'] ?? 'newest'),
  };
  await printListing(
    run,
    CALLS,
    async (page) => (await relay.query(ListDeliveryCommandsDocument, { ...variables, ...page })).delivery.commands,
  );
};

export const callsGet: RunVerb = async ({ relay, args, io, output }) => {
  const [user_id, client_id, command_id] = readAddress(args[0] ?? '', 3);
  const { command } = await relay.query(GetCallDocument, { user_id, client_id, command_id });
  if (command === null) throw notFound('There is no record of this command.');
  io.print(objectText(command, output, { id: ID }));
};

export const callsCancel: RunVerb = async ({ relay, args, io, output, flags }) => {
  const [user_id, client_id, command_id] = readAddress(args[0] ?? '', 3);
  const variables = { user_id, client_id, command_id, reason: flags['reason'] };
  const { cancelCommand } = await relay.query(CancelCommandDocument, variables);
  io.print(objectText(accepted(cancelCommand), output, { id: ['command_id'] }));
};

export const callsTail: RunVerb = async (run) => {
  const { flags, lists } = run;
  const outcomes = lists['outcome']?.flatMap((word) => readWord('Outcome', word) ?? []);
  await printEvents(run, {
    ...EVENTS,
    document: TailCallsDocument,
    variables: {
      user_id: flags['userId'],
      client_id: flags['clientId'],
      action: flags['action'],
      client_type: readWord('ClientType', flags['clientType']),
      outcomes,
    },
    event: ({ commandEvents }) => commandEvents,
  });
};
