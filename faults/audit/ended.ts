/** Audits ended commands: their records, results, names and marks, and the order in which the oldest are dropped. */
import { decodeMark, STATE } from '../../src/backends/redis/commands/record.ts';
import {
  divided,
  fieldsOf,
  isKept,
  type Recorded,
  put,
  type Lists,
  numbered,
  nameOf,
  type Fields,
} from './record-fields.ts';
import type { Differences, Shares } from './differences.ts';
import type { Snapshot } from './snapshot.ts';

/** The maximum time between admission and end of a command (lib-reduce), in milliseconds. */
const LIFE_MS = 660_000;

const HOUR_MS = 3_600_000;
/** The minimum length of a span of names (lib-reduce), in milliseconds. */
const NAMES_MS = 60_000;

/**
 * Reads the records of ended commands, reports commands that have two records at once, and counts the marks that
 * replaced records.
 */
export function readEnded(snapshot: Snapshot, differences: Differences, shares: Shares): readonly Recorded[] {
  const ended: Recorded[] = [];
  const kept = new Map<string, string>();
  for (const [part, records] of snapshot.hashes('ended')) {
    const [uh, span] = divided(part);
    for (const [name, whole] of records) {
      const mark = decodeMark(whole);
      if (mark) {
        // If a command ended late, its names may be removed before its mark, and the room for the mark is given back
        // with them.
        const isLate = mark.mark.endedAt > Number(whole.split('\0')[2]) + LIFE_MS;
        shares.add(`k${span}:${uh}`, isLate ? 0 : 1, 1);
        continue;
      }
      const texts = whole.split('\0');
      const fields = fieldsOf(texts.slice(0, STATE.length).join('\0'), texts.slice(STATE.length).join('\0'));
      const one = { fields, span };
      ended.push(one);
      const key = `ended:${part}`;
      if (fields.ch + fields.commandId !== name || fields.uh !== uh)
        differences.add(key, `has ${name} with another record`);
      if (fields.stage !== 'terminal') differences.add(key, `has ${name}, which has not ended`);
      if (!isKept(snapshot, one)) continue;
      if (kept.has(name)) differences.add(key, `has ${name}, which is in ${kept.get(name)} too`);
      kept.set(name, span);
      if (snapshot.hashes('client').get(fields.ch)?.has(`s${fields.commandId}`))
        differences.add(key, `has ${name}, which is live too`);
    }
  }
  return ended;
}

/** The names that a share limits over all nodes, by user's hash and span, each with the time until which it counts. */
type Order = ReadonlyMap<string, ReadonlyMap<string, number>>;

export function orderOf(ended: readonly Recorded[]): Order {
  const order: Lists = new Map();
  for (const { fields, span } of ended)
    put(order, `${fields.uh}:${span}`, fields.ch + fields.commandId, Number(fields.forgetAt));
  return order;
}

/** Returns the stored marks of messages, each in the span by which the oldest marks are found. */
export function marksIn({ lists, strings, now }: Snapshot): Order {
  const order: Lists = new Map();
  for (const [part, entries] of lists('markorder'))
    for (const entry of entries) {
      const [until = '', hash = ''] = entry.split(' ');
      // A mark expires by itself. If it was set again, it is in a later span too.
      const own = strings('mark').get(hash)?.split(' ')[0] ?? until;
      if (own >= until) put(order, part, hash, Number(until));
    }
  const listed = new Set([...order.values()].flatMap((own) => [...own.keys()]));
  for (const [hash, mark] of strings('mark')) {
    const until = Number(mark.split(' ')[0]);
    if (until > now && !listed.has(hash)) put(order, 'none', hash, until);
  }
  return order;
}

type Ordered = { readonly letter: 'e' | 'd'; readonly should: Order; readonly shares: Shares };

/**
 * Compares the orders and indexes by which the oldest data are dropped with the stored data, and counts the data for
 * the shares.
 */
export function auditOrder(
  { lists, zsets }: Snapshot,
  differences: Differences,
  { letter, should, shares }: Ordered,
): void {
  const kind = letter === 'e' ? 'endorder' : 'markorder';
  const has: Lists = new Map();
  for (const [part, entries] of lists(kind)) {
    for (const entry of entries) put(has, part, entry.slice(entry.indexOf(' ') + 1), Number(entry.split(' ')[0]));
    if ((has.get(part)?.size ?? 0) < entries.length) differences.add(`${kind}:${part}`, 'has a name twice');
  }
  differences.keys(kind, { has, should });
  const oldest = new Map<string, number>();
  for (const [part, own] of should) {
    const [uh, span] = divided(part);
    shares.add(`${letter === 'd' ? 'd' : ''}${span}:${uh}`, own.size);
    oldest.set(uh, Math.min(oldest.get(uh) ?? Infinity, ...own.values()));
  }
  const index = zsets(letter === 'e' ? 'endedoldest' : 'markoldest').get('');
  const known = new Map([...(index ?? [])].map(([member, at]) => [member.split('\0')[1], at]));
  for (const [uh, at] of oldest)
    if ((known.get(uh) ?? Infinity) > at) differences.add(kind, `has ${uh} from ${at} on, the index ${known.get(uh)}`);
}

/** Compares the number of commands that are forgotten in each second with the records. */
export function auditEndedCounts(
  { hashes, now }: Snapshot,
  differences: Differences,
  ended: readonly Recorded[],
): void {
  const seconds = new Map<string, number>();
  for (const { fields } of ended) {
    const second = String(Math.floor(Number(fields.forgetAt) / 1000));
    seconds.set(second, (seconds.get(second) ?? 0) + 1);
  }
  const has = numbered(hashes('endedcount').get('') ?? new Map());
  // Counts for past seconds are not read any more, and are removed later.
  const past = (second: string): boolean => Number(second) <= Math.floor(now / 1000);
  differences.members('endedcount', { has, should: seconds }, past);
}

type Ended = {
  readonly spans: ReadonlyMap<string, ReadonlyMap<string, number>>;
  readonly ended: readonly Recorded[];
  readonly shares: Shares;
};

/** Compares the results with the records that refer to them, and adds up their bytes. */
export function auditResults(
  { hashes, now }: Snapshot,
  differences: Differences,
  { spans, ended, shares }: Ended,
): void {
  for (const [part, results] of hashes('results')) {
    const [uh, began] = divided(part);
    const bytes = [...results.values()].reduce((sum, result) => sum + Buffer.byteLength(result), 0);
    shares.add(`r${began}:${uh}`, bytes);
  }
  for (const [uh, own] of spans)
    for (const [name, over] of own)
      // The results of a span expire when the span is over. Their bytes are given back later, when a node removes the
      // span.
      if (name.startsWith('r') && over <= now && !hashes('results').has(`${uh}:${name.slice(1)}`))
        shares.add(`${name}:${uh}`, 0, Infinity);
  // Only the results of existing records are looked up. Other results are no fault, because a record may be removed
  // before its result.
  for (const { fields } of ended) {
    const { uh, ch, commandId, resultIn } = fields;
    if (resultIn === '' || resultIn === '-' || (spans.get(uh)?.get(`r${resultIn}`) ?? 0) <= now) continue;
    if (
      hashes('results')
        .get(`${uh}:${resultIn}`)
        ?.has(ch + commandId)
    )
      continue;
    differences.add(`results:${uh}:${resultIn}`, `lacks the result of ${nameOf(fields)}`);
  }
}

type Named = {
  readonly spans: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** The live commands, and the ended ones whose records are stored. */
  readonly commands: readonly Recorded[];
  readonly shares: Shares;
};

/**
 * Compares the names of commands in both listings, by name and by time of admission, and counts the marks for the
 * names.
 */
export function auditNames(
  { zsets, now }: Snapshot,
  differences: Differences,
  { spans, commands, shares }: Named,
): void {
  const kept = new Map<string, Fields>();
  const named = new Map<string, Set<string>>();
  for (const { fields } of commands) kept.set(`${fields.uh}${fields.ch}${fields.commandId}`, fields);
  for (const [part, names] of zsets('names')) {
    const [uh] = divided(part);
    named.set(uh, new Set([...(named.get(uh) ?? []), ...names.keys()]));
  }
  for (const fields of kept.values()) {
    const name = `${fields.clientId}\0${fields.commandId}`;
    if (!named.get(fields.uh)?.has(name)) differences.add(`names:${fields.uh}`, `lacks ${name}`);
  }
  const windowOf = (uh: string): number =>
    Math.min(
      ...[...(spans.get(uh)?.keys() ?? [])]
        .filter((name) => name.startsWith('n'))
        .map((name) => Number(name.split('.')[1])),
    );
  const admitted: Lists = new Map();
  for (const [member, { admittedAt }] of kept)
    put(admitted, String(Number(admittedAt) - (Number(admittedAt) % HOUR_MS)), member, Number(admittedAt));
  differences.keys('admitted', { has: zsets('admitted'), should: admitted }, (_, member, has, should) => {
    const window = windowOf(member.slice(0, 22));
    // The name of a command that no longer exists stays for a while. It is removed so late that the command's record
    // was removed before, unless no node ran for some time.
    if (should === undefined) return window === Infinity || (has ?? 0) + window <= now;
    return has === undefined && should + LIFE_MS + window <= now;
  });
  const times = new Map<string, number>();
  for (const members of zsets('admitted').values())
    for (const [member, at] of members) times.set(member, Math.max(at, times.get(member) ?? 0));
  const clients = new Map([...kept.values()].map(({ uh, ch, clientId }) => [`${uh}\0${clientId}`, ch]));
  auditMarks({ zsets, now }, { kept, times, clients, shares });
}

type Marks = {
  readonly kept: ReadonlyMap<string, Fields>;
  readonly times: ReadonlyMap<string, number>;
  /** The hashes of clients with a record, by user's hash and client. */
  readonly clients: ReadonlyMap<string, string>;
  readonly shares: Shares;
};

/**
 * Adds up the marks for each span of names. A mark is counted for each command that was admitted in the span. A name
 * may have no mark: the second name of a command that ended very late, and the name of an id that the relay created
 * while the share `marks` had no room. If the window is shorter than the span, one name may stand for several commands.
 */
function auditMarks({ zsets }: Pick<Snapshot, 'zsets' | 'now'>, { kept, times, clients, shares }: Marks): void {
  for (const [part, names] of zsets('names')) {
    const [uh, span] = divided(part);
    const [began, window] = span.split('.').map(Number);
    let certain = 0;
    for (const name of names.keys()) {
      const [clientId = '', commandId = ''] = name.split('\0');
      const member = `${uh}${clients.get(`${uh}\0${clientId}`) ?? ''}${commandId}`;
      const at = Number(kept.get(member)?.admittedAt ?? times.get(member) ?? Number.NaN);
      if (at >= (began ?? 0)) certain++;
    }
    shares.add(`n${span}:${uh}`, shares.marksRanOut ? 0 : certain, (window ?? 0) < NAMES_MS ? Infinity : names.size);
  }
}
