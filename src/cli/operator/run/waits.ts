/** Runs the verbs `waits ls`, `count` and `watch`: callers that still wait for an answer. */
import { CountPendingRpcsDocument, ListPendingRpcsDocument, WatchWaitsDocument } from '../../../generated/cli.ts';
import { printListing, sayWhatIsMissing } from '../listing.ts';
import { objectText } from '../output.ts';
import { readMs } from '../times.ts';
import type { OperatorRun, RunVerb } from '../verb.ts';
import { printEvents } from '../watching.ts';

const ID = ['user_id', 'client_id', 'command_id'];
const WAITS = { shown: [...ID, 'action', 'stage', 'age_ms', 'times_out_at'], id: ID };
const ALERTS = {
  shown: ['at', 'over', 'count', 'oldest_age_ms', ...ID.map((name) => `oldest.${name}`), 'oldest.action'],
  id: ID.map((name) => `oldest.${name}`),
};
const WATCHED_MS = 10_000;

export const waitsLs: RunVerb = (run) =>
  printListing(
    run,
    WAITS,
    async (page) => (await run.relay.query(ListPendingRpcsDocument, { ...filterOf(run), ...page })).pendingRpcs,
  );

export const waitsCount: RunVerb = async (run) => {
  const { pendingRpcCount } = await run.relay.query(CountPendingRpcsDocument, filterOf(run));
  const { io, output } = run;
  io.print(output === 'table' ? `${pendingRpcCount.count}\n` : objectText(pendingRpcCount, output, { id: ['count'] }));
  sayWhatIsMissing(run, pendingRpcCount);
};

export const waitsWatch: RunVerb = (run) =>
  printEvents(run, {
    ...ALERTS,
    document: WatchWaitsDocument,
    variables: { user_id: run.flags['userId'], older_than_ms: readMs(run.flags['older'], WATCHED_MS, '--older') },
    event: ({ pendingRpcAlerts }) => pendingRpcAlerts,
  });

function filterOf({ flags }: OperatorRun) {
  const { older, userId: user_id, clientId: client_id } = flags;
  return { user_id, client_id, min_age_ms: older === undefined ? undefined : readMs(older, 0, '--older') };
}
