/** Registers the waits of this node again after the node or its store lost them. */
import { endedByMark, type Command } from '../delivery/command.ts';
import { END_MESSAGES } from '../delivery/end-messages.ts';
import type { KnownWait } from './correlator.ts';
import type { WaitParts } from './wait.ts';
import { commandTraceFields } from '../trace-context.ts';

type Parts = Pick<WaitParts, 'deps' | 'correlator'>;

/**
 * Registers the waits of this node's callers again, because the store may have lost them. A wait whose stage has been
 * reached since is resolved. If the store no longer knows the command, the caller is answered that its outcome is
 * unknown. Never rejects: a wait that cannot be registered now ends at its deadline.
 */
export async function reattachWaits(parts: Parts): Promise<void> {
  await Promise.all(
    parts.correlator.known().map((wait) =>
      reattach(parts, wait).catch((error: unknown) => {
        const fields = { err: error, ...commandTraceFields(wait.command) };
        parts.deps.log.warn(fields, 'could not register a wait again; it ends at the deadline of its command');
      }),
    ),
  );
}

async function reattach({ deps, correlator }: Parts, wait: KnownWait): Promise<void> {
  const { rpcId, command, waitFor, until } = wait;
  const now = deps.clock.now();
  const withinMs = until === null ? null : Math.max(0, until - now);
  const attached = await deps.backend.waiters.attach(command, {
    rpcId,
    callerNodeId: deps.nodeId,
    waitFor,
    withinMs,
  });
  if (attached.kind === 'satisfied') correlator.resolve({ rpcId, command: attached.command, result: attached.result });
  if (attached.kind === 'ended')
    correlator.resolve({ rpcId, command: endedByMark(command, attached.mark), result: null });
  if (attached.kind === 'unknown') correlator.resolve({ rpcId, command: forgotten(command, now), result: null });
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
