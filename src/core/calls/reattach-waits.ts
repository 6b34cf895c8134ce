/** Registers the waits of this node again after the node or its store lost them. */
import { END_MESSAGES } from '../commands/end-messages.ts';
import { endedByMark, type Command } from '../commands/command.ts';
import type { JsonText } from '../json.ts';
import { commandTraceFields } from '../trace-context.ts';
import type { KnownWait, NodeWaits } from './correlator.ts';

/**
 * Registers the waits of this node's callers for the commands of these users again, because the store may have lost
 * them. A wait whose stage has been reached since is resolved. If the store no longer knows the command, the caller is
 * answered that its outcome is unknown, and refused if the store had not recorded it. Never rejects: a wait that cannot
 * be registered now ends at the deadline of its command.
 */
export async function reattachWaits(parts: NodeWaits, concerns: (userId: string) => boolean): Promise<void> {
  const waits = parts.correlator.known().filter(({ command }) => concerns(command.userId));
  await Promise.all(
    waits.map((wait) =>
      reattach(parts, wait).catch((error: unknown) => {
        const fields = { err: error, ...commandTraceFields(wait.command) };
        parts.deps.log.warn(fields, 'could not register a wait again; it ends at the deadline of its command');
      }),
    ),
  );
}

async function reattach({ deps, correlator }: NodeWaits, wait: KnownWait): Promise<void> {
  const { rpcId, command, isRecorded, caller, waitFor, until } = wait;
  const now = deps.clock.now();
  const withinMs = until === null ? null : Math.max(0, until - now);
  const waiter = { rpcId, caller, callerNodeId: deps.nodeId, waitFor, withinMs };
  const attached = await deps.backend.waiters.attach(command, waiter);
  const end = (present: Command, result: JsonText | null = null): void =>
    correlator.resolve({ rpcId, command: present, result });
  if (attached.kind === 'satisfied') end(attached.command, attached.result);
  if (attached.kind === 'ended') end(endedByMark(command, attached.mark));
  if (attached.kind === 'waiting') correlator.found(rpcId);
  if (attached.kind !== 'unknown') return;
  if (isRecorded) end(forgotten(command, now));
  else correlator.refuse(rpcId);
}

/**
 * Returns the end of a command that the store forgot. It is unknown how far the command came after it was last seen,
 * and whether it ran.
 */
function forgotten(command: Command, now: number): Command {
  return {
    ...command,
    version: command.version + 1,
    stage: 'terminal',
    outcome: 'outcome_unknown',
    execution: 'may_have_run',
    error: { code: 'store_lost', message: END_MESSAGES.store_lost ?? 'store_lost' },
    reason: 'store_lost',
    terminalAt: now,
  };
}
