/** Runs the verb `places ls`, which lists the execution contexts and browser windows that clients report. */
import { ListBrowserWindowsDocument, ListContextsDocument } from '../../../generated/cli.ts';
import { usageFailure } from '../failure.ts';
import { printListing } from '../listing.ts';
import type { OperatorRun, RunVerb } from '../verb.ts';
import { readWord } from '../wire.ts';

const CONTEXTS = {
  shown: ['user_id', 'client_id', 'context_id', 'client_type', 'status', 'ownership', 'window_id', 'task_id', 'title'],
  id: ['user_id', 'client_id', 'context_id'],
};
const WINDOWS = {
  shown: [
    'user_id',
    'client_id',
    'window_id',
    'status',
    'ownership',
    'tab_count',
    'capacity',
    'idle_count',
    'busy_count',
  ],
  id: ['user_id', 'client_id', 'window_id'],
};

export const placesLs: RunVerb = (run) => (run.flags['kind'] === 'window' ? listWindows(run) : listContexts(run));

function listContexts(run: OperatorRun): Promise<void> {
  const { relay, flags } = run;
  const variables = {
    ...filterOf(run),
    status: readWord('ContextStatus', flags['status']),
    window_id: flags['windowId'],
  };
  return printListing(
    run,
    CONTEXTS,
    async (page) => (await relay.query(ListContextsDocument, { ...variables, ...page })).contexts,
  );
}

async function listWindows(run: OperatorRun): Promise<void> {
  const { relay, flags } = run;
  if (flags['windowId'] !== undefined) throw usageFailure('--window-id: is for contexts');
  const variables = { ...filterOf(run), status: readWord('WindowStatus', flags['status']) };
  await printListing(
    run,
    WINDOWS,
    async (page) => (await relay.query(ListBrowserWindowsDocument, { ...variables, ...page })).browserWindows,
  );
}

function filterOf({ flags }: OperatorRun) {
  return {
    user_id: flags['userId'],
    client_id: flags['clientId'],
    client_type: readWord('ClientType', flags['clientType']),
    ownership: readWord('Ownership', flags['ownership']),
  };
}
