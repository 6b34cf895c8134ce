/** `npm run simulate`: runs a deployment in virtual time, with the faults of a seed. The same seed gives the same run. */
import { namesOf, positiveNumber, readOptions } from '../lib/options.ts';
import { Calls } from './calls.ts';
import { DirectoryDeployment } from './directory.ts';
import type { Relays } from './relays.ts';
import { StoreActs } from './store-acts.ts';
import { simulate, type Deploy, type Workload } from './world.ts';

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
  trace: { type: 'boolean', default: false, says: 'prints each act and each fault' },
  json: { type: 'boolean', default: false, says: 'the last line is JSON, with the digest of the last run' },
} as const;

const STORES: Readonly<Record<string, { readonly deploy?: Deploy }>> = {
  owned: {},
  directory: { deploy: (options) => new DirectoryDeployment(options) },
};

const calls = (relays: Relays): Workload => new Calls(relays);
const WORKLOADS: Readonly<Record<string, (relays: Relays) => Workload>> = {
  calls,
  store: (relays) => new StoreActs(relays),
};

const workloadOf = ([name = '']: readonly string[]): typeof calls => WORKLOADS[name] ?? calls;

const { seed, seeds, steps, nodes, make, store, trace, json } = readOptions(
  {
    program: 'npm run simulate',
    about: 'Prints what a run broke, and how often each fault occurred.',
    options: OPTIONS,
  },
  (values) => ({
    seed: positiveNumber('seed', values.seed),
    seeds: positiveNumber('seeds', values.seeds),
    steps: positiveNumber('steps', values.steps),
    nodes: positiveNumber('nodes', values.nodes),
    make: workloadOf(namesOf('acts', values.acts, Object.keys(WORKLOADS))),
    store: STORES[namesOf('store', values.store, Object.keys(STORES))[0] ?? ''],
    trace: values.trace,
    json: values.json,
  }),
);

const write = (line: string): void => void process.stdout.write(`${line}\n`);
const seen: Record<string, number> = {};
let [events, acknowledged, failed, digest] = [0, 0, 0, ''];
const began = performance.now();
for (let at = seed; at < seed + seeds; at++) {
  const verdict = await simulate({ seed: at, nodes, steps, ...store, ...(trace && { trace: write }) }, make);
  events += verdict.events;
  acknowledged += verdict.acknowledged;
  ({ digest } = verdict);
  for (const [what, count] of Object.entries(verdict.seen)) seen[what] = (seen[what] ?? 0) + count;
  if (verdict.broken.length === 0) continue;
  failed++;
  write(`seed ${at} broke ${verdict.broken.length}:`);
  for (const line of verdict.broken.slice(0, 5)) write(`  ${line}`);
}
const seconds = ((performance.now() - began) / 1000).toFixed(1);
for (const [what, count] of Object.entries(seen).toSorted()) write(`${String(count).padStart(8)}  ${what}`);
write(`${seeds} runs, ${events} events, ${acknowledged} acknowledged commands, ${failed} runs broken, ${seconds} s`);
if (json) write(JSON.stringify({ digest, events, acknowledged, failed }));
process.exitCode = failed === 0 ? 0 : 1;
