/** Handles the earlier link of a client, and the commands on it, when a new link replaces it. */
import type { ConnectResult } from '../connections/store.ts';
import type { Deps } from '../deps.ts';
import { REPLACED_GRACE_MS } from '../limits.ts';
import type { DeliveryActs } from './acts.ts';
import type { Command } from './command.ts';
import { isLeavingHere, leavingElsewhere, type LeavingParts } from './leaving.ts';
import { commandTraceFields } from '../trace-context.ts';

type Parts = LeavingParts & { readonly acts: DeliveryActs };

/** If the client's earlier link is on another node, asks that node to close it. */
export function kickElsewhere({ deps }: { readonly deps: Deps }, { previous, connection }: ConnectResult): void {
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
export function giveUpLater(parts: Parts, orphaned: readonly Command[]): void {
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
