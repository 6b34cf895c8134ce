/**
 * Writes the results of tool calls as texts for models. Models act on these texts, so each failure states what is
 * proven, whether the action may have run, and what to do next.
 */
import { endOf, type Invocation } from '../core/calls/call.ts';
import { isTerminal, type Command, type CommandMark } from '../core/commands/command.ts';
import type { TerminalError } from '../core/core.ts';
import { CallboardError } from '../core/errors.ts';
import { isRecord, type JsonText } from '../core/json.ts';
import { AGENT_RESULT_CHARS, AGENT_UNARRIVED_MS } from '../core/limits.ts';
import type { Log } from '../core/ports.ts';
import type { EarlierCall } from '../core/calls/equal-calls.ts';
import { clientText } from './client-text.ts';
import { passing, type ArgumentNames } from './tool-arguments.ts';
import type { Tool } from './tools.ts';

/**
 * The result of `tools/call`. A success also has its value in `structuredContent` if the value is an object. A failure
 * and a result with a warning have no `structuredContent`, because hosts would show a model only that.
 */
export type ToolResult = {
  readonly content: readonly { readonly type: 'text'; readonly text: string }[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  readonly isError?: true;
  readonly _meta?: Readonly<Record<string, unknown>>;
};

/** The member of `_meta` that contains the result's command: its id and its client. */
const COMMAND_META = 'callboard/command';

/** The maximum number of characters of a client's message that are shown. */
const MESSAGE_CHARS = 500;

/** The command that a result is about, and its relation to earlier calls. */
type ResultSubject = {
  readonly clientId: string;
  readonly commandId: string;
  /** The earlier call whose answer is returned; null: this call ran the command. */
  readonly attachedTo: EarlierCall | null;
  /**
   * An equal earlier call that ran beside this one. The agent's program may have abandoned that call and repeated it
   * with this one, so the action may have run twice. Null: there is none.
   */
  readonly ranBeside: EarlierCall | null;
  readonly now: number;
  /** The names that the arguments have in the called tool. */
  readonly names: ArgumentNames;
};

export function success(value: unknown, about?: ResultSubject): ToolResult {
  return succeeded(JSON.stringify(value), about);
}

/** Returns the result of an action or of a built-in tool. `json`: its value; null if the action returned nothing. */
function succeeded(json: string | null, about?: ResultSubject): ToolResult {
  const meta = about && { _meta: { [COMMAND_META]: { client: about.clientId, command_id: about.commandId } } };
  const warnings = about ? warningsOf(about) : [];
  const text = json === null || json === 'null' ? 'The action completed and returned nothing.' : textOfResult(json);
  if (text.length > AGENT_RESULT_CHARS) {
    const part = partOf(text, 0, about);
    return { content: texts(...warnings, ...part), ...meta };
  }
  if (warnings.length > 0) return { content: texts([...warnings, text].join('\n\n')), ...meta };
  const value: unknown = json === null ? null : JSON.parse(json);
  return { content: texts(text), ...(isRecord(value) && { structuredContent: value }), ...meta };
}

/** Returns the text that models read for a result: a text value itself, or the JSON of any other value. */
function textOfResult(json: string): string {
  const value: unknown = json.startsWith('"') ? JSON.parse(json) : null;
  return typeof value === 'string' ? value : json;
}

/** Returns a part of a result's text, and a sentence that states which part it is and how to read on. */
function partOf(text: string, from: number, about: Pick<ResultSubject, 'clientId' | 'commandId'> | undefined) {
  let to = Math.min(text.length, from + AGENT_RESULT_CHARS);
  if (to < text.length && isHighSurrogate(text.charCodeAt(to - 1))) to--;
  const where = `These are the characters ${from} to ${to} of ${text.length}.`;
  const on =
    to < text.length && about
      ? ` To read on, call get_command with command_id "${about.commandId}", client "${about.clientId}" and from ${to}.`
      : '';
  return [text.slice(from, to).toWellFormed(), where + on];
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/** Returns a part of a command's result, which begins at this character. */
export function partOfResult(
  json: JsonText | null,
  from: number,
  about: Pick<ResultSubject, 'clientId' | 'commandId'>,
): ToolResult {
  const text = json === null ? '' : textOfResult(json);
  if (from >= text.length)
    return failure([
      `invalid_argument: from: the result has ${text.length} characters.`,
      'There is nothing to read there.',
    ]);
  return { content: texts(...partOf(text, from, about)) };
}

/**
 * Whether a result is too large to be included in an answer as a whole. The JSON is measured, because the answer is
 * JSON.
 */
export function isPartial(json: JsonText | null): boolean {
  return json !== null && json.length > AGENT_RESULT_CHARS;
}

function warningsOf(about: ResultSubject): readonly string[] {
  const { attachedTo, ranBeside } = about;
  return [...(attachedTo ? [attached(about)] : []), ...(ranBeside ? [mayHaveRunTwice(ranBeside, about)] : [])];
}

function attached({ attachedTo, commandId, now, names }: ResultSubject): string {
  const began = attachedTo?.command?.admittedAt;
  const when = began === undefined ? 'earlier' : `${secondsSince(began, now)} s ago`;
  return `This call did not run the action again: this is the answer of the equal call made ${when}, the command ${commandId}, whose answer was lost. To run it once more, ${howToRepeat(commandId, names)}.`;
}

/** Returns the instruction to run a command once more, for example: `pass repeat_of: "cmd-1"`. */
function howToRepeat(commandId: string, names: ArgumentNames): string {
  return `${passing(names, 'repeat_of')}: "${commandId}"`;
}

/** Returns the warning that an equal earlier call ran beside this one, so that the action may have run twice. */
function mayHaveRunTwice({ commandId, command }: EarlierCall, { now, commandId: own }: ResultSubject): string {
  const began = command ? `, made ${secondsSince(command.admittedAt, now)} s ago,` : '';
  const end = command?.outcome ?? null;
  const how = end === null ? 'had not ended when this call began, and still runs' : `ended as ${end}`;
  return `This call ran as the command ${own}. An equal earlier call${began} the command ${commandId}, ${how}. If this call was to repeat it, the action was called twice.`;
}

function secondsSince(at: number, now: number): number {
  return Math.max(0, Math.round((now - at) / 1000));
}

export function texts(...lines: readonly string[]): ToolResult['content'] {
  return lines.map((text) => ({ type: 'text', text }));
}

export function failure(lines: readonly string[]): ToolResult {
  return { content: texts(lines.join('\n')), isError: true };
}

const NOTHING_RAN = 'Nothing ran.';

/** Returns a refusal, which states that nothing was admitted and so nothing ran. */
export function refusal(code: string, message: string, advice: string): ToolResult {
  return failure([`${code}: ${message}`, NOTHING_RAN, advice]);
}

type Refused = Extract<Invocation, { readonly kind: 'refused' }>;

const ADVICE: Readonly<Record<string, string>> = {
  not_connected: 'Wait until the client is connected again (list_clients), or choose another one, and repeat the call.',
  action_not_advertised: 'find_actions shows which actions the clients offer now.',
  policy_denied: 'Another call of this action will be refused too. Tell the user.',
  context_gone: 'The tab was closed, or loaded again, which makes it another one. list_clients shows the present ones.',
  invalid_argument: 'Correct the arguments; describe_action shows their schema.',
  command_conflict: 'The idempotency key belongs to another call. Use another key.',
};
const LATER = 'Repeat the call later: that is safe.';

export function refusedCall({ code, message, retryAfterMs }: Refused, names: ArgumentNames): ToolResult {
  const wait = retryAfterMs === null ? '' : ` Wait at least ${Math.ceil(retryAfterMs / 1000)} s.`;
  const advice = code === 'context_unsupported' ? withoutContext(names) : (ADVICE[code] ?? LATER);
  return refusal(code, message, `${advice}${wait}`);
}

function withoutContext({ context_id: name }: ArgumentNames): string {
  return `This client cannot address a tab. Repeat the call without ${name ?? 'context_id'}, if any tab will do.`;
}

/** Returns the refusal of a call with arguments that the tool does not have. */
export function refusedArguments({ name, inputSchema }: Tool, unknown: readonly string[]): ToolResult {
  const shown = unknown.slice(0, SHOWN_ARGUMENTS).map((one) => `"${clientText(one, ARGUMENT_CHARS)}"`);
  const taken = Object.keys(isRecord(inputSchema['properties']) ? inputSchema['properties'] : {});
  const takes = taken.length === 0 ? 'It takes none.' : `It takes ${taken.join(', ')}.`;
  const hint = taken.includes('params') ? ' The params of the action are the members of params.' : '';
  const more = unknown.length > shown.length ? ` and ${unknown.length - shown.length} more` : '';
  return refusal('invalid_argument', `${name} does not take ${shown.join(', ')}${more}.`, `${takes}${hint}`);
}

/** The maximum number of unknown arguments that are named, and the maximum characters of each name. */
const SHOWN_ARGUMENTS = 5;
const ARGUMENT_CHARS = 60;

/** Returns the answer to a call that has ended, or whose wait ended before it did. */
export function answerOf(invocation: Exclude<Invocation, Refused>, about: ResultSubject): ToolResult {
  const end = endOf(invocation);
  if (end.outcome === null) return stillRunning(end.stage, about);
  if (end.outcome === 'completed' && end.error === null) return succeeded(invocation.result, about);
  // An invocation of kind `ended` has no record: the command ended so long ago that only its mark is left. All other
  // kinds have the record.
  const record = invocation.kind === 'ended' ? null : invocation.command;
  return failure([
    `${end.error?.code ?? end.outcome}: ${messageOf(end, record)}`,
    `The command ${about.commandId} on the client ${about.clientId} ended as ${end.outcome}.`,
    ...(record ? [provenBy(record)] : []),
    RAN[end.execution],
    adviceOf(end.outcome, end.execution, about),
    ...warningsOf(about),
  ]);
}

const RAN: Readonly<Record<Command['execution'], string>> = {
  not_written: NOTHING_RAN,
  refused_by_client: 'The client refused it before its handler ran. Nothing ran.',
  may_have_run: 'It MAY HAVE RUN: nothing more is known.',
  reported_by_client: 'It ran, as the client reports.',
};

/**
 * Returns the message about a command's end. A message that the client wrote is quoted, so that no model takes it for
 * the relay's. `record`: null if only the command's mark is left.
 */
function messageOf({ outcome, error }: Pick<Command, 'outcome' | 'error'>, record: Command | null): string {
  if (error === null) return `The command ended as ${outcome}.`;
  const message = clientText(error.message, MESSAGE_CHARS);
  return record && isOfClient(error, record) ? `the client says: "${message}"` : message;
}

/** Whether the client wrote an error's message, which is so if the record has the error from a report of the client. */
function isOfClient(error: TerminalError, record: Command): boolean {
  // The relay itself writes the message if a result is no longer stored or if the command never arrived.
  if (error !== record.error || error.code === 'not_received') return false;
  return record.execution === 'reported_by_client' || record.execution === 'refused_by_client';
}

function provenBy({ lastProvenStage }: Command): string {
  return `The last stage that is proven: ${lastProvenStage}.`;
}

function adviceOf(outcome: string, execution: Command['execution'], { commandId, names }: ResultSubject): string {
  if (outcome === 'outcome_unknown')
    return `Check by other means whether it took effect. An equal call is refused. To run it once more all the same, ${howToRepeat(commandId, names)}. get_command has the evidence.`;
  if (execution === 'not_written') return 'Repeating the call is safe.';
  if (outcome === 'completed')
    return 'It completed, and its result is no longer kept. Do not repeat it for the result.';
  return 'Look at the message before you repeat the call.';
}

function stillRunning(stage: Command['stage'], about: ResultSubject): ToolResult {
  const { commandId, clientId } = about;
  return failure([
    `still_running: The command ${commandId} on the client ${clientId} has not ended; its stage is ${stage}.`,
    stage === 'admitted' || stage === 'queued' ? 'It was not handed to the client yet.' : 'It may be running now.',
    `Do not call the tool again: call await_command with command_id "${commandId}" and client "${clientId}".`,
    ...warningsOf(about),
  ]);
}

/** Returns the answer to a call that its agent cancelled before it began. */
export function cancelledCall(): ToolResult {
  return refusal('cancelled', 'The agent cancelled the call.', 'Repeating the call is safe.');
}

/** Returns the refusal of a call because an equal earlier call may have run. */
export function refusedRepeat(
  { commandId, command, mark }: EarlierCall,
  { action, names }: { readonly action: string; readonly names: ArgumentNames },
): ToolResult {
  const endedAt = command ? command.terminalAt : mark?.endedAt;
  return failure([
    `repeat_refused: An equal call of "${action}" ended as outcome_unknown${endedAt === null || endedAt === undefined ? '' : ` at ${new Date(endedAt).toISOString()}`}, and the action is advertised neither as idempotent nor as read-only.`,
    ...(command ? [provenBy(command)] : []),
    'This call did not run. The earlier one MAY HAVE RUN.',
    `Check by other means whether it took effect. To run it once more all the same, ${howToRepeat(commandId, names)}. get_command has the evidence.`,
  ]);
}

// Results of requests during which an error was thrown.

/** A request during which an error was thrown. */
type FailedRequest = {
  readonly log: Log;
  /** The fields that describe the request in the log. */
  readonly about: Readonly<Record<string, string>>;
  /** Whether an action was called. From `begun` on, the action may run. */
  readonly call: 'none' | 'not_begun' | 'begun';
  /** The names that the arguments have in the called tool. */
  readonly names: ArgumentNames;
};

/** Returns the result for a request that failed. Logs errors that core does not throw on purpose. */
export function failedResult(error: unknown, { log, about, call, names }: FailedRequest): ToolResult {
  const isInternal = !(error instanceof CallboardError) || error.code === 'internal';
  if (isInternal) log.error({ err: error, ...about }, 'a request of an agent failed');
  const code = isInternal ? 'internal' : error.code;
  const message = isInternal ? 'The relay failed.' : namingArguments(error, names);
  const isOfRelay = isInternal || error.status >= 500;
  const advice = isOfRelay ? 'Repeat the request later.' : 'Correct the request, or repeat it later.';
  if (call === 'none') return failure([`${code}: ${message}`, advice]);
  if (call === 'begun' && (code === 'internal' || code === 'store_unavailable'))
    return failure([
      `${code}: ${message}`,
      'It MAY HAVE RUN: it is not known whether the call was admitted.',
      `Repeat the identical call within ${AGENT_UNARRIVED_MS / 60_000} minutes: if it was admitted, the repeated call gets its answer and does not run again.`,
    ]);
  return refusal(code, message, advice);
}

/** Returns an error's message, in which wrong arguments have the names that the tool uses. */
function namingArguments({ message, details: { errors } }: CallboardError, names: ArgumentNames): string {
  if (!errors) return message;
  const named: Readonly<Record<string, string | null>> = { ...names, client_id: names.client };
  return errors.map(({ parameter, detail }) => `${named[parameter] ?? parameter}: ${detail}`).join('; ');
}

/** Returns the record of a command for get_command. */
export function caseOf(command: Command, result: JsonText | null): Readonly<Record<string, unknown>> {
  const { error, sightings, firstLate } = command;
  const time = (at: number | null | undefined): string | null => (at == null ? null : new Date(at).toISOString());
  return {
    command_id: command.commandId,
    client: command.clientId,
    action: command.action,
    stage: command.stage,
    last_proven_stage: command.lastProvenStage,
    outcome: command.outcome,
    execution: command.execution,
    error: error && { code: error.code, message: clientText(error.message, MESSAGE_CHARS) },
    reason: command.reason,
    admitted_at: time(command.admittedAt),
    dispatched_at: time(command.dispatchedAt),
    acknowledged_at: time(command.acknowledgedAt),
    ended_at: time(command.terminalAt),
    cancel_requested_at: time(command.cancelRequestedAt),
    deadline: time(command.deadline),
    instance_id: command.boundInstanceId,
    node_id: command.nodeId,
    reports_of_end: sightings.map(({ count, firstSeenAt, lastSeenAt }) => ({
      count,
      first_seen_at: time(firstSeenAt),
      last_seen_at: time(lastSeenAt),
    })),
    late_results: command.lateResults,
    first_late: firstLate && { at: time(firstLate.at), kind: firstLate.kind, instance_id: firstLate.instanceId },
    result_chars: result?.length ?? null,
    says: isTerminal(command) ? RAN[command.execution] : 'It has not ended.',
  };
}

/** Returns what get_command shows of an ended command whose record is no longer stored. */
export function caseOfMark(key: { readonly clientId: string; readonly commandId: string }, mark: CommandMark) {
  return {
    command_id: key.commandId,
    client: key.clientId,
    stage: 'terminal',
    outcome: mark.outcome,
    execution: mark.execution,
    error: mark.errorCode && { code: mark.errorCode },
    ended_at: new Date(mark.endedAt).toISOString(),
    says: RAN[mark.execution],
  };
}
