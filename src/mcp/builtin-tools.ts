/**
 * Defines the built-in tools, which every agent is offered whatever clients are connected: their schemas, and the
 * functions that run them.
 */
import { isRecord, readShaped, type JsonText, type ObjectShape } from '../core/json.ts';
import { AGENT_MESSAGE_PARTS, AGENT_WAIT_MS, MAX_REASON } from '../core/limits.ts';
import { callAction, describeAction, findActions, preflight } from './builtin-actions.ts';
import { type RunTool, type ToolServices, type BuiltinCall, type ToolArguments, isNoText } from './builtin-call.ts';
import { listClients } from './builtin-clients.ts';
import { awaitCommand, cancelCommand, getCommand } from './builtin-commands.ts';
import { refusal, refusedArguments, type ToolResult } from './results.ts';
import { ARGUMENT_SCHEMAS, unknownArguments } from './tool-arguments.ts';
import type { Tool } from './tools.ts';
import { readingText } from './turn.ts';

const READS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
const ANYTHING = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true };
const TEXT = { type: 'string' } as const;
const COMMAND = {
  command_id: { ...TEXT, description: 'The id of the command.' },
  client: { ...TEXT, description: 'The id of its client, if you know it.' },
};

function schema(properties: object, required: readonly string[] = []): Tool['inputSchema'] {
  return { type: 'object', properties, required, additionalProperties: false };
}

const FROM = {
  type: 'integer',
  minimum: 0,
  description: 'Returns a part of the result alone, from this character on.',
};
const WITHIN = `How long to wait, in milliseconds (default ${AGENT_WAIT_MS}).`;
const ACTION = { ...TEXT, description: 'The name of the action, as find_actions shows it.' };
const PARAMS = { type: 'object', description: 'The params of the action; describe_action shows their schema.' };

const { repeat_of: _, ...PREFLIGHT_SCHEMAS } = ARGUMENT_SCHEMAS;

/** The built-in tools in the order of their names. This list is constant. */
export const BUILTIN_TOOLS: readonly Tool[] = [
  {
    name: 'await_command',
    description:
      'Waits for the end of a command that an earlier call began, and returns its result. Use it after "still_running" instead of calling the tool again.',
    inputSchema: schema(
      {
        ...COMMAND,
        within_ms: { type: 'integer', minimum: 0, maximum: AGENT_WAIT_MS, description: WITHIN },
      },
      ['command_id'],
    ),
    annotations: READS,
  },
  {
    name: 'call_action',
    description: 'Calls an action by its name. The same as the tool of that action, if it has one.',
    inputSchema: schema({ action: ACTION, params: PARAMS, ...ARGUMENT_SCHEMAS }, ['action']),
    annotations: ANYTHING,
  },
  {
    name: 'cancel_command',
    description:
      'Cancels a command. One that was not handed to its client never runs; otherwise its client is asked to stop it, and may not.',
    inputSchema: schema({ ...COMMAND, reason: { ...TEXT, maxLength: MAX_REASON } }, ['command_id']),
    annotations: { ...READS, readOnlyHint: false },
  },
  {
    name: 'describe_action',
    description: 'Shows what each connected client says about an action: its description, its schema and its effects.',
    inputSchema: schema({ action: ACTION, client: ARGUMENT_SCHEMAS.client }, ['action']),
    annotations: READS,
  },
  {
    name: 'find_actions',
    description: 'Finds actions by words in their names and descriptions. Without a query it lists all of them.',
    inputSchema: schema({ query: { ...TEXT, description: 'Words that must all occur.' } }),
    annotations: READS,
  },
  {
    name: 'get_command',
    description:
      'Shows what is proven about a command: how far it came, whether it may have run, how it ended, and its result if it is still kept. A large result is read in parts: pass from.',
    inputSchema: schema({ ...COMMAND, from: FROM }, ['command_id']),
    annotations: READS,
  },
  {
    name: 'list_clients',
    description: 'Lists the connected clients of the user, with the browser tabs and other contexts that they report.',
    inputSchema: schema({}),
    annotations: READS,
  },
  {
    name: 'preflight',
    description:
      'Says whether a call would be admitted now, and what would refuse it. It does not look for earlier identical calls. Nothing runs.',
    inputSchema: schema({ action: ACTION, params: PARAMS, ...PREFLIGHT_SCHEMAS }, ['action', 'client']),
    annotations: READS,
  },
];

/** The JSON texts of the built-in tools, in the same order. */
export const BUILTIN_TEXTS = BUILTIN_TOOLS.map((tool) => JSON.stringify(tool));

export const BUILTIN_NAMES: ReadonlySet<string> = new Set(BUILTIN_TOOLS.map(({ name }) => name));

const TOOLS: ReadonlyMap<string, Tool> = new Map(BUILTIN_TOOLS.map((tool) => [tool.name, tool]));

const RUNS: Readonly<Record<string, RunTool>> = {
  await_command: awaitCommand,
  call_action: (parts, call, given) =>
    callAction(parts, call, given, (request, asked) => parts.calls.invoke(request, asked)),
  cancel_command: cancelCommand,
  describe_action: describeAction,
  find_actions: findActions,
  get_command: getCommand,
  list_clients: listClients,
  preflight: (parts, call, given) => callAction(parts, call, given, (_request, asked) => preflight(parts, call, asked)),
};

/** Runs a built-in tool. Null: there is no built-in tool of this name. */
export async function runBuiltin(parts: ToolServices, call: BuiltinCall): Promise<ToolResult | null> {
  const tool = TOOLS.get(call.name);
  const run = RUNS[call.name];
  if (!tool || !run) return null;
  const { args, request } = call;
  const given = args === null ? {} : await readingText(request.turn, args, () => readArguments(args));
  if (given === null)
    return refusal('invalid_argument', 'The arguments are too many, too deep, or no object.', 'Correct them.');
  const wrong = await readingText(request.turn, args, () => wrongArguments(tool, args, given));
  return wrong ?? run(parts, call, given);
}

const ARGUMENTS: ObjectShape = { members: new Map([['params', 'skipped']]), others: 'plain' };

/**
 * Reads all arguments of a built-in tool except the params of an action. Null: the arguments are not an object, are too
 * many, or are nested too deeply.
 */
function readArguments(args: JsonText): ToolArguments | null {
  const read = readShaped(args, ARGUMENTS, AGENT_MESSAGE_PARTS);
  return typeof read === 'object' && isRecord(read.value) ? read.value : null;
}

/**
 * Refuses arguments that the tool does not have, and non-text values of arguments that must be texts. Each tool checks
 * the rest itself.
 */
function wrongArguments(tool: Tool, args: JsonText | null, given: ToolArguments): ToolResult | null {
  const unknown = unknownArguments(args, tool.inputSchema);
  if (unknown.length > 0) return refusedArguments(tool, unknown);
  const properties = tool.inputSchema['properties'] as Readonly<Record<string, { readonly type: string }>>;
  const wrong = Object.keys(given).find((name) => isNoText(given[name]) && properties[name]?.type === 'string');
  return wrong === undefined ? null : refusal('invalid_argument', `${wrong}: expected a text.`, 'Correct it.');
}
