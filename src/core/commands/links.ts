/** Binds clients to their links: opening, signs of life, reports and closing. */
import { requireUser } from '../auth/principal.ts';
import type { ConnectResult } from '../connections/connection.ts';
import type { Deps } from '../deps.ts';
import { fail } from '../errors.ts';
import { id, type ClientKey } from '../ids.ts';
import { REPLACED_GRACE_MS } from '../limits.ts';
import { commandTraceFields } from '../trace-context.ts';
import type { DeliveryActs } from './acts.ts';
import { Advertised } from './advertised.ts';
import type { Command } from './command.ts';
import type { ClientLink, LinkSession, Links } from './link-queues.ts';
import { ClientSession, linkOpened, type LinkParts, type SessionParts } from './link-session.ts';
import { answerLeaving, isLeavingHere, leavingElsewhere, type LeavingParts } from './nodes.ts';
import { beginResumeSpans } from './spans.ts';

/** Creates the object that binds clients to links. At most one link of a client is bound at a time: the newest. */
export function createLinks(given: LinkParts): Links {
  const { deps } = given;
  const { connections } = deps.backend;
  const advertised = new Advertised(deps);
  const parts = { ...given, advertised };
  answerLeaving(given);
  return {
    async open(requester, hello, link) {
      if (parts.isDraining()) fail('draining', 'This node takes no new links.');
      const { userId, scopes } = requireUser(requester, 'connect');
      const client: ClientKey = { userId, clientId: id('client_id', hello.clientId) };
      const { clientType, metadata, actions } = hello;
      const instanceId = id('instance_id', hello.instanceId);
      const result = await advertised.open(client, hello, () =>
        connections.connect({
          ...client,
          instanceId,
          nodeId: deps.nodeId,
          clientType,
          host: scopes.has('host'),
          metadata,
          actions,
        }),
      );
      try {
        return await bind(parts, client, { result, link });
      } catch (error) {
        advertised.closed(client);
        throw error;
      }
    },
  };
}

/** Assigns the client's commands to its new link. */
async function bind(
  parts: SessionParts,
  client: ClientKey,
  { result, link }: { readonly result: ConnectResult; readonly link: ClientLink },
): Promise<LinkSession> {
  const { deps, dispatcher } = parts;
  const { connection } = result;
  const { instanceId, epoch } = connection;
  const binding = { nodeId: deps.nodeId, instanceId, epoch };
  const { linkQueue, previous } = dispatcher.attach(client, binding, link);
  previous?.link.close('replaced', instanceId);
  if (!previous) kickElsewhere(parts, result);
  const { requeued, unfinished, orphaned } = await deps.backend.commands.rebind(client, binding, 'up');
  for (let i = 0; i < requeued; i++) deps.metrics.count('commands_recovered');
  for (const command of unfinished) linkQueue.window.add(command.commandId);
  beginResumeSpans(deps, linkQueue, unfinished);
  giveUpLater(parts, orphaned);
  linkOpened(deps, result);
  return new ClientSession(parts, { linkQueue, result, unfinished });
}

// Handles the earlier link of a client, and the commands on it, when a new link replaces it.

type Parts = LeavingParts & { readonly acts: DeliveryActs };

/** If the client's earlier link is on another node, asks that node to close it. */
function kickElsewhere({ deps }: { readonly deps: Deps }, { previous, connection }: ConnectResult): void {
  if (!previous || previous.disconnectedAt !== null || previous.nodeId === deps.nodeId) return;
  const { userId, clientId, instanceId } = connection;
  const row = {
    kind: 'kick',
    client: { userId, clientId },
    epoch: previous.epoch,
    cause: 'replaced',
    instanceId,
  } as const;
  void Promise.resolve(deps.backend.nodes.post(previous.nodeId, row)).catch((error: unknown) =>
    deps.log.warn({ err: error }, 'could not ask the node of the replaced link to close it'),
  );
}

/**
 * Gives up commands of a replaced instance after the grace period. Until then its results may still arrive over the
 * closing socket. A command that still runs on a leaving link, on this node or on another one, gets another grace
 * period.
 */
function giveUpLater(parts: Parts, orphaned: readonly Command[]): void {
  if (orphaned.length === 0) return;
  parts.deps.clock.after(REPLACED_GRACE_MS, () => {
    const { here = [], elsewhere = [], gone = [] } = Object.groupBy(orphaned, (command) => placeOf(parts, command));
    giveUp(parts, gone);
    giveUpLater(parts, here);
    if (elsewhere.length > 0) void giveUpUnlessLeaving(parts, elsewhere);
  });
}

/** Returns where a command may still run on a leaving link: on this node, on another node, or nowhere. */
function placeOf(parts: Parts, command: Command): 'here' | 'elsewhere' | 'gone' {
  if (isLeavingHere(parts, command)) return 'here';
  return command.nodeId === null || command.nodeId === parts.deps.nodeId ? 'gone' : 'elsewhere';
}

async function giveUpUnlessLeaving(parts: Parts, orphaned: readonly Command[]): Promise<void> {
  const leaving = await leavingElsewhere(parts, orphaned);
  giveUp(
    parts,
    orphaned.filter((command) => !leaving.includes(command)),
  );
  giveUpLater(parts, leaving);
}

function giveUp({ deps, acts }: Pick<Parts, 'deps' | 'acts'>, commands: readonly Command[]): void {
  for (const command of commands) {
    const { userId, clientId, commandId, boundInstanceId } = command;
    const settlement = { kind: 'give_up', code: 'instance_replaced', instanceId: boundInstanceId } as const;
    acts.settle({ userId, clientId, commandId }, settlement).catch((error: unknown) => {
      const fields = { err: error, ...commandTraceFields(command) };
      deps.log.warn(fields, 'could not settle a command of a replaced instance; it ends at its deadline');
    });
  }
}
