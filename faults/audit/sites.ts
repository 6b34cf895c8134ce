/** Audits sites, sessions, grants and tickets, and the chain of the administrators' audit. */
import type { Differences } from './differences.ts';
import type { Snapshot } from './snapshot.ts';

type Members = Map<string, number>;

export function auditSites(snapshot: Snapshot, differences: Differences): void {
  auditSessions(snapshot, differences);
  auditGrants(snapshot, differences);
  auditTickets(snapshot, differences);
  auditChain(snapshot, differences);
}

function put<V>(lists: Map<string, Map<string, V>>, key: string, member: string, value: V): void {
  const list = lists.get(key) ?? new Map<string, V>();
  lists.set(key, list);
  list.set(member, value);
}

/** Compares the number of sites with the sites, and the listings of sessions with the sessions. */
function auditSessions({ hashes, zsets, now }: Snapshot, differences: Differences): void {
  const [listed, sites] = [zsets('sites').get('')?.size ?? 0, hashes('site').size];
  differences.equal('sites', 'sites', { has: listed, should: sites });
  const names = new Map<string, Members>();
  const ends = new Map<string, Members>();
  for (const [sh, row] of hashes('session')) {
    const member = `${row.get('sessionId')}\0${sh}`;
    put(names, row.get('site') ?? '', member, 0);
    put(ends, row.get('site') ?? '', member, Number(row.get('forgetAt')));
  }
  // A session that should be forgotten may have expired before the next operation on its site removes it from the
  // listings.
  const due = (site: string, member: string): boolean => (zsets('sessionends').get(site)?.get(member) ?? 0) <= now;
  const gone = (site: string, member: string, _has?: number, should?: number): boolean =>
    should === undefined && due(site, member);
  differences.keys('sessions', { has: zsets('sessions'), should: names }, gone);
  differences.keys('sessionends', { has: zsets('sessionends'), should: ends }, gone);
}

/** Compares the tokens and the numbers of grants with the grants of sessions. */
function auditGrants({ hashes, strings }: Snapshot, differences: Differences): void {
  const tokens = new Map<string, string>();
  for (const [sh, row] of hashes('session')) {
    const key = `session:${sh}`;
    let highest = 0;
    for (const [field, value] of row) {
      if (!field.startsWith('life:')) continue;
      const id = field.slice('life:'.length);
      const life = JSON.parse(value) as { readonly order: string; readonly token: string };
      highest = Math.max(highest, Number(life.order));
      tokens.set(life.token, `${sh} ${id}`);
      if (!row.has(`what:${id}`)) differences.add(key, `has the grant ${id} without what it allows`);
    }
    // Ended grants are removed when room is needed, so the number of given grants may be higher than that of the last
    // stored one.
    if (Number(row.get('given')) < highest) differences.add(key, `has given at ${row.get('given')} below ${highest}`);
  }
  const has = strings('token');
  // The token of an expired session expires by itself.
  differences.members('token', { has, should: tokens }, (_token, of, should) => {
    return should === undefined && !hashes('session').has(String(of).slice(0, 22));
  });
}

/** Compares the list of each session's tickets, redeemed or not, with the tickets. */
function auditTickets({ hashes, zsets, now }: Snapshot, differences: Differences): void {
  const open = new Map<string, Members>();
  const redeemed = new Map<string, Members>();
  for (const [ticket, row] of hashes('ticket')) {
    const session = row.get('session') ?? '';
    if (row.has('redeemed')) put(redeemed, session, ticket, zsets('redeemed').get(session)?.get(ticket) ?? 0);
    else put(open, session, ticket, Number(row.get('until')));
  }
  // A ticket that was not redeemed expires an hour after its time. A later operation removes it from its session's
  // list.
  const expired = (_session: string, _ticket: string, has?: number, should?: number): boolean =>
    should === undefined && (has ?? 0) <= now;
  differences.keys('tickets', { has: zsets('tickets'), should: open }, expired);
  differences.keys('redeemed', { has: zsets('redeemed'), should: redeemed });
}

/** Compares the head and the indexes of the administrators' audit with its rows. */
function auditChain({ hashes, streams, zsets }: Snapshot, differences: Differences): void {
  const rows = streams('audit').get('') ?? [];
  if (rows.length === 0) return;
  const numbers = rows.map(({ id }) => Number(id.split('-')[0]));
  const [first = 0, last = 0] = [numbers[0], numbers.at(-1)];
  differences.equal('audithead', 'seq', { has: Number(hashes('audithead').get('')?.get('seq')), should: last });
  differences.equal('audit', 'rows', { has: rows.length, should: last - first + 1 });
  const acts = zsets('auditacts').get('') ?? new Map<string, number>();
  const users = new Map<string, Members>();
  for (const [i, { fields }] of rows.entries()) {
    const number = String(numbers[i]);
    const user = fields[fields.indexOf('u') + 1] ?? '';
    if (user !== '' && acts.has(number)) put(users, user, number, Number(number));
  }
  differences.keys('auditof', { has: zsets('auditof'), should: users });
  for (const [key, members] of [
    ['auditacts', acts],
    ['auditends', zsets('auditends').get('') ?? new Map()],
  ] as const)
    for (const [member, number] of members)
      if (number < first || number > last) differences.add(key, `has ${member}, which is no row`);
}
