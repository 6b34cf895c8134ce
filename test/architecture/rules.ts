/** Holds the rules of the structure: which folders and rooms may import which, and how files may be named. */
import type { SourceFile } from './imports.ts';

/**
 * The rules of which files may import which, as prefixes of paths below src. The first row whose `of` is a prefix of a
 * file's path applies to that file. A file may always import the files that have its own `of` as a prefix.
 */
const RINGS: readonly { readonly of: string; readonly may: readonly string[] }[] = [
  { of: 'protocol/', may: [] },
  { of: 'core/', may: ['protocol/codes.ts', 'protocol/json', 'protocol/bounds.ts', 'protocol/fields.ts'] },
  { of: 'platform/', may: ['core/', 'protocol/trace.ts'] },
  { of: 'backends/memory/', may: ['core/'] },
  { of: 'backends/journal/', may: ['core/', 'backends/memory/'] },
  {
    of: 'backends/owned/',
    may: [
      ...['core/', 'backends/memory/', 'backends/journal/'],
      ...['client', 'keys', 'subscriber'].map((file) => `backends/redis/${file}.ts`),
    ],
  },
  { of: 'backends/', may: ['core/'] },
  { of: 'web/', may: ['core/'] },
  { of: 'graphql/schema/', may: ['core/', 'web/request-notes.ts'] },
  { of: 'graphql/variables', may: ['core/', 'graphql/schema/scalars.ts'] },
  { of: 'graphql/selection.ts', may: [] },
  {
    of: 'graphql/writer/',
    may: [
      ...['core/', 'web/reply.ts', 'graphql/selection.ts', 'graphql/variables'],
      ...['graphql/schema/cache-hints.ts', 'graphql/schema/scalars.ts'],
    ],
  },
  {
    of: 'graphql/execute/',
    may: [
      ...['core/', 'web/', 'graphql/writer/', 'graphql/selection.ts', 'graphql/variables'],
      ...['graphql/schema/context.ts', 'graphql/schema/subscription-fields.ts'],
    ],
  },
  { of: 'graphql/http/', may: ['core/', 'web/', 'graphql/'] },
  {
    of: 'rest/',
    may: [
      ...['graphql/', 'web/', 'protocol/codes.ts', 'core/auth/', 'core/errors.ts', 'core/ids.ts', 'core/json.ts'],
      ...['core/limits.ts', 'core/maybe-promise.ts', 'core/document-reading.ts', 'core/trace-context.ts'],
      ...['core/shares/share-bounds.ts', 'core/sites/site-definition.ts', 'core/devices/device.ts'],
    ],
  },
  { of: 'gateway/', may: ['protocol/', 'core/', 'web/'] },
  { of: 'mcp/', may: ['protocol/visible-text.ts', 'core/', 'web/'] },
  { of: 'clients/admin/', may: ['../generated/admin.ts', 'clients/'] },
  { of: 'clients/live/', may: ['../generated/live.ts', 'clients/', 'protocol/'] },
  { of: 'clients/', may: ['protocol/'] },
  { of: 'http/', may: ['graphql/', 'web/', 'rest/', 'gateway/', 'mcp/', 'core/', 'platform/'] },
  {
    of: 'console/',
    may: ['../generated/console.ts', 'protocol/json-scan.ts', 'protocol/visible-text.ts', 'clients/live/stream.ts'],
  },
  { of: 'version.ts', may: [] },
  {
    of: 'settings',
    may: [
      ...[
        'core/auth/',
        'core/errors.ts',
        'core/ids.ts',
        'core/json.ts',
        'core/limits.ts',
        'core/shares/share-bounds.ts',
      ],
      'backends/redis/target.ts',
    ],
  },
  {
    of: 'config',
    may: ['settings', 'core/', 'backends/redis/target.ts'],
  },
  {
    of: 'callboard.ts',
    may: [...['core/', 'backends/', 'http/', 'platform/'], ...['config', 'settings', 'version.ts']],
  },
  { of: 'require-node.ts', may: ['version.ts'] },
  {
    of: 'index.ts',
    may: [
      ...['require-node.ts', 'callboard.ts', 'config', 'core/', 'version.ts', 'platform/tracing.ts'],
      ...['http/server.ts', 'http/sign-in', 'http/tokens.ts'],
    ],
  },
  {
    of: 'testing/',
    may: ['callboard.ts', 'clients/', 'core/ports.ts', 'http/tokens.ts'],
  },
  // Only this file may load the demo, and only when the command `callboard demo` runs.
  {
    of: 'cli/serve.ts',
    may: [
      ...['cli/', 'callboard.ts', 'config', '../demo/demo.ts', 'http/sign-in', 'http/tokens.ts'],
      ...['core/errors.ts', 'core/limits.ts', 'core/ports.ts', 'platform/log.ts', 'platform/system.ts'],
    ],
  },
  // The relay's side of links, against which own clients are checked.
  { of: 'cli/conformance/', may: ['clients/link/', 'core/limits.ts', 'protocol/'] },
  {
    of: 'cli/',
    may: [
      ...['callboard.ts', 'config', 'settings', 'version.ts', '../generated/cli'],
      ...['backends/memory/audit.ts', 'backends/journal/batches.ts', 'backends/journal/files.ts'],
      'backends/journal/records.ts',
      'graphql/schema/schema.ts',
      ...['http/sign-in', 'http/tokens.ts'],
      ...['clients/link/', 'clients/live/stream.ts', 'clients/site/sse.ts', 'protocol/codes.ts', 'protocol/json'],
      ...['protocol/visible-text.ts', 'platform/log.ts', 'platform/system.ts', 'platform/tracing.ts'],
      ...['core/audit/audit-chain.ts', 'core/errors.ts', 'core/ids.ts', 'core/limits.ts', 'core/ports.ts'],
      ...['core/auth/principal.ts', 'core/auth/policy.ts', 'core/auth/policy-file.ts', 'core/auth/live-policy.ts'],
      ...['core/calls/permissions.ts', 'core/rates.ts'],
    ],
  },
  { of: 'bin.ts', may: ['version.ts', 'cli/'] },
];

/** What the demo may import: what a program that uses the published packages finds in them, and the clock and log. */
export const DEMO_MAY = [
  ...['../src/callboard.ts', '../src/config', '../src/clients/', '../src/http/sign-in', '../src/http/tokens.ts'],
  ...['../src/platform/', '../src/core/ports.ts'],
];

/** The rooms of core that each room may import. Every room may also import `auth` and the files at core's root. */
export const ROOMS: Readonly<Record<string, readonly string[]>> = {
  auth: [],
  shares: [],
  connections: ['shares'],
  contexts: ['connections', 'shares'],
  history: ['connections', 'shares'],
  dedup: [],
  pauses: ['audit'],
  audit: [],
  users: [],
  commands: ['connections', 'contexts', 'history', 'pauses', 'shares'],
  metrics: ['commands'],
  reveal: ['audit', 'commands', 'history'],
  revocations: ['audit', 'commands', 'pauses'],
  devices: ['audit', 'commands', 'connections', 'revocations'],
  calls: ['audit', 'commands', 'connections', 'history', 'pauses', 'shares'],
  sites: ['calls', 'connections', 'history'],
  ingest: ['connections', 'history', 'sites'],
};

/** The names of the storage ports in rooms that declare more than one port. */
const PORTS = ['waiters', 'nodes', 'inspector'];

/**
 * The file names that a ring may have besides names of rooms and of their parts, such as `commands` and
 * `commands-marks`. A file with any other name fails a test, so each new name is a deliberate decision.
 */
export const NAMES: readonly { readonly ring: string; readonly besides: readonly string[] }[] = [
  {
    ring: 'backends/memory/',
    besides: [
      ...['backend', 'bus', 'due-index', 'evidence', 'ledger', 'linked-list', 'packed-time', 'reconnects'],
      ...['sorted-map', 'sparse-queue', 'tickets', ...PORTS],
    ],
  },
  {
    ring: 'backends/redis/',
    besides: [
      ...[
        'bus',
        'client',
        'deps',
        'keys',
        'legacy',
        'namespace',
        'open',
        'program',
        'replies',
        'rights',
        'spill',
        'store',
        'subscriber',
        'survey',
        'target',
        'tickets',
      ],
      ...PORTS,
    ],
  },
  {
    ring: 'backends/owned/',
    besides: [
      ...[
        'budget',
        'bus',
        'departure',
        'encoding',
        'fence',
        'keys',
        'lease',
        'mail',
        'merging',
        'nodes',
        'open',
        'owner',
        'owners',
        'partition',
      ],
      ...[
        'partition-log',
        'placement',
        'replicas',
        'reports',
        'requests',
        'responder',
        'routed',
        'routes',
        'scripts',
        'slot-group',
        'stream',
      ],
      'tail',
      ...['transport', 'turns'],
    ],
  },
  {
    ring: 'graphql/schema/',
    besides: [
      ...['answer-budget', 'builder', 'cache-hints', 'context', 'delivery', 'fields', 'loaders', 'node-ids'],
      ...['node-interface', 'node-lookup', 'page', 'refusal', 'scalars', 'schema', 'server', 'subscription-fields'],
    ],
  },
  { ring: 'rest/operations/', besides: ['delivery', 'invoke'] },
];

/** Returns the path if the ring does not allow the file's name; undefined if it does. */
export function strangeName(path: string): string | undefined {
  const row = NAMES.find(({ ring }) => path.startsWith(ring));
  if (!row) return undefined;
  const name = path.slice(row.ring.length).replace(/\.[a-z]+$/, '');
  const known = [...Object.keys(ROOMS), ...row.besides];
  return known.some((word) => name === word || name.startsWith(`${word}-`) || name.startsWith(`${word}/`))
    ? undefined
    : path;
}

/** Returns why a file may not import another; undefined when it may. */
export function refusalOf(from: string, to: string): string | undefined {
  const ring = RINGS.find(({ of }) => from.startsWith(of));
  if (!ring) return `${from} belongs to no ring`;
  const may = to.startsWith(ring.of) || ring.may.some((prefix) => to.startsWith(prefix));
  if (!may) return `${ring.of} must not import ${to} (${from})`;
  return roomRefusal(from, to);
}

function roomRefusal(from: string, to: string): string | undefined {
  const here = roomOf(from);
  const there = roomOf(to);
  if (here === null || there === null || here === there || there === 'auth') return undefined;
  if (ROOMS[here]?.includes(there)) return undefined;
  return `core's room ${here} must not import the room ${there} (${from})`;
}

export function roomOf(path: string): string | null {
  return /^core\/([^/]+)\//.exec(path)?.[1] ?? null;
}

export function refusals(files: readonly SourceFile[]): readonly string[] {
  return files.flatMap(({ path, own }) => own.map((to) => refusalOf(path, to)).filter((text) => text !== undefined));
}

/** The rings whose code a simulation runs, with its own time, turns of the event loop, and random numbers. */
export const SIMULATED =
  /^(core|protocol|gateway|web|graphql|rest|mcp|clients|backends\/(memory|journal|owned|spill))\//;

/** The files of these rings that have time or random numbers of their own, each with the reason. */
export const OWN_TIME: Readonly<Record<string, string>> = {
  'clients/link/ids.ts': 'has the random numbers of programs that give none',
  'clients/link/platform.ts': 'has the clock of programs that give none',
  'clients/react/index.ts': 'names a command in a page, which no simulation shows',
  'core/ports.ts': 'declares the ports',
  'protocol/json-write.ts': 'makes a mark that is in no text before or after',
};
