/**
 * Lists the topologies in which tests run (direct, and over Redis with one or two relays), which tests run in each, and
 * which tests share a process.
 */
import { globSync } from 'node:fs';
import { join } from 'node:path';

/**
 * `direct`: one relay over memory. `owned-two`: two relays that own partitions, whose logs are in one Redis. One of the
 * two receives the calls and owns all partitions, and the clients are connected to the other. `owned-one`: one relay that
 * owns partitions, with its log in Redis. `shared-two`: two relays with the store in which Redis decides (`STORE=redis`).
 */
export type Topology = 'direct' | 'owned-two' | 'owned-one' | 'shared-two';

/** What decides about the data: the memory of the relay, relays that own partitions, or Redis. */
export type Store = 'memory' | 'owned' | 'redis';
/** Where the data of a topology is, and how many relays it has. Tests ask for these, not for names of topologies. */
export const PLACES: Readonly<Record<Topology, { readonly store: Store; readonly relays: 1 | 2 }>> = {
  direct: { store: 'memory', relays: 1 },
  'owned-two': { store: 'owned', relays: 2 },
  'owned-one': { store: 'owned', relays: 1 },
  'shared-two': { store: 'redis', relays: 2 },
};
const ALL: readonly Topology[] = ['direct', 'owned-two', 'owned-one', 'shared-two'];

/** The topologies of a run: all, or those in CALLBOARD_TEST_TOPOLOGY, separated by commas. */
const chosen = process.env['CALLBOARD_TEST_TOPOLOGY']?.split(',') ?? ALL;
export const TOPOLOGIES = ALL.filter((topology) => chosen.includes(topology));

/** The tests of the interfaces, which open relays in the topology of the run: all run with two relays that own partitions. */
export const INTEGRATION: readonly string[] = [
  ...['test/relay', 'test/gateway', 'test/graphql', 'test/rest', 'test/http', 'test/browser', 'test/mcp'].map(
    (folder) => `${folder}/*.test.ts`,
  ),
  ...['test/clients/*with-relay.test.ts', 'test/clients/admin.test.ts', 'test/cli/operator/nodes.test.ts'],
];

/** The folders whose files share processes: to start one and load the relay takes longer than most of these tests. */
const ONE_PROCESS =
  'backends,browser,cli/operator,clients,console,contract,core,deploy,gateway,graphql,http,mcp,metrics,relay,rest';

/** The tests of these folders that nevertheless have a process of their own. */
export const OWN_PROCESS: readonly { readonly files: readonly string[]; readonly reason: string }[] = [
  {
    files: [
      'test/backends/{history-bytes,packed,retention,spill-memory}.test.ts',
      'test/metrics/{process,recorder}.test.ts',
    ],
    reason: 'measures the memory or the event loop of its process',
  },
  {
    files: ['test/backends/spill-full.test.ts', 'test/cli/operator/console-lines.test.ts', 'test/http/preload.test.ts'],
    reason: 'replaces a module',
  },
  { files: ['test/console/{states,words}.test.ts'], reason: 'replaces globals of a browser' },
  {
    files: ['test/backends/redis-scans.test.ts', 'test/relay/json-bounds.test.ts'],
    reason: 'counts what its process parses',
  },
  {
    files: ['test/relay/hostile*.test.ts', 'test/gateway/fuzz.test.ts', 'test/backends/redis-{breaks,bus}.test.ts'],
    reason: 'looks for errors of its process that nobody handles, or measures its CPU time',
  },
];

/**
 * The tests that also run with the store in which Redis decides: those of codes, evidence, interfaces, semantics and
 * callers, which each store must pass with caller and client at different relays. The answers of the store itself are
 * compared by its contract tests.
 */
const OLDER_STORE: readonly string[] = [
  ...['codes', 'evidence', 'interface*', 'semantics*', 'sites-events'].map((name) => `test/relay/${name}.test.ts`),
  ...['callers', 'commands', 'contexts', 'resume'].map((name) => `test/gateway/${name}.test.ts`),
  ...['test/http/health.test.ts', 'test/clients/with-relay.test.ts', 'test/clients/leaving-with-relay.test.ts'],
];

/**
 * The tests that also run with one relay that owns partitions. Their results may depend on whether caller and client are
 * at the same relay, which then decides about the calls and sends messages to itself, and still keeps its log in Redis.
 * All other tests over Redis run with two relays only.
 */
const ONE_RELAY: readonly string[] = [
  ...['evidence', 'interface', 'interface-{connections,history,limits,rpc}', 'semantics*', 'sites-events'].map(
    (name) => `test/relay/${name}.test.ts`,
  ),
  ...['callers', 'commands', 'resume'].map((name) => `test/gateway/${name}.test.ts`),
  ...['test/graphql/delivery.test.ts', 'test/clients/with-relay.test.ts', 'test/clients/leaving-with-relay.test.ts'],
];

/** The tests that run in direct mode only. */
export const NOT_SHARED: readonly { readonly files: readonly string[]; readonly reason: string }[] = [
  {
    files: ['test/browser/console-pages.test.ts', 'test/browser/console-ids.test.ts'],
    reason:
      'looks at each page for faults of layout and access, which no store changes; the other tests of the console run shared',
  },
  {
    files: ['test/relay/observation.test.ts'],
    reason: 'puts rows into a memory backend by hand, as no relay would',
  },
  {
    files: ['test/relay/marks.test.ts'],
    reason: 'counts what the store drops; test/contract/command-shares.ts shows the same over Redis',
  },
  {
    files: ['contexts', 'invoke', 'nested', 'payload', 'updates', 'wire'].map((name) => `test/graphql/${name}.test.ts`),
    reason: 'shows fixed rows that no store holds',
  },
  {
    files: ['audit', 'endpoint', 'limits', 'mask', 'sse', 'sse-client', 'sse-share'].map(
      (name) => `test/graphql/${name}.test.ts`,
    ),
    reason: 'tests the GraphQL endpoint with a small schema that uses no store',
  },
  {
    files: [
      'at-time',
      'documents',
      'linter',
      'request-bodies',
      'plan',
      'sse-expiries',
      'sse-stream',
      'time',
      'unproven',
      'variables',
      'writer-event',
    ].map((name) => `test/graphql/${name}.test.ts`),
    reason: 'tries a function or the schema: nothing is opened',
  },
  {
    files: ['test/graphql/writer.test.ts', 'test/graphql/writer-texts.test.ts'],
    reason:
      'compares two ways of writing hundreds of answers over memory; over Redis plan-documents does, for a corpus',
  },
  {
    files: ['answers', 'bodies', 'compile', 'requests'].map((name) => `test/rest/${name}.test.ts`),
    reason: 'tries documents of its own over answers that it makes itself',
  },
  {
    files: ['openapi', 'openapi-lint', 'openapi-bounds', 'openapi-answers'].map((name) => `test/rest/${name}.test.ts`),
    reason: 'compares the description with checks that are the same in every mode',
  },
  {
    files: ['advertisement', 'encode', 'write'].map((name) => `test/gateway/${name}.test.ts`),
    reason: 'tries a function: no relay is opened',
  },
  {
    files: ['action-lists', 'address', 'fast-frames', 'frame-limits', 'fuzz', 'message-frames'].map(
      (name) => `test/gateway/${name}.test.ts`,
    ),
    reason:
      'tests how frames are read and refused, before a store sees them; relay/hostile-fuzz sends random frames on',
  },
  {
    files: [
      ...['anonymous-rate', 'attach', 'authenticator', 'body', 'embedded-config', 'endpoints', 'forwarded', 'inbound'],
      ...[
        'keep-alive',
        'lost-requests',
        'openapi-endpoint',
        'origin',
        'preload',
        'providers',
        'sockets',
        'tls',
        'unread',
      ],
    ].map((name) => `test/http/${name}.test.ts`),
    reason: 'tests tokens, headers, bodies and sockets: the request is answered or refused before a store is asked',
  },
  {
    files: ['config', 'log', 'log-sink', 'policy'].map((name) => `test/http/${name}.test.ts`),
    reason: 'tries a function: no relay is opened',
  },
  {
    files: ['test/http/loaded-modules.test.ts', 'test/http/process.test.ts'],
    reason: 'starts processes whose mode it chooses itself',
  },
  {
    files: ['tools', 'schemas', 'catalog', 'arguments'].map((name) => `test/mcp/${name}.test.ts`),
    reason: 'tries functions, or how a tool reads its arguments, which no store sees',
  },
  {
    files: ['test/mcp/many-clients.test.ts', 'test/mcp/failures.test.ts'],
    reason: 'opens a core over memory itself, with a thousand clients or with a store that fails',
  },
  {
    files: ['test/mcp/lost-answers-with-relay.test.ts'],
    reason:
      'starts processes whose mode it chooses itself; its proxy cuts the caller’s connection, which no store changes',
  },
  {
    files: ['test/http/loose-clients.test.ts', 'test/http/node-version.test.ts'],
    reason: 'tests how requests are read, or starts programs that open no relay',
  },
  {
    files: ['agents', 'chosen-tools', 'relay-away'].map((name) => `test/mcp/${name}-with-relay.test.ts`),
    reason:
      'tests what agents send and are shown, or a relay that is away; equal-calls runs the same agents over two relays',
  },
  { files: ['test/mcp/results.test.ts'], reason: 'tries a function: nothing is opened' },
  { files: ['test/http/key-set.test.ts'], reason: 'tries keys, which do not depend on the store' },
  { files: ['test/browser/console-silent.test.ts'], reason: 'opens nodes over Redis itself, whatever the topology' },
  { files: ['test/browser/console-operator.test.ts'], reason: 'drains the only node of a deployment' },
  { files: ['test/browser/console-walk.test.ts'], reason: 'counts clicks, which no store changes' },
  {
    files: ['devices', 'frame', 'lookup', 'sessions', 'shell', 'user', 'who'].map(
      (name) => `test/browser/console-${name}.test.ts`,
    ),
    reason:
      'tests what the console makes of answers; the tests of GraphQL compare the answers in every mode, and console-acts and console-clients open the console there',
  },
  { files: ['test/browser/console-build.test.ts'], reason: 'builds files: no relay is opened' },
  { files: ['test/browser/graphiql.test.ts'], reason: 'loads a page, which asks no store' },
  {
    files: ['test/browser/console-invoke.test.ts'],
    reason: 'tests the form of an action; console-acts invokes actions in every mode',
  },
  { files: ['test/browser/console-advertised.test.ts'], reason: 'replaces what the relay answers about actions' },
  {
    files: ['test/browser/console-exact.test.ts'],
    reason: 'compares what is typed with the request, which no store changes; clients/raw-json-with-relay sends it on',
  },
  {
    files: ['event-source', 'extension', 'page-life', 'preflight', 'relay-pages', 'runtime'].map(
      (name) => `test/browser/${name}.test.ts`,
    ),
    reason:
      'tests what a browser allows, how a page lives, or how pages look: no store changes that; clients/with-relay runs the libraries over two relays',
  },
  {
    files: ['test/browser/places.test.ts', 'test/browser/site.test.ts'],
    reason:
      'tests tabs and pages under faults; relay/semantics and relay/sites-* test named instances and sites over two relays',
  },
];

export const PATTERNS: Readonly<Record<Topology, readonly string[]>> = {
  direct: ['test/**/*.test.ts'],
  'owned-two': INTEGRATION,
  'owned-one': ONE_RELAY,
  'shared-two': OLDER_STORE,
};

/** The test files of a topology: those that have a process of their own, and those that share processes. */
export function filesOf(topology: Topology): { readonly alone: string[]; readonly together: string[] } {
  const cwd = join(import.meta.dirname, '..');
  const find = (patterns: readonly string[], excluded: readonly { readonly files: readonly string[] }[]): string[] =>
    globSync([...patterns], { cwd, exclude: excluded.flatMap(({ files }) => files) });
  const sharing = new Set(find([`test/{${ONE_PROCESS}}/*.test.ts`], OWN_PROCESS));
  const all = find(PATTERNS[topology], topology === 'direct' ? [] : NOT_SHARED);
  return { alone: all.filter((file) => !sharing.has(file)), together: all.filter((file) => sharing.has(file)) };
}
