/** Audits nodes, connections, contexts and windows, the marks of received messages, and stored payloads. */
import type { Differences } from './differences.ts';
import type { Snapshot } from './snapshot.ts';

type Hash = ReadonlyMap<string, string>;

/**
 * How long a connection counts as up without a heartbeat, and how long its row stays after that (limits.ts), in
 * milliseconds.
 */
const DEAD_MS = 60_000;
const FORGET_MS = 60_000;
/** The lifetime of a deduplication mark, and the length of a period of counts (lib-dedup), in milliseconds. */
const MARK_MS = 120_000;
const BUCKET_MS = 10_000;

export function auditLinks(snapshot: Snapshot, differences: Differences): void {
  auditNodes(snapshot, differences);
  auditConnections(snapshot, differences);
  auditContexts(snapshot, differences);
  auditSeen(snapshot, differences);
  auditPayloads(snapshot, differences);
}

/** Compares the attached nodes with their epochs, the numbers of their calls and their mailboxes. */
function auditNodes({ hashes, zsets, streams }: Snapshot, differences: Differences): void {
  const epochs = new Map<string, string>();
  for (const node of zsets('nodes').get('')?.keys() ?? []) {
    const row = hashes('node').get(node);
    if (row?.get('epoch') === undefined) differences.add(`node:${node}`, 'has no epoch, although the node is attached');
    // The node is being removed as lost: its calls and its mailbox are already gone.
    else if (!row.has('fenced')) epochs.set(node, row.get('epoch') ?? '');
  }
  const calls = [...(hashes('meta').get('') ?? [])].filter(([field]) => field.startsWith('calls:'));
  const numbered = new Map(calls.map(([field, value]) => [field.slice('calls:'.length), value.split(' ')[0] ?? '']));
  differences.members('meta calls', { has: numbered, should: epochs });
  const boxes = new Set([...epochs].map(([node, epoch]) => `${node}:${epoch}`));
  for (const box of streams('mailbox').keys())
    if (!boxes.has(box)) differences.add(`mailbox:${box}`, 'is that of no attached node and its epoch');
}

/** Compares the listings of connections, and the index of the times at which rows are forgotten, with the rows. */
function auditConnections({ hashes, zsets, now }: Snapshot, differences: Differences): void {
  const rows = new Map<string, number>();
  const users = new Map<string, number>();
  const gone = new Map<string, number>();
  for (const [ch, row] of hashes('conn')) {
    const name = `${row.get('userId')}\0${row.get('clientId')}`;
    const downAt = row.get('disconnectedAt');
    const lostAt = downAt === undefined ? Number(row.get('lastSeenAt')) + DEAD_MS : Number(downAt);
    rows.set(name, 0);
    users.set(String(row.get('userId')), 0);
    gone.set(`${name}\0${ch}`, lostAt + FORGET_MS);
    auditBinding({ ch, row, bound: hashes('client').get(ch)?.get('b') }, differences);
  }
  // If no node removes a connection's row, it expires hours after it should be forgotten.
  const due = new Set(
    [...(zsets('conngone').get('') ?? [])]
      .filter(([, at]) => at <= now)
      .map(([member]) => member.split('\0').slice(0, 2).join('\0')),
  );
  const expired = (member: string, _has?: number, should?: number): boolean => should === undefined && due.has(member);
  differences.members('conns', { has: zsets('conns').get(''), should: rows }, expired);
  differences.members('connusers', { has: zsets('connusers').get(''), should: users }, (user, _has, should) => {
    return should === undefined && [...due].some((member) => member.startsWith(`${user}\0`));
  });
  differences.members('conngone', { has: zsets('conngone').get(''), should: gone }, (_member, has, should) => {
    return should === undefined && (has ?? 0) <= now;
  });
}

type Bound = { readonly ch: string; readonly row: Hash; readonly bound: string | undefined };

/**
 * Compares the link to which a client's commands are bound with the client's connection, if both have the same epoch.
 */
function auditBinding({ ch, row, bound }: Bound, differences: Differences): void {
  const [nodeId = '', epoch, instanceId = '', rev = ''] = bound?.split('\0') ?? [];
  if (bound === undefined || epoch !== row.get('epoch')) return;
  differences.equal(`client:${ch}`, 'the link to node', { has: nodeId, should: row.get('nodeId') ?? '' });
  differences.equal(`client:${ch}`, 'the link of instance', { has: instanceId, should: row.get('instanceId') ?? '' });
  differences.equal(`client:${ch}`, 'the link with actions', { has: rev, should: row.get('rev') ?? '' });
}

/** Compares the listings of contexts and windows, and the workers of windows, with the clients' reports. */
function auditContexts({ hashes, zsets }: Snapshot, differences: Differences): void {
  const contexts = new Map<string, number>();
  const windows = new Map<string, number>();
  const counts = new Map<string, Map<string, string>>();
  const ownerOf = (ch: string): string => {
    const row = hashes('conn').get(ch);
    return `${row?.get('userId')}\0${row?.get('clientId')}`;
  };
  for (const [ch, own] of hashes('ctx')) {
    const workers = new Map<string, { all: number; busy: number }>();
    for (const [context, value] of own) {
      contexts.set(`${ownerOf(ch)}\0${context}`, 0);
      const [, , place = ''] = value.split('|', 3);
      if (place === '') continue;
      const counted = workers.get(place.slice(1)) ?? { all: 0, busy: 0 };
      workers.set(place.slice(1), { all: counted.all + 1, busy: counted.busy + Number(place.charAt(0)) });
    }
    if (workers.size > 0)
      counts.set(ch, new Map([...workers].map(([name, { all, busy }]) => [name, `${all}:${busy}`])));
  }
  for (const [ch, own] of hashes('win')) for (const name of own.keys()) windows.set(`${ownerOf(ch)}\0${name}`, 0);
  differences.members('ctxs', { has: zsets('ctxs').get(''), should: contexts });
  differences.members('wins', { has: zsets('wins').get(''), should: windows });
  differences.keys('ctxwin', { has: hashes('ctxwin'), should: counts });
}

/**
 * Checks that each message with a mark was counted. There are more counted messages than marks: marks expire, and the
 * ends of commands are recognized by their records instead of marks.
 */
function auditSeen({ hashes, strings }: Snapshot, differences: Differences): void {
  const marked = new Map<string, number>();
  for (const value of strings('mark').values()) {
    const [until = '', token] = value.split(' ');
    // A message that was retained but not ingested is not counted.
    if (token === '-') continue;
    const bucket = String(Math.floor((Number(until) - MARK_MS) / BUCKET_MS));
    marked.set(bucket, (marked.get(bucket) ?? 0) + 1);
  }
  for (const [bucket, marks] of marked) {
    const unique = Number(hashes('seen').get(bucket)?.get('unique') ?? 0);
    if (unique < marks) differences.add(`seen:${bucket}`, `has unique at ${unique}, fewer than ${marks} marks`);
  }
}

/** Compares the number of bytes of stored payloads with the payloads. */
function auditPayloads({ zsets, strings, now }: Snapshot, differences: Differences): void {
  let bytes = 0;
  const listed = new Set<string>();
  for (const [member, expiresAt] of zsets('payloads').get('') ?? []) {
    const [name = '', size] = [
      member.slice(0, member.lastIndexOf(':')),
      Number(member.slice(member.lastIndexOf(':') + 1)),
    ];
    bytes += size;
    listed.add(name);
    const text = strings('payload').get(name);
    // The key of a payload expires an hour after the payload itself.
    if (text === undefined && expiresAt <= now) continue;
    const has = text === undefined ? 'no text' : Buffer.byteLength(text.slice(text.indexOf(' ') + 1));
    differences.equal(`payload:${name}`, 'bytes', { has, should: size });
  }
  for (const name of strings('payload').keys())
    if (!listed.has(name)) differences.add(`payload:${name}`, 'is not listed among the payloads');
  differences.equal('payloadbytes', 'bytes', { has: Number(strings('payloadbytes').get('') ?? 0), should: bytes });
}
