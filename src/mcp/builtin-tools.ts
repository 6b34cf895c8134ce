/** The tools that every agent is offered, whatever is connected: their schemas, and what they answer. */
import { isLive } from '../core/connections/connection.ts';
import { contextStatus, type ExecutionContext } from '../core/contexts/context.ts';
import type { Core } from '../core/core.ts';
import { isId, isName, type CommandKey } from '../core/ids.ts';
import { parsedJson, type JsonText } from '../core/json.ts';
import {
  AGENT_CLIENTS,
  AGENT_DESCRIBED_CLIENTS,
  AGENT_DESCRIPTION_CHARS,
  AGENT_FOUND_ACTIONS,
  AGENT_SHOWN_CONTEXTS,
  AGENT_WAIT_MS,
  MAX_REASON,
  PAGE_MAX,
} from '../core/limits.ts';
import {
  SEE_CLIENTS,
  hasEnded,
  noneOf,
  offersOf,
  type AgentCall,
  type AgentRequest,
  type Calls,
  type LiveClients,
} from './calls.ts';
import {
  answerOf,
  caseOf,
  caseOfMark,
  failure,
  refusal,
  refusedArguments,
  success,
  type ToolResult,
} from './results.ts';
import {
  ARGUMENT_SCHEMAS,
  IN_PARAMS,
  NO_ARGUMENTS,
  clientText,
  splitArguments,
  unknownArguments,
  type ActionTool,
  type ArgumentNames,
  type Offer,
  type Tool,
} from './tools.ts';

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

const WITHIN = `How long to wait, in milliseconds (default ${AGENT_WAIT_MS}).`;
const ACTION = { ...TEXT, description: 'The name of the action, as find_actions shows it.' };
const PARAMS = { type: 'object', description: 'The params of the action; describe_action shows their schema.' };

const { repeat_of: _, ...PREFLIGHT_SCHEMAS } = ARGUMENT_SCHEMAS;

/** The built-in tools, in the order of their names. The list never changes. */
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
      'Shows what is proven about a command: how far it came, whether it may have run, how it ended, and its result if it is still kept.',
    inputSchema: schema(COMMAND, ['command_id']),
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

export const BUILTIN_NAMES: ReadonlySet<string> = new Set(BUILTIN_TOOLS.map(({ name }) => name));

const TOOLS: ReadonlyMap<string, Tool> = new Map(BUILTIN_TOOLS.map((tool) => [tool.name, tool]));

/** What the built-in tools work with. */
export type BuiltinParts = { readonly core: Core; readonly calls: Calls };

/** A call of a built-in tool. `tools`: the tools of the requester's actions. */
export type BuiltinCall = {
  readonly name: string;
  readonly args: JsonText | null;
  readonly request: AgentRequest;
  readonly tools: () => Promise<readonly ActionTool[]>;
};

type Given = Readonly<Record<string, unknown>>;
type Run = (parts: BuiltinParts, call: BuiltinCall, given: Given) => Promise<ToolResult>;

const RUNS: Readonly<Record<string, Run>> = {
  await_command: awaitCommand,
  call_action: (parts, call, given) =>
    callAction(parts, call, given, (request, asked) => parts.calls.invoke(request, asked)),
  cancel_command: cancelCommand,
  describe_action: describeAction,
  find_actions: findActions,
  get_command: getCommand,
  list_clients: listClients,
  preflight: (parts, call, given) =>
    callAction(parts, call, given, (request, asked) => preflight(parts.core, request, asked)),
};

/** Runs a built-in tool. Null: there is none of this name. */
export async function runBuiltin(parts: BuiltinParts, call: BuiltinCall): Promise<ToolResult | null> {
  const tool = TOOLS.get(call.name);
  const run = RUNS[call.name];
  if (!tool || !run) return null;
  const given = (call.args === null ? {} : parsedJson(call.args)) as Given;
  return wrongArguments(tool, call.args, given) ?? run(parts, call, given);
}

/** Refuses arguments that the tool does not take, and those that should be texts. The rest is checked where it is used. */
function wrongArguments(tool: Tool, args: JsonText | null, given: Given): ToolResult | null {
  const unknown = unknownArguments(args, tool.inputSchema);
  if (unknown.length > 0) return refusedArguments(tool, unknown);
  const properties = tool.inputSchema['properties'] as Readonly<Record<string, { readonly type: string }>>;
  const wrong = Object.keys(given).find((name) => isNoText(given[name]) && properties[name]?.type === 'string');
  return wrong === undefined ? null : refusal('invalid_argument', `${wrong}: expected a text.`, 'Correct it.');
}

/** Null counts as an absent argument, because models write it for one. */
function isNoText(value: unknown): boolean {
  return value !== null && typeof value !== 'string';
}

function textIn(given: Given, name: string): string | null {
  const value = given[name];
  return typeof value === 'string' ? value : null;
}

function missing(name: string): ToolResult {
  return refusal('invalid_argument', `${name}: is required, as a text.`, 'Repeat the call with it.');
}

// Actions.

async function callAction(
  _parts: BuiltinParts,
  { args, request }: BuiltinCall,
  given: Given,
  run: (request: AgentRequest, call: AgentCall) => Promise<ToolResult>,
): Promise<ToolResult> {
  const action = textIn(given, 'action');
  if (action === null || !isName(action)) return missing('action');
  const split = splitArguments(args, IN_PARAMS);
  if (!split) return refusal('invalid_argument', 'The arguments are no object.', 'Correct them.');
  return run(request, actionCall(action, split, IN_PARAMS.names));
}

/**
 * Builds the call of an action from the arguments of a tool, which has these names for the own ones. Own arguments of a
 * wrong type are left to core's checks.
 */
export function actionCall(
  action: string,
  { params, own }: NonNullable<ReturnType<typeof splitArguments>>,
  names: ArgumentNames,
): AgentCall {
  const text = (json: JsonText | undefined): string | null => {
    const value = json === undefined ? null : parsedJson(json);
    return value === null ? null : String(value);
  };
  const within = own.respond_within_ms === undefined ? null : parsedJson(own.respond_within_ms);
  return {
    action,
    params,
    client: text(own.client),
    contextId: text(own.context_id),
    repeatOf: text(own.repeat_of),
    respondWithinMs: within === null ? null : Number(within),
    names,
  };
}

async function preflight(core: Core, { requester }: AgentRequest, call: AgentCall): Promise<ToolResult> {
  const { action, client, contextId, params, respondWithinMs } = call;
  if (client === null) return missing('client');
  if (!isId(client)) return refusal('invalid_argument', 'client: this is no id of a client.', SEE_CLIENTS);
  const asked = { userId: requester.userId, clientId: client, action, params, contextId, respondWithinMs };
  const { wouldAdmit, firstRefusal, layers } = await core.rpc.preflight(requester, asked);
  return success({
    would_admit: wouldAdmit,
    first_refusal: firstRefusal && {
      layer: firstRefusal.layer,
      code: firstRefusal.code,
      message: firstRefusal.message,
    },
    layers: layers.map(({ layer, verdict, code, message }) => ({ layer, verdict, code, message })),
  });
}

/** Returns what an answer says if the user has clients that were not looked at. */
function unseen({ more }: LiveClients): object {
  if (!more) return {};
  return {
    more_clients: true,
    note: `The user has more clients; only the first ${AGENT_CLIENTS} were looked at. A call may name any client by its id.`,
  };
}

/** Finds actions among all that are offered now, also those for which there was no room in the list of tools. */
async function findActions({ core }: BuiltinParts, call: BuiltinCall, given: Given): Promise<ToolResult> {
  const { requester } = call.request;
  const { userId } = requester;
  const words = (textIn(given, 'query') ?? '').toLowerCase().split(/\s+/);
  const names = new Map((await call.tools()).map(({ action, tool }) => [action, tool.name]));
  const clients = await call.request.clients();
  const offers = offersOf(clients).filter(({ clientType, action: { name } }) =>
    core.actions.mayInvoke(requester, { userId, clientType, action: name }),
  );
  const found = [...Map.groupBy(offers, ({ action }) => action.name)]
    .map(([action, [offer]]) => ({ action, tool: names.get(action) ?? null, says: offer ? saysOf(offer) : '' }))
    .filter(({ action, says }) => words.every((word) => `${action} ${says}`.toLowerCase().includes(word)))
    .sort((a, b) => (a.action < b.action ? -1 : 1));
  return success({
    actions: found.slice(0, AGENT_FOUND_ACTIONS),
    ...(found.length > AGENT_FOUND_ACTIONS && { more: found.length - AGENT_FOUND_ACTIONS }),
    ...unseen(clients),
    ...(found.length === 0 && { advice: 'No action has all these words. list_clients shows who is connected.' }),
  });
}

function saysOf({ clientId, action: { summary, description } }: Offer): string {
  const text = [summary, description].filter((one) => one !== null).join(' ');
  return clientText(
    `From the client "${clientId}": ${text === '' ? 'no description.' : text}`,
    AGENT_DESCRIPTION_CHARS,
  );
}

async function describeAction({ core }: BuiltinParts, { request }: BuiltinCall, given: Given): Promise<ToolResult> {
  const [action, client] = [textIn(given, 'action'), textIn(given, 'client')];
  if (action === null) return missing('action');
  const { requester } = request;
  const { userId } = requester;
  const clients = client === null ? await request.clients() : await oneClient(core, userId, client);
  const offers = offersOf(clients).filter(
    ({ clientType, action: offered }) =>
      offered.name === action && core.actions.mayInvoke(requester, { userId, clientType, action }),
  );
  if (offers.length === 0) {
    return refusal('not_connected', `${noneOf(clients)} offers this action to you.`, 'find_actions shows the others.');
  }
  return success({
    action,
    clients: offers.slice(0, AGENT_DESCRIBED_CLIENTS).map(({ clientId, clientType, action: offered }) => ({
      client: clientId,
      client_type: clientType,
      says: clientText([offered.summary, offered.description].filter(Boolean).join(' '), 4 * AGENT_DESCRIPTION_CHARS),
      schema: offered.schema === null ? null : parsedJson(offered.schema),
      effects: offered.effects ?? null,
      guards: offered.guards ?? null,
    })),
    clients_in_all: offers.length,
    ...unseen(clients),
  });
}

/** Reads the connection of one client of the requester's user, if it is connected. */
async function oneClient(core: Core, userId: string, clientId: string): Promise<LiveClients> {
  const [connection = null] = isId(clientId) ? await core.connections.many([{ userId, clientId }]) : [];
  return { clients: isLive(connection, core.clock.now()) ? [connection] : [], more: false };
}

// Clients.

async function listClients({ core }: BuiltinParts, { request }: BuiltinCall): Promise<ToolResult> {
  const { requester } = request;
  const clients = await request.clients();
  const { userId } = requester;
  const { nodes, hasNextPage } = await core.contexts.list(requester, { userId }, { first: PAGE_MAX });
  const open = nodes.filter((context) => contextStatus(context) !== 'closed');
  const contexts = Map.groupBy(open, ({ clientId }) => clientId);
  return success({
    clients: clients.clients.map(({ clientId, clientType, actions }) => ({
      client: clientId,
      client_type: clientType,
      actions: actions.filter(({ name }) => core.actions.mayInvoke(requester, { userId, clientType, action: name }))
        .length,
      ...contextsShown(contexts.get(clientId) ?? []),
    })),
    ...unseen(clients),
    ...(hasNextPage && { more_contexts: true }),
  });
}

function contextsShown(contexts: readonly ExecutionContext[]): object {
  return {
    contexts: contexts.slice(0, AGENT_SHOWN_CONTEXTS).map((context) => ({
      context_id: context.contextId,
      status: contextStatus(context),
      title: context.title === null ? null : clientText(context.title, 200),
    })),
    ...(contexts.length > AGENT_SHOWN_CONTEXTS && { more_contexts: true }),
  };
}

// Commands.

/**
 * Returns the key of the command that a call names. Looks the id up if the call names no client. Null: no command was
 * found, or the commands of two clients have the id.
 */
async function keyOf({ core }: BuiltinParts, { request }: BuiltinCall, given: Given): Promise<CommandKey | null> {
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

async function readCommand(parts: BuiltinParts, call: BuiltinCall, given: Given, withinMs: number) {
  const key = await keyOf(parts, call, given);
  const found = key && (await parts.calls.await(call.request, key, withinMs));
  if (!key || !found || found.kind === 'refused') return null;
  // A token that is limited to some actions must not read the results of others.
  const { requester } = call.request;
  if (requester.actions !== undefined && found.kind === 'ended') return null;
  if (found.kind !== 'ended') {
    const { action, clientType } = found.command;
    if (!parts.core.actions.mayInvoke(requester, { userId: key.userId, clientType, action })) return null;
  }
  return { key, found };
}

async function getCommand(parts: BuiltinParts, call: BuiltinCall, given: Given): Promise<ToolResult> {
  const read = await readCommand(parts, call, given, 0);
  if (!read) return NO_COMMAND;
  const { key, found } = read;
  if (hasEnded(found)) call.request.tells(key);
  if (found.kind === 'ended') return success(caseOfMark(key, found.mark));
  const { command, result } = found;
  return success({ ...caseOf(command, result), ...(result !== null && { result: parsedJson(result) }) });
}

async function awaitCommand(parts: BuiltinParts, call: BuiltinCall, given: Given): Promise<ToolResult> {
  const within = given['within_ms'] ?? AGENT_WAIT_MS;
  if (typeof within !== 'number' || !Number.isInteger(within) || within < 0 || within > AGENT_WAIT_MS)
    return refusal('invalid_argument', `within_ms: expected 0 to ${AGENT_WAIT_MS}.`, 'Correct it.');
  const read = await readCommand(parts, call, given, within);
  if (!read) return NO_COMMAND;
  const { key, found } = read;
  if (hasEnded(found)) call.request.tells(key);
  return answerOf(found, { ...key, attachedTo: null, now: parts.core.clock.now(), names: NO_ARGUMENTS });
}

async function cancelCommand(parts: BuiltinParts, call: BuiltinCall, given: Given): Promise<ToolResult> {
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
