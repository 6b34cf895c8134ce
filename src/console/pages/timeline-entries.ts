/** Builds the timeline of a call: which stages are proven, what else happened, and the source of each entry. */
import type { CallPageQuery } from '../../../generated/console.ts';
import { reasonText } from '../../protocol/visible-text.ts';
import type { ShapeName } from '../ui/shapes.tsx';
import { outcomeShape, outcomeWord } from '../ui/values.tsx';
import { plural } from '../ui/text-format.ts';

export type CallDetails = NonNullable<CallPageQuery['command']>;

export type TimelineEntry = {
  /** The time at which it happened; null if it is not known to have happened. */
  readonly at: string | null;
  readonly title: string;
  readonly text: string;
  /** The source of the evidence, as text. */
  readonly source: string;
  readonly shape: ShapeName;
  /** The CSS classes: `open` (nothing after it is proven), `not`, `context`, `after`, `late`, `end-unknown`. */
  readonly classes: readonly string[];
};

/** Returns the entries in the order of their times. A stage that is not proven is placed where it would be. */
export function timelineOf(call: CallDetails): readonly TimelineEntry[] {
  const { delivery } = call;
  if (!delivery) return [];
  const stages = stagesOf(call, delivery);
  const end = endOf(call, delivery);
  const around = [...contextOf(call, delivery), ...lateOf(call)];
  // Decides the order of two entries of the same millisecond: a cancellation comes before the end, and the end before a
  // late result.
  const isBefore = ({ at, shape }: TimelineEntry): boolean =>
    at !== null && (!end?.at || at < end.at || (at === end.at && shape !== 'late'));
  const before = around.filter(isBefore);
  const after = around.filter((entry) => !before.includes(entry)).sort(byTime);
  const timed = [...stages, ...before].sort(byTime);
  const lastStage = timed.findLastIndex(({ shape }) => shape === 'proven');
  // The hatched line begins at the last proven stage: nothing is known between that stage and an unknown end.
  const isOpen = call.outcome === 'OUTCOME_UNKNOWN';
  const shown = timed.map((entry, at) => (isOpen && at >= lastStage ? withClass(entry, 'open') : entry));
  const rest = [...(end ? [end] : []), ...after];
  return [...shown, ...rest.map((entry, at) => (at < rest.length - 1 ? withClass(entry, 'after') : entry))];
}

export type DeliveryDetails = NonNullable<CallDetails['delivery']>;

function stagesOf(call: CallDetails, delivery: DeliveryDetails): readonly TimelineEntry[] {
  const { clientId } = call;
  const record = 'Delivery record';
  const caller = `Delivery record · called by ${callerText(delivery)}`;
  const instance = delivery.boundInstanceId
    ? `instance …${delivery.boundInstanceId.slice(-8)} of ${clientId}`
    : clientId;
  const stages: (TimelineEntry | null)[] = [
    stage('Admitted', delivery.admittedAt, `On record, and counted in scope ${delivery.scopeId}.`, caller),
    stage(
      'Queued',
      delivery.queuedAt,
      `For the link of ${clientId}${delivery.nodeId ? ` on ${delivery.nodeId}` : ''}.`,
      record,
    ),
    stage(
      'Dispatched',
      delivery.dispatchedAt,
      `Writing to the socket of ${instance} began. That proves neither receipt nor execution.`,
      `${record} · ${plural(delivery.attempts, 'attempt')}`,
    ),
    stage('Acknowledged', delivery.acknowledgedAt, `${clientId} confirmed that it received it.`, record),
  ];
  if (delivery.dispatchedAt !== null && delivery.acknowledgedAt === null && call.outcome === 'OUTCOME_UNKNOWN') {
    stages.push({
      at: null,
      title: 'Not acknowledged',
      text: 'The client never said that it received it.',
      source: 'No evidence',
      shape: 'open',
      classes: ['not'],
    });
  }
  return stages.filter((entry) => entry !== null);
}

const stage = (title: string, at: string | null, text: string, source: string): TimelineEntry | null =>
  at === null ? null : { at, title, text, source, shape: 'proven', classes: [] };

function endOf(call: CallDetails, delivery: DeliveryDetails): TimelineEntry | null {
  if (call.outcome === null || delivery.terminalAt === null) return null;
  const unknown = call.outcome === 'OUTCOME_UNKNOWN';
  // For an expired call, the sentence above the timeline already states the reason.
  const why = delivery.reason === null || call.outcome === 'EXPIRED' ? '' : `${reasonText(delivery.reason)}. `;
  return {
    at: delivery.terminalAt,
    title: unknown ? 'Ended: outcome unknown' : outcomeWord(call.outcome),
    text: `${why}${unknown ? 'The command may have run.' : endText(call.outcome, call.clientId)}`,
    source: delivery.reason === null ? 'Delivery record' : `Delivery record · ${delivery.reason}`,
    shape: outcomeShape(call.outcome),
    classes: unknown ? ['end-unknown'] : [],
  };
}

function endText(outcome: string, clientId: string): string {
  if (outcome === 'COMPLETED') return `${clientId} reported a result.`;
  if (outcome === 'FAILED') return `${clientId} reported an error.`;
  return outcome === 'EXPIRED' ? 'Nothing was written to the client.' : '';
}

/**
 * Returns the entries for a request to cancel, and for a connection of the client after the admission. They prove
 * nothing about the call.
 */
function contextOf({ connection, clientId }: CallDetails, delivery: DeliveryDetails): readonly TimelineEntry[] {
  const entries: TimelineEntry[] = [];
  if (delivery.cancelRequestedAt !== null) {
    const text =
      delivery.dispatchedAt === null
        ? 'Nothing had been written to the client.'
        : 'A cancellation was sent to the client. It may have run before that.';
    entries.push(context(delivery.cancelRequestedAt, 'Cancellation requested', text, 'Delivery record'));
  }
  if (connection && connection.connectedAt > delivery.admittedAt) {
    const same = connection.instanceId === delivery.boundInstanceId;
    const text = same
      ? 'The same instance as the one it was sent to.'
      : 'Another instance than the one it was sent to.';
    const named = delivery.boundInstanceId === null ? '' : text;
    const title = `${clientId} connected to ${connection.nodeId}`;
    entries.push(context(connection.connectedAt, title, named, 'Registry of connections'));
  }
  return entries;
}

function context(at: string, title: string, text: string, source: string): TimelineEntry {
  return { at, title, text, source, shape: 'note', classes: ['context'] };
}

function lateOf(call: CallDetails): readonly TimelineEntry[] {
  return call.history.nodes
    .filter(({ kind }) => kind === 'LATE_RESULT')
    .map((message) => {
      const seen = call.sightings.find(({ messageId }) => messageId === message.messageId);
      return {
        at: message.at,
        title: 'Late result',
        text: 'A client reported an end after the call had ended. The report is kept as evidence of what the client says.',
        source: `Retained message${seen && seen.count > 1 ? ` · seen ${seen.count} times` : ''}`,
        shape: 'late',
        classes: ['late'],
      };
    });
}

export function callerText({ caller }: Pick<DeliveryDetails, 'caller'>): string {
  const { kind, name, program } = caller;
  const kinds = { ADMIN: 'administrator', USER: 'user', GRANT: 'grant', MCP: 'agent of' };
  return `${kinds[kind]} ${name}${program === null ? '' : ` (${program})`}`;
}

/** Compares two entries by time. An entry without a time keeps its position. */
const byTime = (one: TimelineEntry, other: TimelineEntry): number =>
  one.at === null || other.at === null ? 0 : one.at.localeCompare(other.at);

function withClass(entry: TimelineEntry, name: string): TimelineEntry {
  return { ...entry, classes: [...entry.classes, name] };
}
