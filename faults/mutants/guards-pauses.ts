/** Lists mutants of pauses: copies of the sources that each leave out one check of what is paused. */
import type { GuardMutant } from './mutant.ts';

const CONTRACT = { test: 'test/contract/memory.test.ts' } as const;

/** The guard mutants of pauses. */
export const PAUSES_GUARDS: readonly GuardMutant[] = [
  {
    name: 'pause-unasked',
    says: 'a call is admitted although a pause covers it',
    file: 'core/commands/rules.ts',
    find: "if (pause) return { kind: 'refused', code: 'paused', pause };",
    replace: '',
    judge: CONTRACT,
  },
  {
    name: 'pause-unasked-at-dispatch',
    says: 'a queued command is dispatched although a pause covers it',
    file: 'core/commands/rules.ts',
    find: 'if (this.tx.pauseOf(before)) return this.#holdBack(entry, isRepeated);',
    replace: '',
    judge: CONTRACT,
  },
  {
    name: 'pause-unasked-again',
    says: 'a command that never arrived is written again although a pause covers it',
    file: 'core/commands/rules.ts',
    find: 'before.cancelRequestedAt !== null || this.tx.pauseOf(before) !== null;',
    replace: 'before.cancelRequestedAt !== null;',
    judge: CONTRACT,
  },
  {
    name: 'pause-not-offered',
    says: 'what waited for the end of a pause waits on',
    file: 'backends/memory/pauses.ts',
    find: 'if (pause) offer([pause]);',
    replace: '',
    judge: CONTRACT,
  },
];
