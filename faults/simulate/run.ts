/** `npm run simulate`: runs a deployment in virtual time, with the faults of a seed. The same seed gives the same run. */
import { readFileSync } from 'node:fs';
import { namesOf, positiveNumber, readOptions } from '../lib/options.ts';
import { claimsOf, Reached, unmet } from './claims.ts';
import { planOf, planText, readPlan, type Plan } from './plan.ts';
import { shrink } from './shrink.ts';
import { isStore, isWorkload, runPlan, STORES, WORKLOADS, type Setting } from './workloads.ts';

const OPTIONS = {
  seed: { type: 'string', default: '1', takes: 'n', says: 'the seed of the run, or of the first one' },
  seeds: { type: 'string', default: '1', takes: 'n', says: 'how many runs, each with the next seed' },
  steps: { type: 'string', default: '600', takes: 'n', says: 'how many acts of the workload a run has, about' },
  nodes: { type: 'string', default: '3', takes: 'n', says: 'how many relays there are' },
  acts: {
    type: 'string',
    default: 'calls',
    takes: 'w',
    says: 'the workload: calls, or acts on the stores alone: store',
  },
  store: {
    type: 'string',
    default: 'owned',
    takes: 's',
    says: 'where the relays keep what they know: owned, or directory, of one relay',
  },
  plan: { type: 'string', takes: 'f', says: 'runs the plan in this file, instead of seeds' },
  first: { type: 'boolean', default: false, says: 'ends with the first broken run' },
  shrink: { type: 'boolean', default: false, says: 'ends with the first broken run, and cuts its plan down' },
  claims: { type: 'boolean', default: false, says: 'fails if something was not reached that must be, in some run' },
  unreached: { type: 'boolean', default: false, says: 'lists the code of the store that no run has reached' },
  trace: { type: 'boolean', default: false, says: 'prints each act and each fault' },
  json: { type: 'boolean', default: false, says: 'the last line is JSON, with the digest of the last run' },
} as const;

const { plans, setting, first, cuts, claims, unreached, trace, json } = readOptions(
  {
    program: 'npm run simulate',
    about: 'Prints what a run broke, and how often each fault occurred.',
    options: OPTIONS,
  },
  (values) => {
    const [named = ''] = namesOf('acts', values.acts, Object.keys(WORKLOADS));
    const [store = ''] = namesOf('store', values.store, Object.keys(STORES));
    const setting: Setting = {
      acts: isWorkload(named) ? named : 'calls',
      store: isStore(store) ? store : 'owned',
    };
    const seed = positiveNumber('seed', values.seed);
    const size = { nodes: positiveNumber('nodes', values.nodes), steps: positiveNumber('steps', values.steps) };
    const seeds = Array.from({ length: positiveNumber('seeds', values.seeds) }, (_, i) => seed + i);
    const plans = function* (): Generator<Plan> {
      if (values.plan !== undefined) yield readPlan(readFileSync(values.plan, 'utf8'));
      else for (const one of seeds) yield planOf({ seed: one, ...size }, STORES[setting.store].faults);
    };
    return {
      plans,
      setting,
      first: values.first,
      cuts: values.shrink,
      claims: values.claims,
      unreached: values.unreached,
      trace: values.trace,
      json: values.json,
    };
  },
);

const write = (line: string): void => void process.stdout.write(`${line}\n`);

/** Prints what a run broke, the first of it. */
function writeBroken({ seed }: Plan, broken: readonly string[]): void {
  write(`seed ${seed} broke ${broken.length}:`);
  for (const line of broken.slice(0, 5)) write(`  ${line}`);
}

/** The plan that runs. What a relay throws beyond its callers ends the process, with the seed of the run. */
let running: Plan | null = null;
process.on('uncaughtException', (error) => {
  if (running) writeBroken(running, [`it threw ${error.stack ?? error.message}`]);
  else write(error.stack ?? error.message);
  process.exit(1);
});

const seen: Record<string, number> = {};
let [runs, events, acknowledged, failed, digest] = [0, 0, 0, 0, ''];
const reached = unreached ? new Reached(STORES[setting.store].files) : null;
await reached?.begin();
const began = performance.now();
for (const plan of plans()) {
  running = plan;
  const verdict = await runPlan(plan, setting, trace ? write : undefined);
  running = null;
  runs++;
  events += verdict.events;
  acknowledged += verdict.acknowledged;
  ({ digest } = verdict);
  for (const [what, count] of Object.entries(verdict.seen)) seen[what] = (seen[what] ?? 0) + count;
  if (verdict.broken.length === 0) continue;
  failed++;
  writeBroken(plan, verdict.broken);
  if (first && !cuts) break;
  if (!cuts) continue;
  const short = await shrink(plan, async (one) => (await runPlan(one, setting)).broken.length > 0);
  write(`after ${short.tries} runs, the shortest plan that breaks something:`);
  write(planText(short.plan));
  break;
}
const seconds = ((performance.now() - began) / 1000).toFixed(1);
for (const [what, count] of Object.entries(seen).toSorted()) write(`${String(count).padStart(8)}  ${what}`);
const missing = claims ? unmet(claimsOf(setting), seen) : [];
for (const what of missing) write(`never reached: ${what}`);
for (const { file, line, text } of (await reached?.end()) ?? []) write(`not reached: ${file}:${line}  ${text}`);
write(`${runs} runs, ${events} events, ${acknowledged} acknowledged commands, ${failed} runs broken, ${seconds} s`);
if (json) write(JSON.stringify({ digest, events, acknowledged, failed }));
process.exitCode = failed === 0 && missing.length === 0 ? 0 : 1;
