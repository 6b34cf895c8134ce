/** `direct`: one relay over memory. `shared-one`: one over Redis. `shared-two`: two over one Redis, one that is called, one for clients. */
export type Topology = 'direct' | 'shared-one' | 'shared-two';
const ALL: readonly Topology[] = ['direct', 'shared-one', 'shared-two'];

/** What a run goes through: `direct`, or those that CALLBOARD_TEST_TOPOLOGY names, separated by commas. */
const chosen = (process.env['CALLBOARD_TEST_TOPOLOGY'] ?? 'direct').split(',');
export const TOPOLOGIES = ALL.filter((topology) => chosen.includes(topology));

/** Tests that open whole relays by `relay()`, `stage()` or `startRealRelay()`. */
export const INTEGRATION: readonly string[] = [
  'test/relay/*.test.ts',
  'test/clients/*with-relay.test.ts',
  'test/clients/admin.test.ts',
];

/** Those of them that have a reason to run in direct mode alone. */
export const NOT_SHARED: readonly { readonly file: string; readonly reason: string }[] = [
  { file: 'test/relay/observation.test.ts', reason: 'puts rows into a memory backend by hand, as no relay would' },
];
