/**
 * Lists mutants of the judges of hostile runs: copies of the programs that each lack one verdict. `npm run mutants`
 * shows that tests notice each missing verdict, so a green run of these programs proves something.
 */
import type { GuardMutant } from './mutant.ts';

const NEIGHBOURS = { file: '../faults/neighbours/verdict.ts', judge: { test: 'test/neighbours/verdict.test.ts' } };
const COSTS = { file: '../faults/fuzz/cost/search.ts', judge: { test: 'test/fuzz/cost.test.ts' } };
const SEARCH = { ...COSTS, file: '../faults/fuzz/cost/search.ts' };

/** The guard mutants of judges: each leaves out one verdict, or what makes a measurement fair. */
export const JUDGES_GUARDS: readonly GuardMutant[] = [
  {
    ...NEIGHBOURS,
    name: 'health-unjudged',
    says: 'the time of /healthz is not judged',
    find: 'if (timing && beside.healthMax > healthBound)',
    replace: 'if (timing && beside.healthMax > Infinity)',
  },
  {
    ...NEIGHBOURS,
    name: 'refused-health-unjudged',
    says: 'a refused request of /healthz is not judged',
    find: "    ...listed('requests of /healthz failed', beside.healthWrong),\n",
    replace: '',
  },
  {
    ...NEIGHBOURS,
    name: 'trials-unjudged',
    says: 'a new user or an operator who is refused is not judged',
    find: "    ...listed('trials of a new user or of the operator failed', beside.trialsWrong),\n",
    replace: '',
  },
  {
    ...NEIGHBOURS,
    name: 'slow-calls-unjudged',
    says: 'the p99 of the honest user is not judged',
    find: 'if (timing && beside.p99 > bound)',
    replace: 'if (timing && beside.p99 > Infinity)',
  },
  {
    ...NEIGHBOURS,
    name: 'full-store-unjudged',
    says: 'what happens while the store is full is not judged',
    find: '    ...(full && full.skipped === null ? faultsOfFull(full) : []),\n',
    replace: '',
  },
  {
    ...NEIGHBOURS,
    name: 'never-full-unjudged',
    says: 'a run in which the store was never full passes',
    find: "  if (!noticed) faults.push('no relay said that its store was full, so this proves nothing');\n",
    replace: '',
  },
  {
    ...NEIGHBOURS,
    name: 'idle-honest-user-unjudged',
    says: 'a run in which the honest user made no trial passes',
    find: 'if (honest.includes(0))',
    replace: 'if (honest.every((count) => count === 0))',
  },
  {
    name: 'members-unaudited',
    says: 'the audit of a namespace does not compare what keys have with what they should have',
    file: '../faults/audit/differences.ts',
    find: 'if (own === right || may(member, own, right)) continue;',
    replace: 'if (own === right || own !== right) continue;',
    judge: { test: 'test/contract/redis-counters.test.ts' },
  },
  {
    ...COSTS,
    name: 'turns-unjudged',
    says: 'the longest turn of an input is not judged',
    find: 'if (cost.turnMs > bounds.turnMs)',
    replace: 'if (cost.turnMs > Infinity)',
  },
  {
    ...COSTS,
    name: 'cpu-unjudged',
    says: 'the CPU of a request is not judged',
    find: 'if (cost.cpuMs > bounds.cpuMs)',
    replace: 'if (cost.cpuMs > Infinity)',
  },
  {
    ...COSTS,
    name: 'scripts-unjudged',
    says: 'the longest script of Redis is not judged',
    find: 'if (cost.scriptMs > bounds.scriptMs)',
    replace: 'if (cost.scriptMs > Infinity)',
  },
  {
    ...COSTS,
    name: 'nothing-measured-passes',
    says: 'a cost run that measured nothing passes',
    find: "if (finalists.length === 0) return ['nothing was measured, so this proves nothing'];",
    replace: '',
  },
  {
    ...SEARCH,
    name: 'dear-inputs-do-not-grow',
    says: 'the search draws new inputs only, and grows none',
    find: 'const input = parent ? parent.input.mutate(draw) : kind.draw(draw);',
    replace: 'const input = parent ? parent.input : kind.draw(draw);',
  },
  {
    ...COSTS,
    file: '../faults/fuzz/cost/cost.ts',
    name: 'maximum-for-median',
    says: 'the largest measurement counts, which a garbage collection may have made dear',
    find: '[Math.floor((costs.length - 1) / 2)]',
    replace: '[costs.length - 1]',
  },
];
