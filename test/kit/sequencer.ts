/** Orders the test files of a run: the longest begin first, so that none is left for the end, when other cores are idle. */
import { join } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const TEST = join(import.meta.dirname, '..');

/**
 * The files that take longest, in the order in which they begin. Those that mostly wait, for timers or for processes,
 * are between those that compute, so that neither all cores are idle nor all browsers start together. Those that measure
 * (faults, neighbours) do not begin together. `npm test` prints
 * the slowest files at its end: add a row here for a file that is new among them.
 */
export const LONGEST: readonly string[] = [
  'packages/packages',
  'faults/short',
  'browser/console-operator',
  'mcp/lost-answers-with-relay',
  'interop/languages',
  'browser/console-advertised',
  'neighbours/short',
  'backends/owned-nodes',
  'browser/console-invoke',
  'backends/owned-failover',
  'browser/console-shell',
  'docs/examples',
  'faults/short-links',
  'cli/trial',
  'browser/console-ids',
  'simulate/entry',
  'simulate/links',
  'browser/console-pages',
  'faults/short-stops',
  'browser/console-devices',
  'backends/redis-breaks',
  'browser/console-acts',
  'contract/redis-cluster',
  'browser/console-clients',
  'contract/owned-redis',
  'browser/console-sessions',
  'react/example',
  'mcp/equal-calls-with-relay',
  'browser/relay-pages',
  'relay/hostile',
  'browser/graphiql',
  'clients/mistakes',
  'browser/console-exact',
  'gateway/fuzz',
  'soak/short',
  'browser/console-frame',
  'faults/console',
  'simulate/owners',
  'browser/console-user',
  'contract/redis-commands',
  'contract/redis-transactions',
  'fuzz/cost',
  'http/process',
  'backends/retention',
  'mcp/agents-with-relay',
  'demo/start',
  'mutants/short',
  'contract/commands-same',
  'contract/owned-cluster',
];

const placeOf = new Map(LONGEST.map((name, place) => [join(TEST, `${name}.test.ts`), place]));

/** Puts the longest files first, and the others behind them as vitest orders them. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placed = (file: TestSpecification): number => placeOf.get(file.moduleId) ?? placeOf.size;
    const others = await super.sort(files);
    return others.toSorted((one, other) => placed(one) - placed(other));
  }
}
