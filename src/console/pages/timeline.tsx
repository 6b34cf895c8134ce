/**
 * What happened to a call, in order: its timeline, in which a solid line joins what is proven and a hatched band spans
 * what is not, and its case file, which is the same as text.
 */
import type { CallPageQuery } from '../../../generated/console.ts';
import { reasonText, visibleText } from '../../protocol/visible-text.ts';
import { executionText } from './states.ts';
import { Section } from '../ui/page.tsx';
import { Shape, type ShapeName } from '../ui/shapes.tsx';
import { outcomeShape, outcomeWord, stageWord } from '../ui/values.tsx';
import { duration, bytes } from '../ui/amounts.ts';
import { bothTimes, day, exactClock, zoneName } from '../ui/zones.ts';
import { plural, WAIT_FOR, capitalWord } from '../ui/words.ts';

export type CallDetails = NonNullable<CallPageQuery['command']>;

export function CallTimeline({ call }: { readonly call: CallDetails }) {
  const { delivery } = call;
  if (!delivery) return null;
  return (
    <Section
      title="What is proven"
      about={`${day(delivery.admittedAt)}, ${zoneName()}; all times are of the store’s clock`}
    >
      <ol class="tl">
        {timelineOf(call).map((entry) => (
          <Entry key={`${entry.title} ${entry.at}`} entry={entry} start={delivery.admittedAt} />
        ))}
      </ol>
    </Section>
  );
}

function Entry({ entry, start }: { readonly entry: TimelineEntry; readonly start: string }) {
  const { at, title, text, source, shape, classes } = entry;
  const delta = at === null ? 0 : Date.parse(at) - Date.parse(start);
  return (
    <li class={classes.join(' ') || undefined}>
      <div class="tl-time">
        {at === null ? (
          <span class="sr">no time</span>
        ) : (
          <time dateTime={at} title={bothTimes(at)}>
            {exactClock(at)}
          </time>
        )}
        {delta > 0 && <span>+{duration(delta)}</span>}
      </div>
      <div class="tl-node">
        <Shape name={shape} />
      </div>
      <div class="tl-body">
        <h3>{title}</h3>
        {text !== '' && <p>{text}</p>}
        <p class="src">{source}</p>
      </div>
    </li>
  );
}

// Builds the timeline of a call: which stages are proven, what else happened, and where each entry comes from.

type TimelineEntry = {
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
  // What comes first of two entries of one millisecond: a cancellation before the end, the end before a late result.
  const isBefore = ({ at, shape }: TimelineEntry): boolean =>
    at !== null && (!end?.at || at < end.at || (at === end.at && shape !== 'late'));
  const before = around.filter(isBefore);
  const after = around.filter((entry) => !before.includes(entry)).sort(byTime);
  const timed = [...stages, ...before].sort(byTime);
  const lastStage = timed.findLastIndex(({ shape }) => shape === 'proven');
  // Nothing is known between the last proven stage and an unknown end; the hatched line shows that.
  const isOpen = call.outcome === 'OUTCOME_UNKNOWN';
  const shown = timed.map((entry, at) => (isOpen && at >= lastStage ? withClass(entry, 'open') : entry));
  const rest = [...(end ? [end] : []), ...after];
  return [...shown, ...rest.map((entry, at) => (at < rest.length - 1 ? withClass(entry, 'after') : entry))];
}

type Delivery = NonNullable<CallDetails['delivery']>;

function stagesOf(call: CallDetails, delivery: Delivery): readonly TimelineEntry[] {
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

function endOf(call: CallDetails, delivery: Delivery): TimelineEntry | null {
  if (call.outcome === null || delivery.terminalAt === null) return null;
  const unknown = call.outcome === 'OUTCOME_UNKNOWN';
  // The sentence above the timeline says why a call expired.
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

/** Returns a request to cancel, and a connection of the client after the admission, which prove nothing of the call. */
function contextOf({ connection, clientId }: CallDetails, delivery: Delivery): readonly TimelineEntry[] {
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

export function callerText({ caller }: Pick<Delivery, 'caller'>): string {
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

// Writes the case file of a call as text: Markdown for a ticket, and JSON for a program. Neither has a payload,
// because the page of the call reads none. Times are in UTC, whatever zone the console shows.

export type CallCase = {
  readonly call: CallDetails;
  /** The address of the page of the call. */
  readonly address: string;
  /** When the relay answered, in epoch milliseconds. */
  readonly asOf: number;
  /** The address at which the trace is shown; null if there is none. */
  readonly traceHref: string | null;
};

/** Returns the case as JSON with line breaks: the address, the time of the answer, and the command as it answered. */
export const caseAsJson = ({ call, address, asOf, traceHref }: CallCase): string =>
  JSON.stringify({ address, asOf: new Date(asOf).toISOString(), traceUrl: traceHref, command: call }, null, 2);

/** Returns the case as Markdown: facts, timeline, waiters and retained messages. It ends with a line break. */
export function caseAsMarkdown(file: CallCase): string {
  const { call, address, asOf } = file;
  const { delivery, history } = call;
  const state = call.outcome ? outcomeWord(call.outcome) : delivery && `${stageWord(delivery.stage)}, not ended`;
  const parts = [
    `# ${code(call.action)} on ${code(`${call.userId} / ${call.clientId}`)}: ${state ?? 'no record'}`,
    `${address}\nAs of ${timeOf(asOf)}. No payload is in this text.`,
    listOf(factsOf(file)),
    sectionOf('What is proven', timelineOf(call).map(entryLine)),
    sectionOf('Waiting callers', call.waiters.map(waiterLine)),
    sectionOf('Retained messages', history.nodes.map(messageLine)),
    history.pageInfo.hasNextPage ? 'Further messages are not listed here.' : '',
  ];
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

type Line = string | null;

function factsOf({ call, traceHref }: CallCase): readonly Line[] {
  const { delivery, error, connection } = call;
  const trace = traceIdOf(call);
  return [
    `Command: ${code(call.commandId)}`,
    ...(delivery ? recordLines(delivery) : []),
    error && `Error: ${code(error.code)} ${code(error.message)}`,
    trace === null ? null : `Trace: ${code(trace)}${traceHref === null ? '' : ` ${traceHref}`}`,
    `Client now: ${connection ? `${capitalWord(connection.status).toLowerCase()}, on node ${code(connection.nodeId)}, instance ${code(connection.instanceId)}` : 'not connected'}`,
  ];
}

function recordLines(delivery: NonNullable<CallDetails['delivery']>): readonly Line[] {
  const { admittedAt, terminalAt, reason, contextId, boundInstanceId, nodeId, lateResults } = delivery;
  const took = terminalAt === null ? null : duration(Date.parse(terminalAt) - Date.parse(admittedAt));
  return [
    `Called by: ${code(callerText(delivery))}`,
    `Admitted: ${timeOf(Date.parse(admittedAt))}`,
    terminalAt === null ? lastLine(delivery) : `Ended: ${timeOf(Date.parse(terminalAt))}, after ${took}`,
    `Last proven: ${stageWord(delivery.lastProvenStage)}`,
    `Execution: ${executionText(delivery.execution, terminalAt !== null)}`,
    reason && `Reason: ${code(reason)}`,
    lateResults === 0 ? null : `Since then: ${plural(lateResults, 'late result')}`,
    `Node: ${nodeId === null ? 'none' : code(nodeId)}`,
    contextId && `Context: ${code(contextId)}`,
    `Instance: ${boundInstanceId === null ? 'none, it was never written' : code(boundInstanceId)}`,
    `Scope: ${code(delivery.scopeId)}`,
  ];
}

function lastLine({ queuedAt, connectDeadline, deadline, clientId }: Delivery): string {
  if (queuedAt !== null) return `Ends at the latest: ${timeOf(Date.parse(deadline))}`;
  return `Expires: ${timeOf(Date.parse(connectDeadline))}, unless ${code(clientId)} connects`;
}

function entryLine({ at, title, text, source }: ReturnType<typeof timelineOf>[number]): string {
  const when = at === null ? 'no time' : timeOf(Date.parse(at));
  return `${when} **${prose(title)}** ${prose(text)} (${prose(source)})`;
}

const waiterLine = ({ callerNodeId, waitFor, createdAt }: CallDetails['waiters'][number]): string =>
  `On node ${code(callerNodeId)} for ${WAIT_FOR[waitFor]}, since ${timeOf(Date.parse(createdAt))}`;

function messageLine({ at, kind, payloadBytes, stream, messageId }: CallDetails['history']['nodes'][number]): string {
  return `${timeOf(Date.parse(at))} ${capitalWord(kind)}, ${bytes(payloadBytes)}, stream ${code(stream)}, message ${code(messageId)}`;
}

/** Returns the id of the trace of a call; null if no retained message has one. */
export const traceIdOf = ({ history }: CallDetails): string | null =>
  history.nodes.find(({ traceId }) => traceId !== null)?.traceId ?? null;

const sectionOf = (title: string, lines: readonly string[]): string =>
  lines.length === 0 ? '' : `## ${title}\n\n${listOf(lines)}`;

const listOf = (lines: readonly Line[]): string =>
  lines.flatMap((line) => (line === null ? [] : `- ${line}`)).join('\n');

const timeOf = (ms: number): string => new Date(ms).toISOString();

// Writes texts of clients so that they are no markup: they may hold links, images, HTML or the names of people.

/** Returns a text as code, in which Markdown finds no link, no image and no mention of a person. */
function code(text: string): string {
  const shown = visibleText(text).replaceAll(/\s+/g, ' ');
  const longest = Math.max(0, ...[...shown.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  const space = /^[` ]|[` ]$/.test(shown) || shown === '' ? ' ' : '';
  return `${fence}${space}${shown}${space}${fence}`;
}

/** Returns a sentence in which the console names ids. One that could notify people is code. */
function prose(text: string): string {
  if (/[@#]/.test(text)) return code(text);
  return visibleText(text).replaceAll(/[\\`*_{}[\]<>()|~&!]/g, (char) => `\\${char}`);
}
