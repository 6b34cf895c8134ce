/** Audits spans of time: their keys, their removal times, and the two indexes of them. */
import { put, divided, type Lists } from './record-fields.ts';
import type { Differences } from './differences.ts';
import type { Snapshot } from './snapshot.ts';

/**
 * How long the key of a span remains after its removal time if no node removes it, in milliseconds (GRACE_MS of
 * transaction-writes.ts).
 */
const GRACE_MS = 3_600_000;

/**
 * Returns the spans of each user with their removal times, by the user's hash. Compares the two indexes and the keys.
 */
export function auditSpans(
  { hashes, zsets, lists, now }: Snapshot,
  differences: Differences,
): ReadonlyMap<string, ReadonlyMap<string, number>> {
  const spans: Lists = new Map();
  const users = new Map<string, number>();
  for (const [member, over] of zsets('endedspans').get('') ?? []) {
    const [uh = '', name = '', userId = ''] = member.split('\0');
    put(spans, uh, name, over);
    users.set(`${userId}\0${uh}`, 0);
  }
  differences.keys('spans', { has: zsets('spans'), should: spans });
  differences.members('cmdusers', { has: zsets('cmdusers').get(''), should: users });
  const kinds = [
    ['ended', '', [...hashes('ended').keys()]],
    ['names', 'n', [...zsets('names').keys()]],
    ['results', 'r', [...hashes('results').keys()]],
    ['markorder', 'd', [...lists('markorder').keys()]],
  ] as const;
  for (const [kind, letter, keys] of kinds) {
    const has = new Map(keys.map((part) => [part, 0]));
    const should = new Map<string, number>();
    const over = new Map<string, number>();
    for (const [uh, own] of spans)
      for (const [name, at] of own) {
        if (!/^[a-z]/.test(name) !== (letter === '') || !name.startsWith(letter)) continue;
        should.set(`${uh}:${name.slice(letter.length)}`, 0);
        over.set(`${uh}:${name.slice(letter.length)}`, at);
      }
    // A key expires when its span is over or some time later, even if no node has removed the span.
    const grace = kind === 'results' ? 0 : GRACE_MS;
    // All data of a span may have been dropped for lack of room.
    const isEmptied = (part: string): boolean =>
      kind === 'markorder' ||
      (kind === 'ended' && !lists('endorder').has(part)) ||
      (kind !== 'ended' && hashes('reduced').has(divided(part)[0]));
    differences.members(
      kind,
      { has, should },
      (part, key) => key === undefined && (isEmptied(part) || (over.get(part) ?? 0) + grace <= now),
    );
  }
  return spans;
}
