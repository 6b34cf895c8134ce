/** Implements the built-in tools that read, await and cancel commands. */
import { isId, type CommandKey } from '../core/ids.ts';
import { parsedJson } from '../core/json.ts';
import { AGENT_WAIT_MS } from '../core/limits.ts';
import { textIn, type ToolServices, type BuiltinCall, type ToolArguments } from './builtin-call.ts';
import { hasEnded } from './calls.ts';
import {
  answerOf,
  caseOf,
  caseOfMark,
  failure,
  isPartial,
  partOfResult,
  refusal,
  success,
  type ToolResult,
} from './results.ts';
import { NO_ARGUMENTS } from './tool-arguments.ts';

/**
 * Returns the key of the command that a call names. If the call names no client, the command is searched by its id.
 * Null: no command was found, or two clients have a command with this id.
 */
async function keyOf(
  { core }: ToolServices,
  { request }: BuiltinCall,
  given: ToolArguments,
): Promise<CommandKey | null> {
  const { requester } = request;
  const { userId } = requester;
  const [commandId, clientId] = [textIn(given, 'command_id'), textIn(given, 'client')];
  if (commandId === null || !isId(commandId)) return null;
  if (clientId !== null) return isId(clientId) ? { userId, clientId, commandId } : null;
  const { nodes } = await core.lookup.find(requester, commandId, { first: 2 });
  const [found, other] = nodes.filter((command) => command.commandId === commandId);
  return found && !other ? { userId, clientId: found.clientId, commandId } : null;
}

const NO_COMMAND = failure([
  'not_found: No such command was found, or it is not the only one with this id.',
  'Pass the client too, if you know it: the command of an ended call may be found by both.',
]);

async function readCommand(parts: ToolServices, call: BuiltinCall, given: ToolArguments, withinMs: number) {
  const key = await keyOf(parts, call, given);
  const found = key && (await parts.calls.await(call.request, key, withinMs));
  if (!key || !found || found.kind === 'refused') return null;
  const { requester } = call.request;
  if (found.kind !== 'ended') {
    const { action, clientType } = found.command;
    if (!parts.core.actions.mayInvoke(requester, { userId: key.userId, clientType, action })) return null;
  }
  return { key, found };
}

export async function getCommand(parts: ToolServices, call: BuiltinCall, given: ToolArguments): Promise<ToolResult> {
  const from = given['from'] ?? null;
  if (from !== null && !(typeof from === 'number' && Number.isSafeInteger(from) && from >= 0))
    return refusal('invalid_argument', 'from: expected a number of characters.', 'Correct it.');
  const read = await readCommand(parts, call, given, 0);
  if (!read) return NO_COMMAND;
  const { key, found } = read;
  if (hasEnded(found)) call.request.call.tells(key);
  if (found.kind === 'ended') return success(caseOfMark(key, found.mark));
  const { command, result } = found;
  if (from !== null) return partOfResult(result, from, key);
  const part = isPartial(result) && { result: 'It is large: pass from, beginning with 0, to read it in parts.' };
  return success({ ...caseOf(command, result), ...(part || (result !== null && { result: parsedJson(result) })) });
}

export async function awaitCommand(parts: ToolServices, call: BuiltinCall, given: ToolArguments): Promise<ToolResult> {
  const within = given['within_ms'] ?? AGENT_WAIT_MS;
  if (typeof within !== 'number' || !Number.isInteger(within) || within < 0 || within > AGENT_WAIT_MS)
    return refusal('invalid_argument', `within_ms: expected 0 to ${AGENT_WAIT_MS}.`, 'Correct it.');
  const read = await readCommand(parts, call, given, within);
  if (!read) return NO_COMMAND;
  const { key, found } = read;
  if (hasEnded(found)) call.request.call.tells(key);
  return answerOf(found, {
    ...key,
    attachedTo: null,
    ranBeside: null,
    now: parts.core.clock.now(),
    names: NO_ARGUMENTS,
  });
}

export async function cancelCommand(parts: ToolServices, call: BuiltinCall, given: ToolArguments): Promise<ToolResult> {
  const read = await readCommand(parts, call, given, 0);
  if (!read) return NO_COMMAND;
  const reason = textIn(given, 'reason');
  const receipt = await parts.core.rpc.cancel(call.request.requester, read.key, reason);
  if (!receipt) return NO_COMMAND;
  const { state, outcome } = receipt;
  return success({ command_id: read.key.commandId, state, outcome, says: CANCEL_SAYS[state] });
}

const CANCEL_SAYS: Readonly<Record<'cancelled' | 'requested' | 'too_late', string>> = {
  cancelled: 'It was not handed to its client, and never runs.',
  requested: 'Its client was asked to stop it. await_command tells how it ends.',
  too_late: 'It had ended before.',
};
