/** Formats everything that is known about one call (its case file) as text. */
import type { GetCallQuery } from '../../../generated/cli.ts';
import { visibleLine, reasonText } from '../../protocol/visible-text.ts';
import { durationText } from '../amounts.ts';
import { alignedText, cellOf } from '../columns.ts';

export type CaseFile = NonNullable<GetCallQuery['command']>;
type Delivery = NonNullable<CaseFile['delivery']>;

/** Returns the case file as text for people. A text that a client chose never spans several lines. */
export function caseFileText(call: CaseFile): string {
  const { user_id, client_id, command_id, action, delivery } = call;
  const head = [`${action} of ${user_id}/${client_id}, call ${command_id}`, ...endOf(call)].map(visibleLine);
  const parts = [
    `${head.join('\n')}\n`,
    ...(delivery ? [timelineText(call, delivery)] : ['The relay keeps the record of this call no longer.\n']),
    waitersText(call),
    messagesText(call),
    ...(call.outcome === 'outcome_unknown' ? [beforeAgain(call)] : []),
  ];
  return parts.join('\n');
}

/** Returns sentences that say how the call ended, or that it has not ended. */
function endOf({ client_id, outcome, error, delivery }: CaseFile): readonly string[] {
  const after = delivery?.duration_ms == null ? '' : ` after ${durationText(delivery.duration_ms)}`;
  if (outcome === null) return [delivery ? notEnded(client_id, delivery) : 'Not ended.'];
  const how = outcome === 'outcome_unknown' ? 'Ended with an unknown outcome' : capital(outcome);
  const why = delivery?.reason == null ? '' : `: ${reasonText(delivery.reason)}`;
  return [`${how}${after}${why}.`, ...(error ? [`${error.code}: ${error.message}`] : [])];
}

function notEnded(clientId: string, { stage, queued_at, connect_deadline, deadline }: Delivery): string {
  if (queued_at === null) return `Not ended: ${stage}. It expires at ${connect_deadline} unless ${clientId} connects.`;
  return `Not ended: ${stage}, with the deadline ${deadline}.`;
}

type Entry = { readonly at: string | null; readonly what: string; readonly text: string };

function timelineText(call: CaseFile, delivery: Delivery): string {
  const day = delivery.admitted_at.slice(0, 10);
  const lines = entriesOf(call, delivery).map(({ at, what, text }) => [
    ...[` ${at === null ? '' : timeOn(day, at)}`, at === null ? '' : since(delivery.admitted_at, at)],
    ...[what, text].map(cellOf),
  ]);
  return `What is proven (${day}, UTC)\n${alignedText(lines)}`;
}

/**
 * Returns the entries in the order of their times. An entry that is not proven has no time, and stays at its place
 * among the stages.
 */
function entriesOf(call: CaseFile, delivery: Delivery): readonly Entry[] {
  const late = call.history.items.filter(({ kind }) => kind === 'late_result');
  const asked =
    delivery.dispatched_at === null
      ? 'nothing had been written to the client'
      : 'sent to the client, which may have run before that';
  const entries = [
    ...stagesOf(call, delivery),
    entry(delivery.cancel_requested_at, 'cancellation requested', asked),
    entry(delivery.terminal_at, endWord(call), endText(call)),
    ...late.map(({ at, message_id }) => lateEntry(call, at, message_id)),
  ].filter((known) => known !== null);
  return entries.toSorted((a, b) => (a.at === null || b.at === null ? 0 : a.at.localeCompare(b.at)));
}

function stagesOf({ client_id, outcome }: CaseFile, delivery: Delivery): readonly (Entry | null)[] {
  const { caller, scope_id, context_id, node_id, bound_instance_id, attempts, recovered_from_node_id } = delivery;
  const where = context_id === null ? '' : `, for the context ${context_id}`;
  const on = node_id === null ? '' : ` on ${node_id}`;
  const from = recovered_from_node_id === null ? '' : `, taken over from ${recovered_from_node_id}`;
  const instance = bound_instance_id === null ? client_id : `instance ${bound_instance_id} of ${client_id}`;
  const unheard = delivery.dispatched_at !== null && delivery.acknowledged_at === null;
  return [
    entry(
      delivery.admitted_at,
      'admitted',
      `called by ${caller.kind} ${caller.name}${where}; counted in the scope ${scope_id}`,
    ),
    entry(delivery.queued_at, 'queued', `for the link of ${client_id}${on}${from}`),
    entry(
      delivery.dispatched_at,
      'dispatched',
      `to ${instance}, attempt ${attempts}; the write began, which proves no receipt`,
    ),
    entry(delivery.acknowledged_at, 'acknowledged', `${client_id} confirmed that it received it`),
    unheard && outcome === 'outcome_unknown'
      ? { at: null, what: 'not acknowledged', text: `${client_id} never said that it received it` }
      : null,
  ];
}

function entry(at: string | null, what: string, text: string): Entry | null {
  return at === null ? null : { at, what, text };
}

function endWord({ outcome }: CaseFile): string {
  return (outcome ?? 'ended').replace('_', ' ');
}

function endText({ outcome, client_id }: CaseFile): string {
  if (outcome === 'completed') return `${client_id} reported a result`;
  if (outcome === 'failed') return `${client_id} reported an error`;
  if (outcome === 'expired') return 'nothing was written to the client';
  return outcome === 'outcome_unknown' ? 'the command may have run' : '';
}

function lateEntry({ sightings }: CaseFile, at: string, messageId: string): Entry {
  const seen = sightings.find(({ message_id }) => message_id === messageId)?.count ?? 1;
  const often = seen > 1 ? `, seen ${seen} times` : '';
  return { at, what: 'late result', text: `too late to end the call; kept as the client's word${often}` };
}

const WAITED_FOR = { admitted: 'its admission', acknowledged: 'its receipt', completed: 'its end' } as const;

function waitersText({ waiters }: CaseFile): string {
  if (waiters.length === 0) return 'No caller waits for it.\n';
  const lines = waiters.map(({ rpc_id, wait_for, caller, age_ms, times_out_at }) => [
    ...[` ${caller.kind} ${cellOf(caller.name)}`, `for ${WAITED_FOR[wait_for]}`, `since ${durationText(age_ms)}`],
    ...[`until ${times_out_at}`, cellOf(rpc_id)],
  ]);
  return `Callers that wait\n${alignedText(lines)}`;
}

function messagesText({ history, delivery }: CaseFile): string {
  const { items, next_cursor } = history;
  if (items.length === 0) return 'No message of it is retained.\n';
  const day = (delivery?.admitted_at ?? items[0]?.at ?? '').slice(0, 10);
  const lines = items.map(({ at, kind, payload_bytes, message_id, error }) => [
    ...[` ${timeOn(day, at)}`, kind, `${payload_bytes} bytes`, cellOf(message_id), error ? cellOf(error.code) : ''],
  ]);
  const more = next_cursor === null ? '' : ' ... and more\n';
  return `Retained messages, without payloads\n${alignedText(lines)}${more}`;
}

function beforeAgain({ action }: CaseFile): string {
  return `${visibleLine(`A new call has a new id, so ${action} may then run twice.`)}\n`;
}

/** Returns the time of day in UTC, with the date in front if it is not `day`. */
function timeOn(day: string, at: string): string {
  return at.startsWith(day) ? at.slice(11, 23) : `${at.slice(0, 10)} ${at.slice(11, 23)}`;
}

function since(start: string, at: string): string {
  const ms = Date.parse(at) - Date.parse(start);
  return ms > 0 ? `+${durationText(ms)}` : '';
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
