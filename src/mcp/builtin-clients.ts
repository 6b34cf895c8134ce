/** Implements the built-in tool that lists clients. */
import type { Connection } from '../core/connections/connection.ts';
import { contextStatus, type ExecutionContext } from '../core/contexts/context.ts';
import { AGENT_SHOWN_CONTEXTS, PAGE_MAX } from '../core/limits.ts';
import { allowedTo, unseen } from './builtin-actions.ts';
import type { ToolServices, BuiltinCall } from './builtin-call.ts';
import { clientText } from './client-text.ts';
import { success, type ToolResult } from './results.ts';

export async function listClients({ core }: ToolServices, { request }: BuiltinCall): Promise<ToolResult> {
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
        // A token that is limited to some actions must not read the contexts of a client that has none of those
        // actions.
        if (count === 0 && requester.actions !== undefined) return [];
        const own = contextsShown(contexts.get(clientId) ?? []);
        return [{ client: clientId, client_type: clientType, actions: count, ...own }];
      });
    shown.push(...(await request.turn(show)));
  }
  return success({ clients: shown, ...unseen(clients), ...(hasNextPage && { more_contexts: true }) });
}

/** Splits clients into groups with a limited number of actions each. */
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
