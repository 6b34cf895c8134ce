/** Holds the rules of the structure: which folders and rooms may import which, and how files may be named. */
import type { SourceFile } from './imports.ts';

/**
 * The rules of which files may import which, as prefixes of paths below src. The first row whose `of` is a prefix of a
 * file's path applies to that file. A file may always import the files that have its own `of` as a prefix.
 */
const RINGS: readonly { readonly of: string; readonly may: readonly string[] }[] = [
  { of: 'protocol/', may: [] },
  { of: 'core/', may: ['protocol/codes.ts', 'protocol/json.ts', 'protocol/json-'] },
  { of: 'platform/', may: ['core/', 'protocol/trace-'] },
  { of: 'backends/', may: ['core/'] },
  { of: 'web/', may: ['core/'] },
  {
    of: 'graphql/schema/',
    may: ['core/', 'web/', 'graphql/writer/cache-hints.ts'],
  },
  { of: 'graphql/variables/', may: ['core/', 'graphql/schema/builder-json.ts'] },
  { of: 'graphql/writer/', may: ['core/', 'web/json-text.ts', 'graphql/variables/', 'graphql/schema/builder-json.ts'] },
  {
    of: 'graphql/execution/',
    may: [
      ...['core/', 'web/', 'graphql/writer/', 'graphql/variables/'],
      ...['graphql/schema/page-budget.ts', 'graphql/schema/live-share.ts'],
    ],
  },
  { of: 'graphql/http/', may: ['core/', 'web/', 'graphql/'] },
  {
    of: 'rest/',
    may: [
      'graphql/',
      'web/',
      'generated/',
      'core/errors.ts',
      'core/ids.ts',
      'core/json',
      'core/limits.ts',
      'core/maybe-promise.ts',
      'core/reading.ts',
      'core/trace-context.ts',
      'core/sites/definition.ts',
      'core/auth/',
      'core/shares/bounds.ts',
      'protocol/codes.ts',
    ],
  },
  { of: 'gateway/', may: ['protocol/', 'core/', 'web/'] },
  { of: 'clients/admin/', may: ['protocol/', 'generated/', 'clients/'] },
  { of: 'clients/', may: ['protocol/'] },
  { of: 'http/', may: ['graphql/', 'web/', 'rest/', 'gateway/', 'core/', 'platform/', 'protocol/codes.ts'] },
  {
    of: 'demo/',
    may: ['callboard.ts', 'config.ts', 'clients/', 'http/token.ts', 'http/sign-in.ts', 'platform/', 'core/log.ts'],
  },
  // The build of the console shares a setting with the build of the client libraries, and the console's pages share
  // their parsers of JSON and of event streams.
  {
    of: 'console/',
    may: [
      'generated/console.ts',
      'clients/site/sse.ts',
      'protocol/json-scan.ts',
      'protocol/visible-text.ts',
      'clients/build.ts',
    ],
  },
  { of: 'generated/', may: [] },
  { of: 'settings-shares.ts', may: ['core/shares/bounds.ts'] },
  { of: 'settings-ranges.ts', may: ['core/limits.ts', 'core/errors.ts'] },
  {
    of: 'settings.ts',
    may: ['settings-shares.ts', 'settings-ranges.ts', 'core/limits.ts', 'backends/redis/target.ts'],
  },
  { of: 'policy-file.ts', may: ['core/auth/', 'core/errors.ts'] },
  { of: 'settings-files.ts', may: ['settings.ts', 'core/errors.ts'] },
  { of: 'config-given.ts', may: ['settings.ts', 'settings-files.ts', 'core/errors.ts'] },
  { of: 'config-warnings.ts', may: ['config-given.ts', 'settings.ts', 'settings-files.ts'] },
  { of: 'config-audit.ts', may: ['settings.ts', 'core/errors.ts'] },
  { of: 'config-redis.ts', may: ['settings.ts'] },
  {
    of: 'callboard-stores.ts',
    may: ['core/', 'backends/memory/audit-file.ts', 'backends/spill/', 'callboard-settings.ts', 'platform/crypto.ts'],
  },
  { of: 'config-auth.ts', may: ['settings.ts', 'core/auth/admin-token.ts', 'backends/redis/target.ts'] },
  { of: 'config-tls.ts', may: ['config-given.ts', 'settings.ts', 'settings-files.ts', 'core/errors.ts'] },
  {
    of: 'config.ts',
    may: [
      ...[
        'config-warnings.ts',
        'config-audit.ts',
        'config-auth.ts',
        'config-redis.ts',
        'config-tls.ts',
        'config-given.ts',
        'settings.ts',
        'settings-files.ts',
        'settings-shares.ts',
        'policy-file.ts',
        'core/limits.ts',
        'core/errors.ts',
      ],
      ...['core/auth/', 'core/shares/bounds.ts'],
    ],
  },
  { of: 'version.ts', may: [] },
  {
    of: 'callboard-settings.ts',
    may: [
      'config.ts',
      'config-audit.ts',
      'settings-ranges.ts',
      'version.ts',
      'core/limits.ts',
      'core/server.ts',
      'core/shares/',
    ],
  },
  {
    of: 'callboard.ts',
    may: [
      ...['core/', 'backends/', 'graphql/', 'rest/', 'gateway/', 'http/', 'platform/', 'config.ts', 'version.ts'],
      ...['callboard-settings.ts', 'callboard-stores.ts'],
    ],
  },
  { of: 'node-version.ts', may: [] },
  { of: 'require-node.ts', may: ['node-version.ts'] },
  {
    of: 'index.ts',
    may: [
      ...['require-node.ts', 'callboard.ts', 'config.ts', 'core/', 'clients/', 'version.ts', 'platform/tracing.ts'],
      ...['http/token.ts', 'http/sign-in.ts'],
    ],
  },
  {
    of: 'cli/',
    may: [
      ...[
        'callboard.ts',
        'callboard-stores.ts',
        'backends/memory/audit-file.ts',
        'core/audit/verify.ts',
        'config.ts',
        'settings.ts',
        'settings-files.ts',
        'version.ts',
        'demo/',
        'graphql/schema/print.ts',
        'http/token.ts',
        'http/sign-in',
        'clients/link/',
        'clients/site/sse.ts',
        'generated/cli',
        'protocol/codes.ts',
        'protocol/visible-text.ts',
      ],
      ...['platform/log.ts', 'platform/clock.ts', 'platform/trace-roots.ts'],
      ...['core/clock.ts', 'core/errors.ts', 'core/ids.ts', 'core/limits.ts'],
      'core/log.ts',
    ],
  },
  { of: 'bin.ts', may: ['node-version.ts', 'cli/'] },
];

/** The rooms of core that each room may import. Every room may also import `auth` and the files at core's root. */
export const ROOMS: Readonly<Record<string, readonly string[]>> = {
  auth: [],
  connections: ['shares'],
  history: ['shares'],
  dedup: [],
  shares: [],
  contexts: ['connections', 'shares'],
  audit: [],
  reveal: ['audit', 'delivery', 'history'],
  delivery: ['audit', 'connections', 'history', 'contexts', 'shares'],
  metrics: ['delivery'],
  rpc: ['audit', 'delivery', 'connections', 'history', 'shares'],
  actions: ['connections', 'rpc'],
  sites: ['connections', 'history', 'rpc', 'shares'],
  ingest: ['connections', 'history', 'dedup', 'sites', 'shares'],
  users: ['connections', 'history', 'rpc', 'contexts', 'sites', 'shares'],
};

/** The names of the storage ports in rooms that declare more than one port. */
const PORTS = ['commands', 'waiters', 'nodes', 'inspector', 'reconnects'];

/**
 * The file names that a ring may have besides names of rooms and of their parts, such as `rpc` and `rpc-invoke`. A file
 * with any other name fails a test, so each new name is a deliberate decision.
 */
export const NAMES: readonly { readonly ring: string; readonly besides: readonly string[] }[] = [
  { ring: 'backends/memory/', besides: ['backend', 'bus', 'due', 'evictions', 'ledger', 'list', 'sorted', ...PORTS] },
  {
    ring: 'backends/redis/',
    besides: [
      ...['backend', 'client', 'clock', 'keys', 'open', 'parts', 'replies', 'target', 'types'],
      // These names are folders.
      ...['bus', 'program', 'spill', 'start-check', 'store', ...PORTS],
    ],
  },
  {
    ring: 'graphql/schema/',
    besides: [
      ...['builder', 'context', 'enums', 'live', 'loaders', 'node', 'page'],
      ...['print', 'refusal', 'schema', 'server', 'time', 'viewer'],
    ],
  },
  { ring: 'rest/operations/', besides: ['completeness'] },
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
