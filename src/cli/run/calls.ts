/**
 * Runs the verbs about calls (invoke, check, await, list, find, show, follow, cancel, reveal, group failures) and about
 * waiting callers.
 */
import { randomUUID } from 'node:crypto';
import {
  CountPendingRpcsDocument,
  FindCommandsDocument,
  GetCallDocument,
  GroupFailuresDocument,
  ListDeliveryCommandsDocument,
  ListPendingRpcsDocument,
  RevealPayloadDocument,
  TailCallsDocument,
  WatchWaitsDocument,
} from '../../../generated/cli.ts';
import { progressSink, type ProgressSink, type ProgressUpdate } from '../../clients/link/progress.ts';
import type { HttpAnswer } from '../../clients/link/library-error.ts';
import { visibleLine } from '../../protocol/visible-text.ts';
import { readMs, readTime } from '../amounts.ts';
import { readAddress, readParams } from '../arguments.ts';
import {
  OperatorFailure,
  accepted,
  exitOfCommand,
  notFound,
  usageFailure,
  EXIT,
  type ExitCode,
} from '../exit-codes.ts';
import { printEvents, queryListing, sayWhatIsMissing } from '../listing.ts';
import { listText, objectText, type Output } from '../output.ts';
import { bodyOf, pathOf, type OperatorRelay } from '../relay.ts';
import { readWord } from '../enum-words.ts';
import type { OperatorRun, RunVerb } from '../verb.ts';
import { caseFileText, type CaseFile } from './case-file.ts';

const RESPOND_MS = 30_000;
const AWAIT_MS = 30_000;
const CANCEL_REASON = 'The operator interrupted the call.';
const CALL_ID = { id: ['command_id'] };
/** The codes of server errors after which it is unknown whether the command was admitted. */
const DOUBTFUL: readonly string[] = ['store_unavailable', 'internal'];

type Ids = readonly [user: string, client: string, command: string];

/** Invokes an action. The command id is made before the request is sent, so that an interrupted wait can be resumed. */
export const call: RunVerb = async (run) => {
  const { path, ids, body, budgetMs } = await invocationOf(run);
  const onProgress = progressPrinter(run, 0);
  const request = { method: 'POST', body, budgetMs, signal: run.stopped, onProgress } as const;
  return waitFor(run, ids, () => run.relay.request(path, request));
};

export const callsAwait: RunVerb = async (run) => {
  const ids = readAddress(run.args[0] ?? '', 3);
  const within = readMs(run.flags['within'], AWAIT_MS, '--within');
  const query = { within_ms: String(within) };
  const request = { query, budgetMs: within, signal: run.stopped, onProgress: progressPrinter(run) };
  return waitFor(run, ids, () => run.relay.request(commandPath(ids), request));
};

/**
 * Creates the function that prints progress reports to standard error; undefined without `--progress`. `last`: as for
 * `progressSink`.
 */
function progressPrinter({ flags, io, output }: OperatorRun, last?: number): ProgressSink | undefined {
  if (flags['progress'] === undefined) return undefined;
  return progressSink((update) => io.complain(progressLine(update, output)), last);
}

function progressLine({ value, number, missed }: ProgressUpdate, output: Output): string {
  if (output === 'json' || output === 'jsonl') return `${JSON.stringify({ progress: value, number, missed })}\n`;
  const which = number === null ? 'progress' : `progress ${number}`;
  const gap = missed === 0 ? '' : ` (${missed} missed before it)`;
  return `${visibleLine(`${which}: ${JSON.stringify(value)}${gap}`)}\n`;
}

/** Checks whether the relay would admit a call. Exits with 5 if the relay would refuse it. */
export const preflight: RunVerb = async (run) => {
  const { path, body } = await invocationOf(run);
  const { command_id, ...rest } = body;
  // An id that the operator gave is checked too. An id that `call` makes is new, so checking it is useless.
  const asked = run.flags['id'] === undefined ? rest : { command_id, ...rest };
  const answer = await run.relay.read(`${path}/preflight`, { method: 'POST', body: asked });
  const { output, io } = run;
  const layers = { items: Array.isArray(answer['layers']) ? answer['layers'] : [] };
  io.print(
    output === 'json'
      ? `${JSON.stringify(answer)}\n`
      : listText(layers, output, { shown: ['layer', 'verdict', 'code', 'asked_of', 'message'], id: ['layer'] }),
  );
  return answer['would_admit'] === 'refuse' ? EXIT.refused : EXIT.done;
};

async function invocationOf({ args, flags }: OperatorRun) {
  const [address = '', action = '', ...pairs] = args;
  const [user, client] = readAddress(address, 2);
  const connect = readMs(flags['connect'], 0, '--connect');
  const respond = readMs(flags['respond'], RESPOND_MS, '--respond');
  const params = await readParams(flags['params'], pairs);
  const command_id = flags['id'] ?? randomUUID();
  const budgets = { connect_within_ms: connect, respond_within_ms: respond };
  return {
    path: `/connections${pathOf(user, client)}/actions${pathOf(action)}`,
    ids: [user, client, command_id] satisfies Ids,
    body: { command_id, context_id: flags['contextId'], ...budgets, ...(params !== undefined && { params }) },
    budgetMs: connect + respond,
  };
}

/** Waits for an answer about a command and prints it. If the wait breaks, prints how to wait again. */
async function waitFor(run: OperatorRun, ids: Ids, send: () => Promise<HttpAnswer>): Promise<ExitCode> {
  const answer = await send().catch((error: unknown) => afterBreak(run, ids, error));
  const { code } = answer.body;
  if (typeof code === 'string' && DOUBTFUL.includes(code)) return lookAfter(run, ids, answer);
  const exit = exitOfCommand(answer.body);
  if (exit === null) bodyOf(answer);
  return report(run, ids, answer, exit ?? EXIT.failed);
}

function report({ io, output }: OperatorRun, ids: Ids, { body }: HttpAnswer, exit: ExitCode): ExitCode {
  io.print(objectText(body, output, CALL_ID));
  if (exit === EXIT.running) io.complain(`The command is still running. To wait for it: ${awaitLine(ids)}\n`);
  return exit;
}

/**
 * Handles a wait that broke: prints how to wait again. If the operator interrupted the wait and gave
 * `--cancel-on-interrupt`, cancels the command instead. Always throws.
 */
async function afterBreak(run: OperatorRun, ids: Ids, error: unknown): Promise<never> {
  const { io, flags, relay, stopped } = run;
  if (!(error instanceof OperatorFailure) || error.code === 'unauthenticated') throw error;
  if (stopped.aborted && flags['cancelOnInterrupt'] !== undefined) {
    const body = { reason: CANCEL_REASON };
    const receipt = await relay.read(`${commandPath(ids)}/cancel`, { method: 'POST', body });
    io.complain(`Cancelling ${ids.join('/')}: ${String(receipt['state'])}.\n`);
  } else {
    io.complain(`The command goes on if it was admitted. Its id is ${ids[2]}. To wait for it: ${awaitLine(ids)}\n`);
  }
  throw error;
}

/**
 * Reads the record of a command after the relay could not say whether it was admitted. If there is no record, the
 * outcome stays unknown, because another node may have admitted the command.
 */
async function lookAfter(run: OperatorRun, ids: Ids, answer: HttpAnswer): Promise<ExitCode> {
  const { io, relay, stopped } = run;
  const { code, detail } = answer.body;
  io.complain(`${visibleLine(`${String(code)}: ${String(detail)}`)}\n`);
  const found = await relay.request(commandPath(ids), { signal: stopped }).catch(() => null);
  const exit = found && exitOfCommand(found.body);
  if (found && exit !== null) return report(run, ids, found, exit);
  io.complain(`The command may have been admitted, and may have run. To wait for it: ${awaitLine(ids)}\n`);
  return EXIT.unknown;
}

function commandPath(ids: Ids): string {
  return `/commands${pathOf(...ids)}`;
}

function awaitLine(ids: Ids): string {
  return `callboard calls await ${shellWord(ids.join('/'))}`;
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

const COMMAND_ID = ['user_id', 'client_id', 'command_id'];

/** Returns a row for a table: the caller is shown by its name only. */
function withCallerName(item: { readonly caller: { readonly name: string } }): object {
  return { ...item, caller: item.caller.name };
}

const CALL_COLUMNS = {
  shown: [...COMMAND_ID, 'action', 'caller', 'stage', 'outcome', 'code', 'duration_ms', 'admitted_at'],
  id: COMMAND_ID,
  row: withCallerName,
};

export const callsLs = queryListing({
  ...CALL_COLUMNS,
  document: ListDeliveryCommandsDocument,
  variables: ({ flags, lists, clock }) => ({
    user_id: flags['userId'],
    client_id: flags['clientId'],
    action: flags['action'],
    context_id: flags['contextId'],
    code: flags['code'],
    node_id: flags['nodeId'],
    labels: lists['label'],
    outcome: readWord('Outcome', flags['outcome']),
    stage: readWord('Stage', flags['stage']),
    client_type: readWord('ClientType', flags['clientType']),
    caller: flags['caller'],
    caller_kind: readWord('CommandCallerKind', flags['callerKind']),
    admitted_after: readTime(flags['since'], '--since', clock),
    admitted_before: readTime(flags['until'], '--until', clock),
    order: readWord('CommandOrder', flags['order'] ?? 'newest'),
  }),
  page: ({ delivery }) => delivery.commands,
});

/** Finds calls by an id, the end of an id, or a trace id. */
export const callsFind: RunVerb = async (run) => {
  const { relay, args, flags, io, output } = run;
  const page = await matchesOf(relay, args[0] ?? '', flags['cursor']);
  const { next_cursor, completeness } = page;
  io.print(listText(page, output, CALL_COLUMNS));
  if (next_cursor !== null) io.complain(`Not all calls were read. To look for more matches: --cursor ${next_cursor}\n`);
  sayWhatIsMissing(run, { completeness });
};

/**
 * Reads pages of matches until one has a call, because a page may be empty although more follow. Throws if no call
 * matches.
 */
async function matchesOf(relay: OperatorRelay, id_or_trace: string, cursor?: string) {
  for (let after = cursor; ;) {
    const { findCommands } = await relay.query(FindCommandsDocument, { id_or_trace, cursor: after });
    const { items, next_cursor } = findCommands;
    if (items.length > 0) return findCommands;
    if (next_cursor === null) throw notFound('No call with a record has this id or trace.');
    after = next_cursor;
  }
}

/**
 * Reads the address of a call. A text without a slash is an id, the end of an id, or a trace id; it must match exactly
 * one call.
 */
async function addressOf(relay: OperatorRelay, text: string): Promise<Ids> {
  if (text === '' || text.includes('/')) return readAddress(text, 3);
  const [only, ...others] = (await matchesOf(relay, text)).items;
  if (!only || others.length > 0) throw usageFailure(`several calls match: callboard calls find ${shellWord(text)}`);
  return [only.user_id, only.client_id, only.command_id];
}

/** Shows groups of failed calls, the largest groups first. */
export const callsFailures: RunVerb = async (run) => {
  const { relay, flags, lists, io, output, clock } = run;
  const by = lists['by']?.map((word) => readWord('FailureKey', word)) ?? ['action', 'code'];
  const { delivery } = await relay.query(GroupFailuresDocument, {
    by,
    user_id: flags['userId'],
    client_id: flags['clientId'],
    action: flags['action'],
    context_id: flags['contextId'],
    code: flags['code'],
    node_id: flags['nodeId'],
    caller: flags['caller'],
    caller_kind: readWord('CommandCallerKind', flags['callerKind']),
    outcomes: lists['outcome']?.map((word) => readWord('Outcome', word)),
    admitted_after: readTime(flags['since'], '--since', clock),
    admitted_before: readTime(flags['until'], '--until', clock),
  });
  const { failures } = delivery;
  const keys = by.flatMap((key) => GROUP_MEMBERS[key]);
  const last = COMMAND_ID.map((name) => `last.${name}`);
  const shown = [
    ...keys,
    'count',
    'share',
    'last.admitted_at',
    ...(keys.includes('client_id') ? [] : last.slice(0, 2)),
  ];
  io.print(listText(failures, output, { shown: [...shown, 'last.command_id'], id: last }));
  sayWhatIsMissing(run, { completeness: failures.completeness });
};

/** The members of a group by which each key is shown. */
const GROUP_MEMBERS = {
  action: ['action'],
  code: ['code'],
  client: ['user_id', 'client_id'],
  node: ['node_id'],
} as const;

export const callsGet: RunVerb = async (run) => {
  const { relay, args, io, output } = run;
  const command = await recordOf(relay, await addressOf(relay, args[0] ?? ''));
  if (command === null) throw notFound('There is no record of this command.');
  io.print(output === 'table' ? caseFileText(command) : objectText(command, output, { id: COMMAND_ID }));
  sayWhatIsMissing(run, { completeness: command.history.completeness });
};

async function recordOf(relay: OperatorRelay, ids: Ids): Promise<CaseFile | null> {
  const [user_id, client_id, command_id] = ids;
  return (await relay.query(GetCallDocument, { user_id, client_id, command_id })).command;
}

export const callsCancel: RunVerb = async ({ relay, args, io, output, flags: { reason } }) => {
  const ids = readAddress(args[0] ?? '', 3);
  const receipt = await relay.read(`${commandPath(ids)}/cancel`, { method: 'POST', body: { reason } });
  io.print(objectText(receipt, output, CALL_ID));
};

export const callsTail: RunVerb = async (run) => {
  const { flags, lists } = run;
  await printEvents(run, {
    shown: [
      'at',
      'event',
      'record.user_id',
      'record.client_id',
      'record.command_id',
      'record.action',
      'record.outcome',
    ],
    id: ['record.user_id', 'record.client_id', 'record.command_id'],
    document: TailCallsDocument,
    variables: {
      user_id: flags['userId'],
      client_id: flags['clientId'],
      action: flags['action'],
      client_type: readWord('ClientType', flags['clientType']),
      outcomes: lists['outcome']?.map((word) => readWord('Outcome', word)),
    },
    event: ({ commandEvents }) => commandEvents,
  });
};

const WATCHED_MS = 10_000;

export const waitsLs = queryListing({
  shown: [...COMMAND_ID, 'action', 'caller', 'stage', 'age_ms', 'times_out_at'],
  id: COMMAND_ID,
  row: withCallerName,
  document: ListPendingRpcsDocument,
  variables: filterOf,
  page: ({ pendingRpcs }) => pendingRpcs,
});

export const waitsCount: RunVerb = async (run) => {
  const { pendingRpcCount } = await run.relay.query(CountPendingRpcsDocument, filterOf(run));
  const { io, output } = run;
  io.print(output === 'table' ? `${pendingRpcCount.count}\n` : objectText(pendingRpcCount, output, { id: ['count'] }));
  sayWhatIsMissing(run, pendingRpcCount);
};

export const waitsWatch: RunVerb = (run) =>
  printEvents(run, {
    shown: ['at', 'over', 'count', 'oldest_age_ms', ...COMMAND_ID.map((name) => `oldest.${name}`), 'oldest.action'],
    id: COMMAND_ID.map((name) => `oldest.${name}`),
    document: WatchWaitsDocument,
    variables: { user_id: run.flags['userId'], older_than_ms: readMs(run.flags['older'], WATCHED_MS, '--older') },
    event: ({ pendingRpcAlerts }) => pendingRpcAlerts,
  });

function filterOf({ flags }: OperatorRun) {
  const { older, userId: user_id, clientId: client_id, contextId: context_id, caller } = flags;
  const caller_kind = readWord('CommandCallerKind', flags['callerKind']);
  const min_age_ms = older === undefined ? undefined : readMs(older, 0, '--older');
  return { user_id, client_id, context_id, caller, caller_kind, min_age_ms };
}

const SUBJECTS = { params: 'command_params', result: 'command_result', message: 'message' } as const;

export const callsReveal: RunVerb = async ({ relay, args, io, output, flags }) => {
  const [user_id, client_id, command_id] = readAddress(args[0] ?? '', 3);
  const { reason, message: message_id } = flags;
  if (reason === undefined) throw usageFailure('--reason: say why the payload is looked at');
  const named = flags['subject'] ?? (message_id === undefined ? 'result' : 'message');
  const subject = Object.entries(SUBJECTS).find(([name]) => name === named)?.[1] ?? 'command_result';
  if ((subject === 'message') !== (message_id !== undefined))
    throw usageFailure('--message: names the message of the subject message, and of no other');
  const of = subject === 'message' ? { message_id } : { client_id, command_id };
  // Each reveal makes an audit row, so a request whose connection broke is not repeated.
  const variables = { user_id, subject, reason, ...of };
  const { revealPayload } = await relay.query(RevealPayloadDocument, variables, { repeatable: false });
  if (subject === 'command_result' && 'code' in revealPayload && revealPayload.code === 'not_found')
    throw await withoutResult(relay, [user_id, client_id, command_id]);
  io.print(objectText(accepted(revealPayload), output, { id: ['digest'] }));
};

/** Returns the error for a call whose result cannot be revealed. Its message says why there is no result. */
async function withoutResult(relay: OperatorRelay, ids: Ids): Promise<OperatorFailure> {
  const call = await recordOf(relay, ids);
  if (call === null) return notFound('There is no record of this command.');
  const { outcome } = call;
  const params = '--subject params shows what it was called with.';
  if (outcome === 'completed') return notFound(`The result of this call is no longer kept. ${params}`);
  const why = outcome === null ? 'it has not ended' : outcome.replace('_', ' ');
  return notFound(`This call has no result (${why}). ${params}`);
}
