/** Implements the built-in tools that find, describe, check and call actions. */
import type { UserPrincipal } from '../core/auth/principal.ts';
import { isLive, type ActionAdvertisement, type Connection } from '../core/connections/connection.ts';
import type { Core } from '../core/core.ts';
import { isId, isName } from '../core/ids.ts';
import { isRecord, parsedJson, type JsonText } from '../core/json.ts';
import {
  AGENT_CLIENTS,
  AGENT_DESCRIBED_CLIENTS,
  AGENT_DESCRIPTION_CHARS,
  AGENT_FOUND_ACTIONS,
  AGENT_QUERY_CHARS,
  AGENT_QUERY_WORDS,
  AGENT_RESULT_CHARS,
} from '../core/limits.ts';
import { visibleLine } from '../protocol/visible-text.ts';
import { textIn, missing, type ToolServices, type BuiltinCall, type ToolArguments } from './builtin-call.ts';
import type { AgentCall, AgentRequest, LiveClients } from './agent-request.ts';
import type { Allowed, Catalog } from './catalog.ts';
import { SEE_CLIENTS, noneOf } from './choose-client.ts';
import { clientText } from './client-text.ts';
import { refusal, success, type ToolResult } from './results.ts';
import { IN_PARAMS, splitArguments, type ArgumentNames } from './tool-arguments.ts';
import { readingText } from './turn.ts';

export async function callAction(
  _parts: ToolServices,
  { args, request }: BuiltinCall,
  given: ToolArguments,
  run: (request: AgentRequest, call: AgentCall) => Promise<ToolResult>,
): Promise<ToolResult> {
  const action = textIn(given, 'action');
  if (action === null || !isName(action)) return missing('action');
  const split = await readingText(request.turn, args, () => splitArguments(args, IN_PARAMS));
  if (!split) return refusal('invalid_argument', 'The arguments are no object.', 'Correct them.');
  // Takes another turn for a large text, because `run` reads the params once more.
  await readingText(request.turn, args, () => {});
  return run(request, actionCall(action, split, IN_PARAMS.names));
}

/**
 * Builds the call of an action from the split arguments of a tool. `names`: the tool's names for the relay's own
 * arguments. Values of a wrong type are passed on, and core refuses them.
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

export async function preflight({ core }: ToolServices, call: BuiltinCall, toCall: AgentCall): Promise<ToolResult> {
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

/** Returns the members that tell an agent that some clients of the user were not examined; none if all were. */
export function unseen({ more }: LiveClients): object {
  if (!more) return {};
  return {
    more_clients: true,
    note: `The user has more clients; only the first ${AGENT_CLIENTS} were looked at. A call may name any client by its id.`,
  };
}

/** Finds actions that connected clients offer now, including those for which the list of tools had no room. */
export async function findActions(
  { core }: ToolServices,
  call: BuiltinCall,
  given: ToolArguments,
): Promise<ToolResult> {
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

export function allowedTo(core: Core, { requester }: AgentRequest): Allowed {
  const { userId } = requester;
  return (action, clientType) => core.actions.mayInvoke(requester, { userId, clientType, action });
}

export async function describeAction(
  parts: ToolServices,
  call: BuiltinCall,
  given: ToolArguments,
): Promise<ToolResult> {
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

/** A client that advertises the action in question. */
type Offer = Pick<Connection, 'clientId' | 'clientType'> & { readonly action: ActionAdvertisement };

/** Returns the clients that offer an action which the requester may invoke on them. */
function offersOf({ clients }: LiveClients, name: string, allowed: Allowed): readonly Offer[] {
  return clients.flatMap(({ clientId, clientType, actions }) => {
    const action = actions.find((one) => one.name === name);
    return action && allowed(name, clientType) ? [{ clientId, clientType, action }] : [];
  });
}

/** Describes an action as one client advertises it. `shows`: whether the answer has room for the schema. */
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

/** Returns a JSON value in which the hidden characters of all texts and names are made visible. */
function visibleTexts(value: unknown): unknown {
  if (typeof value === 'string') return visibleLine(value);
  if (Array.isArray(value)) return value.map(visibleTexts);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [visibleLine(name), visibleTexts(member)]));
}

/** Reads the connection of one client of the requester's user. The result is empty if the client is not connected. */
async function oneClient(core: Core, requester: UserPrincipal, clientId: string): Promise<LiveClients> {
  const { userId } = requester;
  const [connection = null] = isId(clientId) ? await core.connections.many(requester, [{ userId, clientId }]) : [];
  return { clients: isLive(connection, core.clock.now()) ? [connection] : [], more: false };
}
