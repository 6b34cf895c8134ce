/** Handles the previous link of a client, and the commands on it, when a new link replaces it. */
import type { ConnectResult } from '../connections/connection-store.ts';
import type { Deps } from '../deps.ts';
import { REPLACED_GRACE_MS } from '../limits.ts';
import { commandTraceFields } from '../trace-context.ts';
import type { CommandRecorder } from './command-recorder.ts';
import type { Command } from './command.ts';
import type { Dispatcher } from './dispatcher.ts';
import { leavingElsewhere } from './leaving.ts';
import type { NodeQuestions } from './node-questions.ts';

type ReplacedDeps = {
  readonly deps: Deps;
  readonly dispatcher: Dispatcher;
  readonly recorder: CommandRecorder;
  readonly questions: NodeQuestions;
};

/** Asks another node to close the client's previous link, if the link is there. */
export function kickElsewhere({ deps }: Pick<ReplacedDeps, 'deps'>, { previous, connection }: ConnectResult): void {
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
 * Gives up the commands of a replaced instance after a grace period, during which its results may still arrive over the
 * closing socket. If a command still runs on a leaving link, on this node or on another one, it gets another grace
 * period.
 */
export function giveUpLater(parts: ReplacedDeps, orphaned: readonly Command[]): void {
  if (orphaned.length === 0) return;
  parts.deps.clock.after(REPLACED_GRACE_MS, () => {
    const { here = [], elsewhere = [], gone = [] } = Object.groupBy(orphaned, (command) => placeOf(parts, command));
    giveUp(parts, gone);
    giveUpLater(parts, here);
    if (elsewhere.length > 0) void giveUpUnlessLeaving(parts, elsewhere);
  });
}

/** Returns on which node a command may still run on a leaving link: on this one, on another one, or on none. */
function placeOf(parts: ReplacedDeps, command: Command): 'here' | 'elsewhere' | 'gone' {
  if (parts.dispatcher.isLeaving(command)) return 'here';
  return command.nodeId === null || command.nodeId === parts.deps.nodeId ? 'gone' : 'elsewhere';
}

async function giveUpUnlessLeaving(parts: ReplacedDeps, orphaned: readonly Command[]): Promise<void> {
  const leaving = await leavingElsewhere(parts, orphaned);
  const gone = orphaned.filter((command) => !leaving.includes(command));
  giveUp(parts, gone);
  giveUpLater(parts, leaving);
}

function giveUp({ deps, recorder }: ReplacedDeps, commands: readonly Command[]): void {
  for (const command of commands) {
    const settlement = { kind: 'give_up', code: 'instance_replaced', instanceId: command.boundInstanceId } as const;
    recorder.settle(command, settlement).catch((error: unknown) => {
      const fields = { err: error, ...commandTraceFields(command) };
      deps.log.warn(fields, 'could not settle a command of a replaced instance; it ends at its deadline');
    });
  }
}
