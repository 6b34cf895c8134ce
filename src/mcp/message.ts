/** Reads the message of a request within bounds, before anything parses it as a whole. */
import { fail, invalid } from '../core/errors.ts';
import {
  RawJson,
  isArrayText,
  isObjectText,
  isRecord,
  readShaped,
  shapeFaultText,
  type JsonText,
  type ObjectShape,
} from '../core/json.ts';
import { AGENT_MESSAGE_CHARS, AGENT_MESSAGE_PARTS } from '../core/limits.ts';

/** A message. `args`: the original text of the arguments of its call, by the id of the message. */
export type AgentMessage = { readonly parsed: unknown; readonly args: ReadonlyMap<unknown, JsonText> };

const PARAMS: ObjectShape = { members: new Map([['arguments', 'text']]), others: 'plain' };
const MESSAGE: ObjectShape = { members: new Map([['params', PARAMS]]), others: 'plain' };

/**
 * Reads a body. The arguments of a call are not parsed: numbers would lose digits, and a call may have large ones. The
 * parsed message has an empty value of the same kind instead. Throws `invalid_argument` for a batch of messages and for
 * arguments that are nested too deeply, and `payload_too_large` if there is too much besides the arguments.
 */
export function readMessage(body: JsonText): AgentMessage {
  if (isArrayText(body))
    fail('invalid_argument', 'Batches are not accepted. Send each message as a request of its own.');
  const read = readShaped(body, MESSAGE, AGENT_MESSAGE_PARTS);
  if (read === 'depth') return invalid('params', shapeFaultText(read, AGENT_MESSAGE_PARTS));
  if (read === 'members') return tooLarge(`${AGENT_MESSAGE_PARTS} members and items`);
  const parsed = read.value;
  const params = isRecord(parsed) && isRecord(parsed['params']) ? parsed['params'] : {};
  const { arguments: args = null } = params;
  const text = args instanceof RawJson ? args.text : null;
  if (body.length - (text?.length ?? 0) > AGENT_MESSAGE_CHARS) tooLarge(`${AGENT_MESSAGE_CHARS} characters`);
  if (!isRecord(parsed) || text === null) return { parsed, args: new Map() };
  const empty = isObjectText(text) ? {} : isArrayText(text) ? [] : '';
  return { parsed: { ...parsed, params: { ...params, arguments: empty } }, args: new Map([[parsed['id'], text]]) };
}

function tooLarge(most: string): never {
  return fail('payload_too_large', `A message may have at most ${most} besides the arguments of its call.`);
}
