/**
 * Writes a call's case file as text: Markdown for a ticket, and JSON for programs. It contains no payloads, because the
 * page of a call reads none. Times are in UTC, whichever zone the console shows.
 */
import { visibleText } from '../../protocol/visible-text.ts';
import { duration, bytes } from '../ui/amounts.ts';
import { outcomeWord, stageWord } from '../ui/values.tsx';
import { plural, WAIT_FOR, capitalWord } from '../ui/text-format.ts';
import { executionText } from './states.ts';
import { callerText, timelineOf, type CallDetails, type DeliveryDetails } from './timeline-entries.ts';

type CallCase = {
  readonly call: CallDetails;
  /** The URL of the call's page. */
  readonly address: string;
  /** The time of the relay's answer, in epoch milliseconds. */
  readonly asOf: number;
  /** The URL at which the trace is shown; null if there is none. */
  readonly traceHref: string | null;
};

/**
 * Returns the case as JSON with line breaks: the URL, the time of the answer, and the command as the relay answered it.
 */
export const caseAsJson = ({ call, address, asOf, traceHref }: CallCase): string =>
  JSON.stringify({ address, asOf: new Date(asOf).toISOString(), traceUrl: traceHref, command: call }, null, 2);

/** Returns the case as Markdown: facts, timeline, waiting callers and retained messages. It ends with a line break. */
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

function lastLine({ queuedAt, connectDeadline, deadline, clientId }: DeliveryDetails): string {
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

/** Returns the trace id of a call; null if no retained message has one. */
export const traceIdOf = ({ history }: CallDetails): string | null =>
  history.nodes.find(({ traceId }) => traceId !== null)?.traceId ?? null;

const sectionOf = (title: string, lines: readonly string[]): string =>
  lines.length === 0 ? '' : `## ${title}\n\n${listOf(lines)}`;

const listOf = (lines: readonly Line[]): string =>
  lines.flatMap((line) => (line === null ? [] : `- ${line}`)).join('\n');

const timeOf = (ms: number): string => new Date(ms).toISOString();

// Escapes texts of clients, which may contain links, images, HTML or the names of people, so that they are not markup.

/** Returns a text as Markdown code, so that it cannot become a link, an image or a mention of a person. */
function code(text: string): string {
  const shown = visibleText(text).replaceAll(/\s+/g, ' ');
  const longest = Math.max(0, ...[...shown.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  const space = /^[` ]|[` ]$/.test(shown) || shown === '' ? ' ' : '';
  return `${fence}${space}${shown}${space}${fence}`;
}

/**
 * Returns a sentence of the console, which may contain ids of clients. A sentence that could notify people becomes
 * code.
 */
function prose(text: string): string {
  if (/[@#]/.test(text)) return code(text);
  return visibleText(text).replaceAll(/[\\`*_{}[\]<>()|~&!]/g, (char) => `\\${char}`);
}
