/** Handles the earlier link of a client, and the commands on it, when a new link replaces it. */
import type { ConnectResult } from '../connections/store.ts';
import type { Deps } from '../deps.ts';
import { REPLACED_GRACE_MS } from '../limits.ts';
import type { DeliveryActs } from './acts.ts';
import type { Command } from './command.ts';
import type { Dispatcher } from './dispatcher.ts';
import { commandTraceFields } from '../trace-context.ts';

type Parts = { readonly deps: Deps; readonly acts: DeliveryActs; readonly dispatcher: Dispatcher };

/** If the client's earlier link is on another node, asks that node to close it. */
export function kickElsewhere({ deps }: Pick<Parts, 'deps'>, { previous, connection }: ConnectResult): void {
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
 * closing socket. While the old client is leaving in good order over a link of this node, the grace period is renewed.
 */
export function giveUpLater({ deps, acts, dispatcher }: Parts, orphaned: readonly Command[]): void {
  for (const command of orphaned) {
    const { userId, clientId, commandId, boundInstanceId } = command;
    const key = { userId, clientId, commandId };
    const giveUp = (): void => {
      if (dispatcher.isLeaving(key)) return void deps.clock.after(REPLACED_GRACE_MS, giveUp);
      const settlement = { kind: 'give_up', code: 'instance_replaced', instanceId: boundInstanceId } as const;
      acts.settle(key, settlement).catch((error: unknown) => {
        const fields = { err: error, ...commandTraceFields(command) };
        deps.log.warn(fields, 'could not settle a command of a replaced instance; it ends at its deadline');
      });
    };
    deps.clock.after(REPLACED_GRACE_MS, giveUp);
  }
}
