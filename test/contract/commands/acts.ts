import type { AdmitRequest } from '../../../src/core/delivery/commands.ts';
import { admission, ALICE, BOUND, type Bench } from '../kit/bench.ts';

/** What most tests of commands begin with. `bind`: Alice's client connects. */
export function commandActs(bench: () => Bench) {
  return {
    admit: (id: string, over: Partial<AdmitRequest> = {}) => bench().backend.commands.admit(admission(id, over)),
    bind: () => bench().backend.commands.rebind(ALICE, BOUND, 'up'),
  };
}
