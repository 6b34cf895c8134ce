/** Registers the waits of this node in the store again, after the node or the store lost them. */
import { END_MESSAGES } from '../commands/end-messages.ts';
import { endedByMark, type Command } from '../commands/command.ts';
import type { JsonText } from '../json.ts';
import { commandTraceFields } from '../trace-context.ts';
import type { KnownWait, NodeWaits } from './correlator.ts';

/**
 * Registers the waits for commands of these users in the store again, because the store may have lost them. If the
 * command has since reached the stage that the caller waits for, the wait is resolved. If the store no longer knows a
 * command that it had recorded, the caller gets the outcome `outcome_unknown`. If the store had not recorded the
 * command, the caller gets an error. Never rejects. If a wait cannot be registered now, it ends at its command's
 * deadline.
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
 * Returns the end of a command that the store forgot: nobody knows whether it ran, or how far it came after it was last
 * seen.
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
