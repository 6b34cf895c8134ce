/** The tools that every agent is offered, whatever is connected: their schemas, and what they answer. */
import type { UserPrincipal } from '../core/auth/principal.ts';
import { isLive, type ActionAdvertisement, type Connection } from '../core/connections/connection.ts';
import { contextStatus, type ExecutionContext } from '../core/contexts/context.ts';
import type { Core } from '../core/core.ts';
import { isId, isName, type CommandKey } from '../core/ids.ts';
import { isRecord, parsedJson, readShaped, type JsonText, type ObjectShape } from '../core/json.ts';
import {
  AGENT_CLIENTS,
  AGENT_DESCRIBED_CLIENTS,
  AGENT_DESCRIPTION_CHARS,
  AGENT_FOUND_ACTIONS,
  AGENT_MESSAGE_PARTS,
  AGENT_QUERY_CHARS,
  AGENT_QUERY_WORDS,
  AGENT_RESULT_CHARS,
  AGENT_SHOWN_CONTEXTS,
  AGENT_WAIT_MS,
  MAX_REASON,
  PAGE_MAX,
} from '../core/limits.ts';
import { visibleLine } from '../protocol/visible-text.ts';
import { SEE_CLIENTS, noneOf, type LiveClients } from './choose-client.ts';
import { hasEnded, type AgentCall, type AgentRequest, type Calls } from './calls.ts';
import type { Allowed, Catalog, Shown } from './catalog.ts';
import {
  answerOf,
  caseOf,
  caseOfMark,
  failure,
  isPartial,
  partOfResult,
  refusal,
  refusedArguments,
  success,
  type ToolResult,
} from './results.ts';
import { clientText } from './client-text.ts';
import {
  ARGUMENT_SCHEMAS,
  IN_PARAMS,
  NO_ARGUMENTS,
  splitArguments,
  unknownArguments,
  type ArgumentNames,
} from './tool-arguments.ts';
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

/** Each of the built-in tools as JSON. */
export const BUILTIN_TEXTS = BUILTIN_TOOLS.map((tool) => JSON.stringify(tool));

export const BUILTIN_NAMES: ReadonlySet<string> = new Set(BUILTIN_TOOLS.map(({ name }) => name));

const TOOLS: ReadonlyMap<string, Tool> = new Map(BUILTIN_TOOLS.map((tool) => [tool.name, tool]));

/** What the built-in tools work with. */
export type BuiltinParts = { readonly core: Core; readonly calls: Calls };

/** A call of a built-in tool. `tools`: what the requester is shown of the catalog of its user. */
export type BuiltinCall = {
  readonly name: string;
  readonly args: JsonText | null;
  readonly request: AgentRequest;
  readonly catalog: () => Promise<Catalog>;
  readonly tools: () => Promise<Shown>;
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
  preflight: (parts, call, given) => callAction(parts, call, given, (_request, asked) => preflight(parts, call, asked)),
};

/** Runs a built-in tool. Null: there is none of this name. */
export async function runBuiltin(parts: BuiltinParts, call: BuiltinCall): Promise<ToolResult | null> {
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

/** Reads the arguments besides the params of an action. Null: they are too many, too deep, or no object. */
function readArguments(args: JsonText): Given | null {
  const read = readShaped(args, ARGUMENTS, AGENT_MESSAGE_PARTS);
  return typeof read === 'object' && isRecord(read.value) ? read.value : null;
}

/** Refuses arguments that the tool does not take, and those that should be texts. The rest is checked where it is used. */
function wrongArguments(tool: Tool, args: JsonText | null, given: Given): ToolResult | null {
  const unknown = unknownArguments(args, tool.inputSchema);
  if (unknown.length > 0) return refusedArguments(tool, unknown);
  const properties = tool.inputSchema['properties'] as Readonly<Record<string, { readonly type: string }>>;
  const wrong = Object.keys(given).find((name) => isNoText(given[name]) && properties[name]?.type === 'string');
  return wrong === undefined ? null : refusal('invalid_argument', `${wrong}: expected a text.`, 'Correct it.');
}

/** Null and an empty text count as an absent argument, because models write them for one. */
function isNoText(value: unknown): boolean {
  return value !== null && typeof value !== 'string';
}

function textIn(given: Given, name: string): string | null {
  const value = given[name];
  return typeof value === 'string' && value !== '' ? value : null;
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
  const split = await readingText(request.turn, args, () => splitArguments(args, IN_PARAMS));
  if (!split) return refusal('invalid_argument', 'The arguments are no object.', 'Correct them.');
  // What follows reads the params again.
  await readingText(request.turn, args, () => {});
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
    return value === null || value === '' ? null : String(value);
  };
  const given = own.respond_within_ms === undefined ? null : parsedJson(own.respond_within_ms);
  const within = given === '' ? null : given;
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

async function preflight({ core }: BuiltinParts, call: BuiltinCall, toCall: AgentCall): Promise<ToolResult> {
  const { action, client, contextId, params, respondWithinMs } = toCall;
  const { requester } = call.request;
  if (client === null) return missing('client');
  if (!isId(client)) return refusal('invalid_argument', 'client: this is no id of a client.', SEE_CLIENTS);
  const asked = { userId: requester.userId, clientId: client, action, params, contextId, respondWithinMs };
  const { wouldAdmit, firstRefusal, layers } = await core.rpc.preflight(requester, asked);
  const [offer] = offersOf(await oneClient(core, requester, client), action, allowedTo(core, call.request));
  const why = offer ? (await call.catalog()).whyOpen(offer.action) : null;
  return success({
    would_admit: wouldAdmit,
    first_refusal: firstRefusal && {
      layer: firstRefusal.layer,
      code: firstRefusal.code,
      message: firstRefusal.message,
    },
    layers: layers.map(({ layer, verdict, code, message }) => ({ layer, verdict, code, message })),
    ...(why !== null && { listed_open: why }),
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

/** Finds actions among those that are offered now, also those for which there was no room in the list of tools. */
async function findActions({ core }: BuiltinParts, call: BuiltinCall, given: Given): Promise<ToolResult> {
  const query = textIn(given, 'query') ?? '';
  const words = [...new Set(query.toLowerCase().split(/\s+/))].filter((word) => word !== '');
  if (query.length > AGENT_QUERY_CHARS || words.length > AGENT_QUERY_WORDS) {
    const most = `at most ${AGENT_QUERY_WORDS} words, in ${AGENT_QUERY_CHARS} characters`;
    return refusal('invalid_argument', `query: expected ${most}.`, 'Use fewer words.');
  }
  const { request } = call;
  const [catalog, shown, clients] = [await call.catalog(), await call.tools(), await request.clients()];
  const steps = catalog.find(words, shown, allowedTo(core, request));
  let step = await request.turn(() => steps.next());
  while (!step.done) step = await request.turn(() => steps.next());
  const found = step.value;
  return success({
    actions: found.slice(0, AGENT_FOUND_ACTIONS),
    ...(found.length > AGENT_FOUND_ACTIONS && { more: found.length - AGENT_FOUND_ACTIONS }),
    ...(catalog.more && { more_actions: true }),
    ...unseen(clients),
    ...(found.length === 0 && { advice: 'No action has all these words. list_clients shows who is connected.' }),
  });
}

function allowedTo(core: Core, { requester }: AgentRequest): Allowed {
  const { userId } = requester;
  return (action, clientType) => core.actions.mayInvoke(requester, { userId, clientType, action });
}

async function describeAction(parts: BuiltinParts, call: BuiltinCall, given: Given): Promise<ToolResult> {
  const { core } = parts;
  const { request } = call;
  const [action, client] = [textIn(given, 'action'), textIn(given, 'client')];
  if (action === null || !isName(action)) return missing('action');
  const clients = client === null ? await request.clients() : await oneClient(core, request.requester, client);
  const offers = offersOf(clients, action, allowedTo(core, request));
  if (offers.length === 0) {
    return refusal('not_connected', `${noneOf(clients)} offers this action to you.`, 'find_actions shows the others.');
  }
  const catalog = await call.catalog();
  const described: object[] = [];
  let left = AGENT_RESULT_CHARS;
  for (const offer of offers.slice(0, AGENT_DESCRIBED_CLIENTS)) {
    const { schema } = offer.action;
    const shows = schema !== null && schema.length <= left;
    left -= shows ? schema.length : 0;
    described.push(await request.turn(() => describedOf(offer, catalog, shows)));
  }
  return success({ action, clients: described, clients_in_all: offers.length, ...unseen(clients) });
}

/** One client that advertises one action. */
type Offer = Pick<Connection, 'clientId' | 'clientType'> & { readonly action: ActionAdvertisement };

/** Returns the clients that offer an action to the requester. */
function offersOf({ clients }: LiveClients, name: string, allowed: Allowed): readonly Offer[] {
  return clients.flatMap(({ clientId, clientType, actions }) => {
    const action = actions.find((one) => one.name === name);
    return action && allowed(name, clientType) ? [{ clientId, clientType, action }] : [];
  });
}

/** Says what a client advertises. `shows`: whether the answer has room for its schema. */
function describedOf({ clientId, clientType, action }: Offer, catalog: Catalog, shows: boolean): object {
  const { summary, description, schema, effects, guards } = action;
  const why = catalog.whyOpen(action);
  return {
    client: clientId,
    client_type: clientType,
    says: clientText([summary, description].filter(Boolean).join(' '), 4 * AGENT_DESCRIPTION_CHARS),
    schema: schema === null || !shows ? null : visibleTexts(parsedJson(schema)),
    ...(schema !== null && !shows && { schema_left_out: 'Pass client to see this schema.' }),
    ...(why !== null && { listed_open: why }),
    effects: effects ?? null,
    guards: guards ?? null,
  };
}

/** Returns a JSON value whose texts and names show their hidden characters. */
function visibleTexts(value: unknown): unknown {
  if (typeof value === 'string') return visibleLine(value);
  if (Array.isArray(value)) return value.map(visibleTexts);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [visibleLine(name), visibleTexts(member)]));
}

/** Reads the connection of one client of the requester's user, if it is connected. */
async function oneClient(core: Core, requester: UserPrincipal, clientId: string): Promise<LiveClients> {
  const { userId } = requester;
  const [connection = null] = isId(clientId) ? await core.connections.many(requester, [{ userId, clientId }]) : [];
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
  const allowed = allowedTo(core, request);
  const shown: object[] = [];
  for (const some of inParts(clients.clients)) {
    const show = (): readonly object[] =>
      some.flatMap(({ clientId, clientType, actions }) => {
        const count = actions.filter(({ name }) => allowed(name, clientType)).length;
        // A token that is limited to some actions must not read the contexts of clients that have none of them.
        if (count === 0 && requester.actions !== undefined) return [];
        const own = contextsShown(contexts.get(clientId) ?? []);
        return [{ client: clientId, client_type: clientType, actions: count, ...own }];
      });
    shown.push(...(await request.turn(show)));
  }
  return success({ clients: shown, ...unseen(clients), ...(hasNextPage && { more_contexts: true }) });
}

/** Splits clients into parts with a bounded number of actions. */
function inParts(clients: readonly Connection[]): readonly (readonly Connection[])[] {
  const parts: Connection[][] = [];
  let room = 0;
  for (const client of clients) {
    if (room <= 0) {
      parts.push([]);
      room = PART_ACTIONS;
    }
    parts.at(-1)?.push(client);
    room -= 1 + client.actions.length;
  }
  return parts;
}

const PART_ACTIONS = 5_000;

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
  const { requester } = call.request;
  if (found.kind !== 'ended') {
    const { action, clientType } = found.command;
    if (!parts.core.actions.mayInvoke(requester, { userId: key.userId, clientType, action })) return null;
  }
  return { key, found };
}

async function getCommand(parts: BuiltinParts, call: BuiltinCall, given: Given): Promise<ToolResult> {
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

async function awaitCommand(parts: BuiltinParts, call: BuiltinCall, given: Given): Promise<ToolResult> {
  const within = given['within_ms'] ?? AGENT_WAIT_MS;
  if (typeof within !== 'number' || !Number.isInteger(within) || within < 0 || within > AGENT_WAIT_MS)
    return refusal('invalid_argument', `within_ms: expected 0 to ${AGENT_WAIT_MS}.`, 'Correct it.');
  const read = await readCommand(parts, call, given, within);
  if (!read) return NO_COMMAND;
  const { key, found } = read;
  if (hasEnded(found)) call.request.call.tells(key);
  return answerOf(found, { ...key, attachedTo: null, long: null, now: parts.core.clock.now(), names: NO_ARGUMENTS });
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
