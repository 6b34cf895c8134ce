/** Lists mutants of pauses: copies of the sources that each leave out one check of what is paused. */
import type { GuardMutant } from './mutant.ts';

const CONTRACT = { test: 'test/contract/memory.test.ts' } as const;
const CONTRACT_AWAY = { test: 'test/contract/owned-process.test.ts' } as const;
const DISPATCH = { test: 'test/core/dispatch-paused.test.ts' } as const;

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
    find: 'if (this.tx.pauseOf(before)) return isRepeated ? PAUSED : SKIP;',
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
    name: 'followed-unrecorded',
    says: 'a pause is answered that is not recorded, and may be lost with its partition before its answer',
    file: 'backends/owned/routed.ts',
    find: 'isFollowed ? this.#recorded(runIn(stores, call)) : runIn(stores, call);',
    replace: 'runIn(stores, call);',
    judge: { test: 'test/backends/owned-routes.test.ts' },
  },
  {
    name: 'unwritten-on-another-link',
    says: 'a command ends as never written although another attempt or link has it',
    file: 'core/commands/rules.ts',
    find: "if (settlement.kind === 'unwritten') return this.#isDispatchedBy(entry, settlement) ? 'paused' : null;",
    replace: "if (settlement.kind === 'unwritten') return 'paused';",
    judge: CONTRACT_AWAY,
  },
  {
    name: 'unwritten-untold',
    says: 'nobody ends a command that was dispatched before a pause and not written',
    file: 'core/commands/dispatcher.ts',
    find: "if (result.kind === 'paused') this.#endUnwritten(linkQueue, key, asked);",
    replace: '',
    judge: DISPATCH,
  },
  {
    name: 'permit-of-before',
    says: 'what was dispatched before a pause is written after its answer',
    file: 'core/commands/dispatcher.ts',
    find: '(permits === this.#permits && this.#deps.clock.monotonic() - at <= permitMs)',
    replace: 'true',
    judge: DISPATCH,
  },
  {
    name: 'held-through-a-pause',
    says: 'a held command is written after the answer of a pause that covers it',
    file: 'core/commands/dispatcher.ts',
    find: 'for (const { result, asked } of covered) if (asked) this.#endUnwritten(linkQueue, keyOf(result.command), asked);',
    replace: '',
    judge: DISPATCH,
  },
  {
    name: 'ended-pause-kept',
    says: 'a relay keeps a pause that another relay has ended',
    file: 'backends/memory/pauses.ts',
    find: "if (pauses.hasEnded(pause.pauseId)) return 'over';",
    replace: '',
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
