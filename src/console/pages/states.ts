/** Writes sentences about the states of calls and clients. Each sentence states only what is known in that state. */
import type { DisconnectCause, ExecutionEvidence, Outcome, Stage } from '../../../generated/console.ts';
import { reasonText } from '../../protocol/visible-text.ts';
import { clock, zoneName } from '../ui/zones.ts';
import { CAUSE, plural } from '../ui/text-format.ts';

type Delivery = {
  readonly stage: Stage;
  readonly execution: ExecutionEvidence;
  readonly connectDeadline: string;
  readonly dispatchedAt: string | null;
  readonly queuedAt: string | null;
  readonly reason: string | null;
};

export type CallFacts = {
  readonly clientId: string;
  readonly outcome: Outcome | null;
  /** The delivery record; null if it is no longer stored. */
  readonly delivery: Delivery | null;
  /** The number of known progress reports. */
  readonly reports?: number;
};

type CallState =
  | ('forgotten' | 'waiting' | 'queued' | 'dispatched' | 'received' | 'running' | 'ended')
  | ('completed' | 'failed' | 'refused' | 'cancelledUnwritten' | 'cancelledWritten')
  | ('neverConnected' | 'neverWritten' | 'unknown');

function callStateOf({ outcome, delivery, reports = 0 }: CallFacts): CallState {
  if (delivery === null) return 'forgotten';
  switch (outcome) {
    case 'COMPLETED':
      return 'completed';
    case 'FAILED':
      return delivery.execution === 'REFUSED_BY_CLIENT' ? 'refused' : 'failed';
    case 'CANCELLED':
      return delivery.dispatchedAt === null ? 'cancelledUnwritten' : 'cancelledWritten';
    case 'EXPIRED':
      return delivery.queuedAt === null ? 'neverConnected' : 'neverWritten';
    case 'OUTCOME_UNKNOWN':
      return 'unknown';
    case null:
      if (reports > 0 && delivery.dispatchedAt !== null) return 'running';
      return LIVE[delivery.stage];
  }
}

const LIVE: Readonly<Record<Stage, CallState>> = {
  ADMITTED: 'waiting',
  QUEUED: 'queued',
  DISPATCHED: 'dispatched',
  ACKNOWLEDGED: 'received',
  TERMINAL: 'ended',
};

type Words = {
  readonly client: string;
  readonly connectBy: string;
  readonly dispatchedAt: string;
  readonly why: string;
};

const CALL_SENTENCES: Readonly<Record<CallState, (words: Words) => string>> = {
  forgotten: () => 'Its record is no longer kept. What remains is in the retained messages below.',
  waiting: ({ client, connectBy }) =>
    `It is on record and waits for ${client}. It expires at ${connectBy} unless ${client} connects. Nothing has been written yet.`,
  queued: ({ client }) => `It is queued for the link of ${client}. Nothing has been written yet.`,
  dispatched: ({ client }) => `The relay began to write it to ${client}. That proves neither receipt nor execution.`,
  received: ({ client }) => `${client} confirmed that it received it and starts its handler. Nothing later is proven.`,
  running: ({ client }) => `It runs, as ${client} reports.`,
  ended: () => 'It ended.',
  completed: ({ client }) => `${client} reported that it completed.`,
  failed: ({ client }) => `${client} reported that it failed.`,
  refused: ({ client }) => `${client} refused it and did not run it.`,
  cancelledUnwritten: () => 'It was cancelled before anything was written to the client.',
  cancelledWritten: () => 'It was cancelled after it was written to the client, which reported that it stopped.',
  neverConnected: ({ client, connectBy, why }) =>
    `${why}${client} did not connect by ${connectBy}. Nothing was written to a client, so it did not run.`,
  neverWritten: ({ why }) => `${why}Nothing was written to a client, so it did not run.`,
  unknown: ({ client, dispatchedAt, why }) =>
    `The relay began to write this command to ${client}${dispatchedAt}. ${why || 'Then it had no answer. '}Nothing after the last proven stage is known.`,
};

/** Returns the sentence about the state of a call. */
export function callSentence(call: CallFacts): string {
  const { clientId, delivery } = call;
  const reason = delivery?.reason ?? null;
  return CALL_SENTENCES[callStateOf(call)]({
    client: clientId,
    connectBy: delivery ? timeOf(delivery.connectDeadline) : '',
    dispatchedAt: delivery?.dispatchedAt == null ? '' : ` at ${timeOf(delivery.dispatchedAt)}`,
    why: reason === null ? '' : `${reasonText(reason)}. `,
  });
}

const timeOf = (iso: string): string => `${clock(iso)} ${zoneName()}`;

const ENDED_EXECUTION: Readonly<Record<ExecutionEvidence, string>> = {
  MAY_HAVE_RUN: 'May have run',
  NOT_WRITTEN: 'Did not run: it was never written to a client',
  REFUSED_BY_CLIENT: 'Did not run: the client refused it',
  REPORTED_BY_CLIENT: 'Ran, as the client reported',
};

/**
 * Returns what is proven about the execution of a call. As long as the call has not ended, it may still be written to
 * the client.
 */
export const executionText = (execution: ExecutionEvidence, isEnded: boolean): string =>
  execution === 'NOT_WRITTEN' && !isEnded ? 'Nothing has been written yet' : ENDED_EXECUTION[execution];

/** The number of reconnects within an hour from which a client counts as unstable. */
const UNSTABLE_RECONNECTS = 6;

export const isUnstable = (reconnectsLastHour: number): boolean => reconnectsLastHour >= UNSTABLE_RECONNECTS;

/** States how often the link of a client was opened again, and why it ended last. */
export function unstableText(reconnects: number, cause: DisconnectCause | null): string {
  const why = cause === null ? '' : `; its last link ended because ${CAUSE[cause]}`;
  return `Its link opened again ${plural(reconnects, 'time')} in the last hour${why}.`;
}

type AwayFacts = {
  readonly links: number;
  /** The number of known calls, and of those that wait for the client. */
  readonly calls: number;
  readonly waiting: number;
};

/** Returns the sentence about a client that is not connected and whose connection the relay has forgotten. */
export function awaySentence({ links, calls, waiting }: AwayFacts): string {
  const waits =
    waiting === 0 ? '' : waiting === 1 ? ' One call waits for it.' : ` ${plural(waiting, 'call')} wait for it.`;
  if (links > 0)
    return `It has been away for longer than the relay remembers a lost link. Its links are still known.${waits}`;
  const known = waiting > 0 ? waits : calls > 0 ? ' Calls to it are.' : '';
  return `No link of it is known.${known}`;
}
