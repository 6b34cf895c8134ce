/** Chooses the client that runs an action for an agent. */
import type { UserPrincipal } from '../core/auth/principal.ts';
import { seenActions } from '../core/auth/sight.ts';
import { isLive, type Connection } from '../core/connections/connection.ts';
import { seenConnection } from '../core/connections/seen-clients.ts';
import type { Core } from '../core/core.ts';
import { isId } from '../core/ids.ts';
import { AGENT_CLIENTS, AGENT_SHOWN_CLIENTS, PAGE_MAX } from '../core/limits.ts';
import type { AgentRequest, AgentCall, ReadClients, LiveClients } from './agent-request.ts';
import { refusal, type ToolResult } from './results.ts';
import { passing } from './tool-arguments.ts';

/**
 * Reads the connections of the requester's user, up to AGENT_CLIENTS. `clients` has the connected ones as the
 * requester's token may see them. `rows` has all of them without the token's limits, because all tokens of the user
 * share one catalog, from which each agent gets the part that its token may see.
 */
export async function liveClients({ connections, clock }: Core, requester: UserPrincipal): Promise<ReadClients> {
  const found: Connection[] = [];
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<Core['connections']['list']>> = await connections.list(
      withAllActions(requester),
      { userId: requester.userId },
      { first: PAGE_MAX, after },
    );
    found.push(...page.nodes);
    after = page.hasNextPage ? page.cursors.end() : null;
  } while (after !== null && found.length < AGENT_CLIENTS);
  const now = clock.now();
  const live = found.filter((connection) => isLive(connection, now));
  const sight = seenActions(requester);
  const clients = sight.actions ? live.flatMap((row) => seenConnection(sight, row) ?? []) : live;
  return { clients, rows: found, more: after !== null };
}

/** Returns the principal without the limits of its token. Used for data that all tokens of the user share. */
export function withAllActions({ actions: _, ...user }: UserPrincipal): UserPrincipal {
  return user;
}

/**
 * The client that is to run an action, with what it advertises about the action. `harmless`: whether running it twice
 * is harmless. `asks`: whether a person approves each call.
 */
export type ChosenClient = { readonly clientId: string; readonly harmless: boolean; readonly asks: boolean };

export async function chooseClient(
  core: Core,
  request: AgentRequest,
  call: AgentCall,
): Promise<ChosenClient | { readonly refused: ToolResult }> {
  const { requester } = request;
  const { action, client, contextId, names } = call;
  const { userId } = requester;
  if (client !== null) {
    if (!isId(client))
      return {
        refused: refusal('invalid_argument', `${names.client ?? 'client'}: this is no id of a client.`, SEE_CLIENTS),
      };
    const [connection = null] = await core.connections.many(requester, [{ userId, clientId: client }]);
    return targetOf(client, connection, action);
  }
  const { clients, more } = await request.clients();
  const offering = clients.filter(
    ({ actions, clientType }) =>
      actions.some(({ name }) => name === action) && core.actions.mayInvoke(requester, { userId, clientType, action }),
  );
  const reporting =
    contextId === null || offering.length < 2 ? null : await having(core, request, { clients: offering, contextId });
  const [first, ...others] = reporting ?? offering;
  // If not all clients were examined, another one may offer the action too, so the choice is not clear.
  if (first && others.length === 0 && !more) return targetOf(first.clientId, first, action);
  if (offering.length === 0 && !more) return { refused: noClient(action) };
  const report = reporting && reporting.length > 0;
  return { refused: ambiguous(call, { clients: report ? reporting : offering, more, report }) };
}

export const SEE_CLIENTS = 'list_clients shows the clients and their contexts.';

/** Returns those of the clients that report this context. */
async function having(
  core: Core,
  { requester }: AgentRequest,
  { clients, contextId }: { readonly clients: readonly Connection[]; readonly contextId: string },
): Promise<readonly Connection[]> {
  if (!isId(contextId)) return [];
  const keys = clients.map(({ userId, clientId }) => ({ userId, clientId, contextId }));
  const rows = await core.contexts.many(requester, keys);
  return clients.filter((_, i) => rows[i] != null);
}

function targetOf(clientId: string, connection: Connection | null, action: string): ChosenClient {
  const { effects, guards } = connection?.actions.find(({ name }) => name === action) ?? {};
  const harmless = effects?.idempotent === true || effects?.readOnly === true;
  return { clientId, harmless, asks: guards?.approval === true };
}

/** Returns the beginning of a sentence that states that none of these clients offers something. */
export function noneOf({ more }: LiveClients): string {
  return more ? `None of the first ${AGENT_CLIENTS} clients` : 'No connected client';
}

function noClient(action: string): ToolResult {
  return refusal(
    'not_connected',
    `No connected client offers the action "${action}" to you.`,
    'Wait until a client is connected (list_clients), or find another action (find_actions).',
  );
}

/**
 * The clients that offer an action. `report`: whether these clients report the context that the call names; null: not
 * checked.
 */
type Candidates = LiveClients & { readonly report: boolean | null };

function ambiguous({ action, names }: AgentCall, { clients, more, report }: Candidates): ToolResult {
  const shown = clients
    .slice(0, AGENT_SHOWN_CLIENTS)
    .map(({ clientId, clientType }) => `"${clientId}" (${clientType})`);
  const others = clients.length > shown.length ? ` and ${clients.length - shown.length} more` : '';
  const list = shown.length === 0 ? '' : ` (${shown.join(', ')}${others})`;
  const that = report === true ? `"${action}" and report this context` : `"${action}"`;
  const says = [
    `Clients that offer the action ${that}: ${clients.length}${list}.`,
    ...(report === false ? ['None of them reports this context.'] : []),
    ...(more ? [`Only the first ${AGENT_CLIENTS} clients of the user were searched.`] : []),
  ];
  return refusal('ambiguous_client', says.join(' '), `To choose a client, ${passing(names, 'client')}. ${SEE_CLIENTS}`);
}
