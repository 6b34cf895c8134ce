/** Reads the records of commands while faults occur, as a listing or a page does, and notes what the readers got. */
import type { Command } from '../../src/core/commands/command.ts';
import type { CommandKey } from '../../src/core/ids.ts';
import { endIn } from './ledger.ts';
import { stageOf, type Operation, type View } from './linearize.ts';
import { START } from './process.ts';
import { codeOf, onRecord, type OpenRelay, type Relays } from './relays.ts';

/** Reads a record at a relay. The answer is noted when it has left the relay. */
export function readRecord(relays: Relays, relay: OpenRelay, key: CommandKey, history: Operation[]): void {
  const { simulation } = relays;
  const from = simulation.now;
  const leaves = ([command = null]: readonly (Command | null)[]): void =>
    onRecord(relay, () => {
      if (relay.process.isDead) return;
      const view = command && viewOf(command);
      relays.count(`read: ${view?.stage ?? 'absent'}`);
      history.push({ from, to: simulation.now, may: null, claim: { kind: 'read', view } });
    });
  void read(relay, key).then(leaves, (error: unknown) => relays.count(`read: ${codeOf(error)}`));
}

async function read({ backend }: OpenRelay, key: CommandKey): Promise<readonly (Command | null)[]> {
  return backend.commands.get([key]);
}

/** Returns a record as the model of a command knows it. */
export function viewOf(command: Command): View {
  const { stage, outcome, execution, error, resultExpired, cancelRequestedAt, lateResults, version, deadline } =
    command;
  const code = resultExpired ? 'result_expired' : (error?.code ?? null);
  const end = outcome === null ? null : endIn({ outcome, execution, code, message: error?.message ?? null }, null);
  return {
    stage: stageOf(stage),
    end,
    isCancelRequested: cancelRequestedAt !== null,
    late: lateResults,
    version,
    deadline: deadline - START,
  };
}
