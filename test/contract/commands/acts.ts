/** Offers the acts with which most contract tests of CommandStore begin. */
import type { AdmitRequest } from '../../../src/core/commands/stores.ts';
import { admission, ALICE, BOUND, type Bench } from '../kit/bench.ts';

/** Returns functions for the first steps of most tests of commands. `bind` connects alice's client. */
export function commandActs(bench: () => Bench) {
  return {
    admit: (id: string, over: Partial<AdmitRequest> = {}) => bench().backend.commands.admit(admission(id, over)),
    bind: () => bench().backend.commands.rebind(ALICE, BOUND, 'up'),
  };
}
