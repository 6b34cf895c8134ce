/** Binds clients to their links: opening, signs of life, reports and closing. */
import { requireUser } from '../auth/principal.ts';
import type { ConnectResult } from '../connections/store.ts';
import type { Links } from '../core.ts';
import { fail } from '../errors.ts';
import { id, type ClientKey } from '../ids.ts';
import { Advertised } from './advertised.ts';
import type { ClientLink, LinkSession } from './link.ts';
import { answerLeaving } from './leaving.ts';
import { linkOpened } from './link-events.ts';
import { ClientSession, type LinkParts, type SessionParts } from './link-session.ts';
import { beginResumeSpans } from './link-spans.ts';
import { giveUpLater, kickElsewhere } from './replaced.ts';

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
