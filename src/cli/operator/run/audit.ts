/** Runs the verb `audit ls`, which lists what administrators did. */
import { ListAuditDocument } from '../../../generated/cli.ts';
import { printListing } from '../listing.ts';
import { readTime } from '../times.ts';
import type { RunVerb } from '../verb.ts';
import { readWord } from '../wire.ts';

const SUBJECT = ['subject.user_id', 'subject.client_id', 'subject.command_id', 'subject.stream', 'subject.node_id'];
const ROWS = { shown: ['id', 'at', 'who', 'action', 'outcome', ...SUBJECT, 'reason'], id: ['id'] };

export const auditLs: RunVerb = (run) => {
  const { flags, clock, relay } = run;
  const variables = {
    user_id: flags['userId'],
    who: flags['who'],
    action: readWord('OperatorAction', flags['action']),
    after_time: readTime(flags['since'], '--since', clock),
    before_time: readTime(flags['until'], '--until', clock),
  };
  return printListing(
    run,
    ROWS,
    async (page) => (await relay.query(ListAuditDocument, { ...variables, ...page })).auditEvents,
  );
};
