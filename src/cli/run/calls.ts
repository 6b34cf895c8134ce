/**
 * Runs the verbs `call`, `preflight` and `calls await`. They use REST, because its statuses say what is proven about a
 * command.
 */
import { randomUUID } from 'node:crypto';
import type { HttpAnswer } from '../../../clients/link/relay-request.ts';
import { visibleLine } from '../../../protocol/visible-text.ts';
import { exitOfCommand, OPERATOR_EXIT, OperatorFailure, type OperatorExit } from '../failure.ts';
import { listText, objectText } from '../output.ts';
import { readAddress, readParams } from '../params.ts';
import { bodyOf, pathOf } from '../relay.ts';
import { readMs } from '../times.ts';
import type { OperatorRun, RunVerb } from '../verb.ts';

const RESPOND_MS = 30_000;
const AWAIT_MS = 30_000;
const CANCEL_REASON = 'The operator interrupted the call.';
const ID = { id: ['command_id'] };
/** The codes of server errors after which it is unknown whether the command was admitted. */
const DOUBTFUL: readonly string[] = ['store_unavailable', 'internal'];

type Ids = readonly [user: string, client: string, command: string];

/**
 * Invokes an action. It chooses the command's id before it sends the request, so that the wait can be resumed after a
 * broken connection.
 */
export const call: RunVerb = async (run) => {
  const { path, ids, body, budgetMs } = await invocationOf(run);
  return waitFor(run, ids, () => run.relay.request(path, { method: 'POST', body, budgetMs, signal: run.stopped }));
};

export const callsAwait: RunVerb = async (run) => {
  const ids = readAddress(run.args[0] ?? '', 3);
  const within = readMs(run.flags['within'], AWAIT_MS, '--within');
  const query = { within_ms: String(within) };
  return waitFor(run, ids, () => run.relay.request(commandPath(ids), { query, budgetMs: within, signal: run.stopped }));
};

const LAYER = { shown: ['layer', 'verdict', 'code', 'asked_of', 'message'], id: ['layer'] };

/** Checks whether the relay would admit a call. Exits with 5 if the relay would refuse it. */
export const preflight: RunVerb = async (run) => {
  const { path, body } = await invocationOf(run);
  const { command_id, ...rest } = body;
  // The id that `call` creates is new, so only an id that the operator gave is worth checking.
  const asked = run.flags['id'] === undefined ? rest : { command_id, ...rest };
  const answer = await run.relay.read(`${path}/preflight`, { method: 'POST', body: asked });
  const { output, io } = run;
  const layers = { items: Array.isArray(answer['layers']) ? answer['layers'] : [] };
  io.print(output === 'json' ? `${JSON.stringify(answer)}\n` : listText(layers, output, LAYER));
  return answer['would_admit'] === 'refuse' ? OPERATOR_EXIT.refused : OPERATOR_EXIT.done;
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
    body: { command_id, ...budgets, ...(params !== undefined && { params }) },
    budgetMs: connect + respond,
  };
}

/** Waits for an answer about a command and prints it. If the wait breaks, it says how to wait again. */
async function waitFor(run: OperatorRun, ids: Ids, send: () => Promise<HttpAnswer>): Promise<OperatorExit> {
  const answer = await send().catch((error: unknown) => afterBreak(run, ids, error));
  const { code } = answer.body;
  if (typeof code === 'string' && DOUBTFUL.includes(code)) return lookAfter(run, ids, answer);
  const exit = exitOfCommand(answer.body);
  if (exit === null) bodyOf(answer);
  return report(run, ids, answer, exit ?? OPERATOR_EXIT.unexpected);
}

function report({ io, output }: OperatorRun, ids: Ids, { body }: HttpAnswer, exit: OperatorExit): OperatorExit {
  io.print(objectText(body, output, ID));
  if (exit === OPERATOR_EXIT.running) io.complain(`The command is still running. To wait for it: ${awaitLine(ids)}\n`);
  return exit;
}

/**
 * Says how to wait again after a wait broke, or cancels the command if the operator asked for that. Then throws the
 * error.
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
 * Reads the record of a command after the relay could not say what became of it. If there is no record, the outcome
 * stays unknown. Another node may have admitted the command, and that node's answer may have been lost.
 */
async function lookAfter(run: OperatorRun, ids: Ids, answer: HttpAnswer): Promise<OperatorExit> {
  const { io, relay, stopped } = run;
  const { code, detail } = answer.body;
  io.complain(`${visibleLine(`${String(code)}: ${String(detail)}`)}\n`);
  const found = await relay.request(commandPath(ids), { signal: stopped }).catch(() => null);
  const exit = found && exitOfCommand(found.body);
  if (found && exit !== null) return report(run, ids, found, exit);
  io.complain(`The command may have been admitted, and may have run. To wait for it: ${awaitLine(ids)}\n`);
  return OPERATOR_EXIT.unknown;
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
