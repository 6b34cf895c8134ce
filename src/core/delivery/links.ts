import { requireUser } from '../auth/principal.ts';
import type { ConnectionChange } from '../bus.ts';
import type { Connection, DisconnectCause } from '../connections/connection.ts';
import type { ConnectResult } from '../connections/store.ts';
import type { Links } from '../core.ts';
import type { Deps } from '../deps.ts';
import { fail, isAway } from '../errors.ts';
import { clientKeyText, commandKeyText, id, type ClientKey, type CommandKey } from '../ids.ts';
import { utf8Length, type JsonText } from '../json.ts';
import { andThen, orElse, type Maybe } from '../maybe.ts';
import { REPLACED_GRACE_MS } from '../limits.ts';
import type { DeliveryActs } from './acts.ts';
import type { Command } from './command.ts';
import type { FinishResult } from './commands.ts';
import type { Dispatcher, Outlet } from './dispatcher.ts';
import type { LinkSession } from './link.ts';
import { ENTRY_BYTES, type Outbox } from './outbox.ts';

export type LinkParts = {
  readonly deps: Deps;
  readonly dispatcher: Dispatcher;
  readonly acts: DeliveryActs;
  readonly outbox: Outbox;
  readonly isDraining: () => boolean;
};

/** Binds clients to links. Of one client one link is bound at a time: the newest. */
export function createLinks(parts: LinkParts): Links {
  const { deps, dispatcher } = parts;
  const { connections, commands } = deps.backend;
  return {
    async open(who, hello, link) {
      if (parts.isDraining()) fail('draining', 'This node takes no new links.');
      const { userId, scopes } = requireUser(who, 'connect');
      const client: ClientKey = { userId, clientId: id('client_id', hello.clientId) };
      const { clientType, metadata, actions } = hello;
      const instanceId = id('instance_id', hello.instanceId);
      const result = await connections.connect({
        ...client,
        instanceId,
        nodeId: deps.nodeId,
        clientType,
        host: scopes.has('host'),
        metadata,
        actions,
      });
      const { connection } = result;
      const binding = { nodeId: deps.nodeId, instanceId, epoch: connection.epoch };
      const { outlet, previous } = dispatcher.attach(client, binding, link);
      previous?.link.close('replaced', instanceId);
      if (!previous) kickElsewhere(parts, result);
      const { requeued, unfinished, orphaned } = await commands.rebind(client, binding, 'up');
      for (let i = 0; i < requeued; i++) deps.metrics.count('commands_recovered');
      for (const command of unfinished) outlet.window.add(commandKeyText(command));
      giveUpLater(parts, orphaned);
      deps.metrics.count('links_opened', 'client');
      publish(deps, result.kind, connection, null);
      return createSession(parts, { outlet, result, unfinished });
    },
  };
}

type Opened = { readonly outlet: Outlet; readonly result: ConnectResult; readonly unfinished: readonly Command[] };

function createSession(parts: LinkParts, { outlet, result, unfinished }: Opened): LinkSession {
  const { deps, dispatcher, acts } = parts;
  const { connections, contexts, commands } = deps.backend;
  const { client, binding } = outlet;
  const { instanceId, epoch } = binding;
  const { userId, clientId } = client;
  const keyOf = (commandId: string): CommandKey => ({ userId, clientId, commandId: id('command_id', commandId) });
  let open = true;
  return {
    result,
    unfinished,
    begin() {
      if (parts.isDraining()) return outlet.link.close('node_drained', null);
      outlet.open = true;
      for (const { cancelRequestedAt, commandId } of unfinished)
        if (cancelRequestedAt !== null) outlet.link.sendCancel(commandId, null);
      dispatcher.pump(outlet);
    },
    ack: (commandId) => acts.report(keyOf(commandId), { instanceId, kind: 'ack', payload: null }),
    progress: (commandId, payload) => acts.report(keyOf(commandId), { instanceId, kind: 'progress', payload }),
    end(commandId, end) {
      const key = keyOf(commandId);
      const run = (): Maybe<FinishResult> => acts.finish(key, { ...end, instanceId });
      return andThen(orKeep(parts.outbox, key, { end, run }), (finished) => {
        dispatcher.free(key);
        return finished;
      });
    },
    async advertise(actions) {
      const connection = await connections.advertise(client, epoch, actions);
      if (connection) publish(deps, 'actions_changed', connection, null);
      return connection;
    },
    async report(report) {
      const outcome = await contexts.report(client, epoch, report);
      deps.metrics.count('context_reports', outcome);
      return outcome;
    },
    async alive() {
      return (await connections.touch(client, epoch)) !== null;
    },
    drained: () => dispatcher.pump(outlet),
    async closed(cause) {
      if (!open) return;
      open = false;
      dispatcher.detach(outlet);
      deps.metrics.count('links_closed', cause);
      const run = async (): Promise<void> => {
        const connection = await connections.disconnect(client, epoch, cause);
        // A newer link of the client is bound: nothing of it is touched.
        if (!connection || dispatcher.find(client)) return;
        await commands.rebind(client, binding, 'down');
        publish(deps, 'disconnected', connection, cause);
      };
      await parts.outbox.take({ lane: `${clientKeyText(client)} ${epoch}`, bytes: ENTRY_BYTES, run });
    },
  };
}

type Ending = { readonly end: { readonly payload: JsonText | null }; readonly run: () => Maybe<FinishResult> };

/** In the same tick where the store answers so and nothing is kept for it; else the outbox brings it. */
function orKeep(outbox: Outbox, key: CommandKey, { end: { payload }, run }: Ending): Maybe<FinishResult> {
  const keep = (): Promise<FinishResult> => {
    const bytes = ENTRY_BYTES + (payload === null ? 0 : utf8Length(payload));
    return outbox.take({ lane: commandKeyText(key), bytes, run: async () => run() });
  };
  if (outbox.size > 0) return keep();
  return orElse(run, (error) => {
    if (isAway(error)) return keep();
    throw error;
  });
}

function kickElsewhere({ deps }: LinkParts, { previous, connection }: ConnectResult): void {
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
    deps.log.warn({ err: error }, 'the node of the replaced link was not told'),
  );
}

/** Results of the old instance may still arrive over a socket that is closing; after the grace nothing more will. */
function giveUpLater({ deps, acts }: LinkParts, orphaned: readonly Command[]): void {
  for (const { userId, clientId, commandId, boundInstanceId } of orphaned) {
    deps.clock.after(REPLACED_GRACE_MS, () => {
      const settlement = { kind: 'give_up', code: 'instance_replaced', instanceId: boundInstanceId } as const;
      acts.settle({ userId, clientId, commandId }, settlement).catch((error: unknown) => {
        deps.log.warn({ err: error }, 'a command of a replaced instance is left to its deadline');
      });
    });
  }
}

function publish(
  { backend, clock }: Deps,
  change: ConnectionChange,
  connection: Connection,
  cause: DisconnectCause | null,
): void {
  backend.bus.publish('connections', { change, connection, cause, at: clock.now() });
}
