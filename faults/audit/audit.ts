/**
 * Compares every counter and index of a namespace in Redis with the stored data that it counts or lists. It is meant
 * for the ends of runs and tests, because it reads all keys, and Redis answers no other request while it reads a
 * partition.
 */
import { auditCommands } from './commands.ts';
import { Differences, Shares } from './differences.ts';
import { auditHistory } from './history.ts';
import { auditLinks } from './links.ts';
import { auditSites } from './sites.ts';
import { readSnapshots, type Snapshot, type SnapshotOptions } from './snapshot.ts';

export type Audit = {
  /** The number of keys that the audit read. */
  readonly keys: number;
  /**
   * One sentence for each difference: the key, its value, and the value that it should have. Empty if there is no
   * difference.
   */
  readonly wrong: readonly string[];
};

type AuditOptions = SnapshotOptions & {
  /**
   * Whether the share `marks` may have been used up. If so, missing marks are not reported, because the name of an id
   * that the relay created may then have no mark. Default false.
   */
  readonly marksRanOut?: boolean;
};

/** Audits all partitions of a namespace. Rejects if Redis cannot be read. */
export async function auditNamespace({ marksRanOut = false, ...options }: AuditOptions): Promise<Audit> {
  const snapshots = await readSnapshots(options);
  return {
    keys: snapshots.reduce((sum, { keys }) => sum + keys, 0),
    wrong: snapshots.flatMap((snapshot) => auditPartition(snapshot, marksRanOut)),
  };
}

function auditPartition(snapshot: Snapshot, marksRanOut: boolean): readonly string[] {
  const differences = new Differences(snapshot.tag);
  for (const name of snapshot.strange) differences.add(name, 'has no known kind');
  const shares = new Shares({ marksRanOut });
  auditCommands(snapshot, differences, shares);
  auditHistory(snapshot, differences, shares);
  auditLinks(snapshot, differences);
  auditSites(snapshot, differences);
  auditShares(snapshot, differences, shares);
  return differences.found;
}

/** The fields of `meta` that are not amounts of shares. */
const META = [
  'store',
  'schema',
  'partitions',
  'floor',
  'watched',
  'epoch',
  'counted',
  'forgot',
  'decider',
  'cursor',
  'spill',
];
/** For each first letter of a span's name, the share to which the amounts of such spans add up. */
const SHARE_OF_SPAN: Readonly<Record<string, string>> = { n: 'm', k: 'm', r: 'r', d: 'd' };
/**
 * The shares in which the amount of a user is the sum of the user's spans. These sums are compared with the stored
 * data.
 */
const SUMS: ReadonlySet<string> = new Set(['m', 'r', 'e', 'd']);

/**
 * Compares the amounts of shares. The amounts of each span and each user are compared with the stored data, and each
 * sum with the amounts that it adds up. The total of a share is the sum over its users.
 */
function auditShares({ hashes }: Snapshot, differences: Differences, shares: Shares): void {
  const meta = hashes('meta').get('') ?? new Map<string, string>();
  const sums = new Map<string, number>();
  const amounts = [...meta].filter(([field]) => !META.includes(field) && !field.startsWith('calls:'));
  for (const field of new Set([...amounts.map(([name]) => name), ...shares.fields()])) {
    const held = Number(meta.get(field) ?? 0);
    const [first = '', user] = field.split(':');
    if (user === undefined) continue;
    // The name of a span of ended commands begins with a digit, and has no letter.
    const sum = first.length === 1 ? first : `${SHARE_OF_SPAN[first.charAt(0)] ?? 'e'}:${user}`;
    sums.set(sum, (sums.get(sum) ?? 0) + held);
    const { least, most } = shares.get(field);
    if (SUMS.has(first) || (held >= least && held <= most)) continue;
    differences.add('meta', `has ${field} at ${held} instead of ${least === most ? least : `${least} to ${most}`}`);
  }
  for (const field of new Set([...amounts.map(([name]) => name), ...sums.keys()])) {
    const [first = '', user] = field.split(':');
    const isSum = user === undefined || SUMS.has(first);
    if (isSum) differences.equal('meta', field, { has: Number(meta.get(field) ?? 0), should: sums.get(field) ?? 0 });
    if (meta.get(field) !== undefined && Number(meta.get(field)) <= 0)
      differences.add('meta', `has ${field} at ${meta.get(field)}, but an amount of 0 has no field`);
  }
}
