/** Runs the verbs about streams, messages and the audit. */
import {
  FollowMessagesDocument,
  ListAuditDocument,
  ListMessagesDocument,
  ListStreamsDocument,
  type ListAuditQuery,
} from '../../../generated/cli.ts';
import { sleep } from '../../clients/link/platform.ts';
import { readCount, readTime } from '../amounts.ts';
import { countedPrinter, queryListing } from '../listing.ts';
import type { OperatorRun, RunVerb } from '../verb.ts';
import { readWord } from '../enum-words.ts';

const MESSAGES = {
  shown: ['at', 'kind', 'message_id', 'client_id', 'command_id', 'payload_bytes', 'error.code'],
  id: ['message_id'],
};
const LAST = 10;
const POLL_MS = 1000;
/** The number of messages on one page. A larger page would exceed the relay's cost limit for one operation. */
const PAGE = 500;

export const streamsLs = queryListing({
  shown: ['stream', 'message_count', 'first_at', 'last_at'],
  id: ['stream'],
  document: ListStreamsDocument,
  variables: ({ args: [user_id = ''], flags: { prefix } }) => ({ user_id, prefix }),
  page: ({ streams }) => streams,
});

export const messagesLs = queryListing({
  ...MESSAGES,
  document: ListMessagesDocument,
  variables: (run) => ({
    stream: run.args[0] ?? '',
    kinds: kindsOf(run),
    after_time: readTime(run.flags['since'], '--since', run.clock),
    before_time: readTime(run.flags['until'], '--until', run.clock),
    order: readWord('MessageOrder', run.flags['order'] ?? 'oldest_first'),
  }),
  page: ({ messages }) => messages,
});

/**
 * Prints the last messages, and then each new one. There is no subscription to messages, so this verb reads the next
 * page repeatedly: at once after a full page, and after a second otherwise.
 */
export const messagesTail: RunVerb = async (run) => {
  const { flags, relay, stopped } = run;
  const [stream = ''] = run.args;
  const kinds = kindsOf(run);
  const last = Math.min(PAGE, readCount(flags['last'], '--last') ?? LAST);
  const newest = { stream, kinds, order: 'newest_first', limit: last } as const;
  const begun = (await relay.query(FollowMessagesDocument, newest)).messages.items.toReversed();
  const print = countedPrinter(run, MESSAGES);
  const printAll = (messages: typeof begun): boolean => messages.some(print);
  if (printAll(begun)) return;
  const seen = new Set(begun.map(({ message_id }) => message_id));
  const from = begun.at(-1)?.at;
  const after_time = from === undefined ? undefined : justBefore(from);
  let cursor: string | undefined;
  for (;;) {
    const later = { stream, kinds, after_time, order: 'oldest_first', limit: PAGE, cursor } as const;
    const { items, page_info } = (await relay.query(FollowMessagesDocument, later)).messages;
    if (printAll(items.filter(({ message_id }) => !seen.has(message_id)))) return;
    cursor = page_info.end_cursor ?? cursor;
    if (items.length < PAGE) await sleep(run.clock, POLL_MS, stopped);
  }
};

/**
 * Returns the time one millisecond earlier. The bounds of a query are exclusive, and several messages may have the same
 * time.
 */
function justBefore(time: string): string {
  return new Date(Date.parse(time) - 1).toISOString();
}

function kindsOf({ lists }: OperatorRun) {
  return lists['kind']?.map((word) => readWord('MessageKind', word));
}

type AuditRow = ListAuditQuery['auditEvents']['items'][number];

/** Returns the object of an action: whom it disconnected, or what it revealed, read, cancelled or drained. */
function subjectOf({ action, subject }: AuditRow): string {
  const { user_id, client_id, instance_id, command_id, message_id, stream, node_id, view } = subject;
  const address = [user_id, client_id, command_id].filter((part) => part !== null).join('/');
  if (action === 'drain') return `node ${node_id}`;
  if (action === 'disconnect') return instance_id === null ? address : `${address}, instance ${instance_id}`;
  if (action === 'reveal' && message_id === null) return `result of ${address}`;
  if (message_id !== null)
    return message_id === `${command_id}:command` ? `params of ${address}` : `message ${message_id} of ${address}`;
  if (action === 'payload' && stream !== null) return `${view === null ? 'payloads' : `${view} sample`} of ${stream}`;
  return address;
}

export const auditLs = queryListing({
  shown: ['id', 'at', 'who', 'action', 'outcome', 'subject', 'reason'],
  id: ['id'],
  row: (item: AuditRow) => ({ ...item, subject: subjectOf(item) }),
  document: ListAuditDocument,
  variables: ({ flags, clock }) => ({
    user_id: flags['userId'],
    who: flags['who'],
    action: readWord('OperatorAction', flags['action']),
    after_time: readTime(flags['since'], '--since', clock),
    before_time: readTime(flags['until'], '--until', clock),
  }),
  page: ({ auditEvents }) => auditEvents,
});
