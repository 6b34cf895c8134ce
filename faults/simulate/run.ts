/** `npm run simulate`: runs a deployment in virtual time, with the faults of a seed. The same seed gives the same run. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { namesOf, positiveNumber, readOptions } from '../lib/options.ts';
import { claimsOf, unmet } from './claims.ts';
import { planOf, planText, readPlan, type Plan } from './plan.ts';
import { shrink } from './shrink.ts';
import { Reached } from './unreached.ts';
import { isStore, isWorkload, runPlan, STORES, WORKLOADS, type Setting } from './workloads.ts';

const OPTIONS = {
  seed: { type: 'string', default: '1', takes: 'n', says: 'the seed of the run, or of the first one' },
  seeds: { type: 'string', default: '1', takes: 'n', says: 'how many runs, each with the next seed' },
  steps: { type: 'string', default: '600', takes: 'n', says: 'how many acts of the workload a run has, about' },
  nodes: { type: 'string', default: '3', takes: 'n', says: 'how many relays there are' },
  acts: {
    type: 'string',
    default: 'calls',
    takes: 'a,b',
    says: 'the workloads, some of calls, events, pauses, revocations, sites, and store: acts on the stores alone',
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
  unreached: {
    type: 'boolean',
    default: false,
    says: 'fails if no run has reached some code of the store that is not listed as out of reach',
  },
  trace: { type: 'boolean', default: false, says: 'prints each act and each fault' },
  json: { type: 'boolean', default: false, says: 'the last line is JSON, with one digest of all runs' },
} as const;

const { runs, settings, store, first, cuts, claims, unreached, trace, json } = readOptions(
  {
    program: 'npm run simulate',
    about: 'Prints what a run broke, and how often each fault occurred.',
    options: OPTIONS,
  },
  (values) => {
    const [named = ''] = namesOf('store', values.store, Object.keys(STORES));
    const store = isStore(named) ? named : 'owned';
    const settings = namesOf('acts', values.acts, Object.keys(WORKLOADS))
      .filter(isWorkload)
      .map((acts): Setting => ({ acts, store }));
    const seed = positiveNumber('seed', values.seed);
    const size = { nodes: positiveNumber('nodes', values.nodes), steps: positiveNumber('steps', values.steps) };
    const seeds = Array.from({ length: positiveNumber('seeds', values.seeds) }, (_, i) => seed + i);
    const runs = function* (): Generator<{ readonly plan: Plan; readonly setting: Setting }> {
      for (const setting of settings)
        if (values.plan !== undefined) yield { plan: readPlan(readFileSync(values.plan, 'utf8')), setting };
        else for (const one of seeds) yield { plan: planOf({ seed: one, ...size }, STORES[store].faults), setting };
    };
    return {
      runs,
      settings,
      store,
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
let [count, events, acknowledged, failed] = [0, 0, 0, 0];
const digests = createHash('sha256');
const steps = { all: 0, loaded: 0, troubled: 0 };
const reached = unreached ? new Reached(store) : null;
await reached?.begin();
const began = performance.now();
for (const { plan, setting } of runs()) {
  running = plan;
  const verdict = await runPlan(plan, setting, trace ? write : undefined);
  running = null;
  count++;
  events += verdict.events;
  acknowledged += verdict.acknowledged;
  digests.update(`${verdict.digest}\n`);
  for (const kind of ['all', 'loaded', 'troubled'] as const) steps[kind] += verdict.steps[kind];
  for (const [what, times] of Object.entries(verdict.seen)) seen[what] = (seen[what] ?? 0) + times;
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
const { user, system } = process.cpuUsage();
const cpuSeconds = ((user + system) / 1e6).toFixed(1);
const shareOf = (part: number): string => `${Math.round((100 * part) / Math.max(1, steps.all))} %`;
for (const [what, times] of Object.entries(seen).toSorted()) write(`${String(times).padStart(8)}  ${what}`);
const missing = claims ? settings.flatMap((setting) => unmet(claimsOf(setting), seen)) : [];
for (const what of new Set(missing)) write(`never reached: ${what}`);
const unlisted = (await reached?.end()) ?? [];
for (const line of unlisted) write(line);
write(
  `${steps.all} steps: ${shareOf(steps.loaded)} under load, ${shareOf(steps.troubled)} during or soon after a fault`,
);
const time = `${seconds} s, ${cpuSeconds} s of CPU`;
write(`${count} runs, ${events} events, ${acknowledged} acknowledged commands, ${failed} runs broken, ${time}`);
if (json) write(JSON.stringify({ digest: digests.digest('hex'), events, acknowledged, failed, steps, seen }));
process.exitCode = failed === 0 && missing.length === 0 && unlisted.length === 0 ? 0 : 1;
