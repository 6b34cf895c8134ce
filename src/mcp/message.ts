/** Reads the message of a request within limits, before anything parses the whole message. */
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

/** A parsed message. `args`: the original JSON text of a call's arguments, by the message's id. */
export type AgentMessage = { readonly parsed: unknown; readonly args: ReadonlyMap<unknown, JsonText> };

const PARAMS: ObjectShape = { members: new Map([['arguments', 'text']]), others: 'plain' };
const MESSAGE: ObjectShape = { members: new Map([['params', PARAMS]]), others: 'plain' };

/**
 * Reads the body of a request. Arguments of a call are kept as text, because parsing would lose digits of numbers, and
 * arguments may be large. The parsed message has an empty value of the same kind in their place. Throws
 * `invalid_argument` for a batch of messages and for arguments that are nested too deeply. Throws `payload_too_large`
 * if the message without the arguments is too large.
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
