/** Audits commands: live and ended records, names, reservations, deadlines, waits, and the spans of time. */
import { decodeMark, REQUEST, STATE, textsOf } from '../../src/backends/redis/commands/record.ts';
import type { Differences, Shares } from './differences.ts';
import type { Snapshot } from './snapshot.ts';

type Field = (typeof STATE)[number] | (typeof REQUEST)[number];
type Fields = Readonly<Record<Field, string>>;
/** A command with its record's fields, each '' if it is absent. `span`: that of its record; null while it is live. */
type Recorded = { readonly fields: Fields; readonly span: string | null };
type Lists = Map<string, Map<string, number>>;

/** The longest time between admission and end of a command (lib-reduce), in milliseconds. */
const LIFE_MS = 660_000;
/** How long the key of a span stays after its time of removal, if no node removes it (GRACE_MS of act-words.ts), in milliseconds. */
const GRACE_MS = 3_600_000;
const HOUR_MS = 3_600_000;
/** The shortest span of names (lib-reduce), in milliseconds. */
const NAMES_MS = 60_000;
/** The most waits on a command (limits.ts: WAITERS_PER_COMMAND). */
const WAITS = 64;

export function auditCommands(snapshot: Snapshot, differences: Differences, shares: Shares): void {
  const spans = auditSpans(snapshot, differences);
  const live = readLive(snapshot, differences);
  const ended = readEnded(snapshot, differences, shares);
  auditOrder(snapshot, differences, { letter: 'e', should: orderOf(ended), shares });
  auditOrder(snapshot, differences, { letter: 'd', should: marksIn(snapshot), shares });
  auditReservations(snapshot, differences, live);
  for (const { fields } of live)
    if (fields.queuedBytes !== '') shares.add(`q:${fields.uh}`, Number(fields.queuedBytes));
  auditEndedCounts(snapshot, differences, ended);
  auditResults(snapshot, differences, { spans, ended, shares });
  auditNames(snapshot, differences, {
    spans,
    commands: [...live, ...ended.filter((one) => isKept(snapshot, one))],
    shares,
  });
}

function isKept({ now }: Snapshot, { fields }: Recorded): boolean {
  return Number(fields.forgetAt) > now;
}

function fieldsOf(state: string, request: string): Fields {
  const [own, asked] = [textsOf(state), textsOf(request)];
  const pairs = [...STATE.map((name, i) => [name, own[i] ?? '']), ...REQUEST.map((name, i) => [name, asked[i] ?? ''])];
  return Object.fromEntries(pairs) as Fields;
}

function nameOf({ userId, clientId, commandId }: Fields): string {
  return `${userId}\0${clientId}\0${commandId}`;
}

/** Divides the rest of a key's name into a hash and what follows it. */
function divided(part: string): [hash: string, rest: string] {
  const end = part.indexOf(':');
  return [part.slice(0, end), part.slice(end + 1)];
}

function put(lists: Lists, key: string, member: string, value: number): void {
  const list = lists.get(key) ?? new Map<string, number>();
  lists.set(key, list);
  list.set(member, value);
}

// Spans of time.

/** The spans of each user with their times of removal, by the user's hash. Compares the two indexes and the keys. */
function auditSpans(
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
    // A key expires when its span is over, or some time after it, even if no node has removed the span yet.
    const grace = kind === 'results' ? 0 : GRACE_MS;
    // All that a span had may have been dropped for lack of room.
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

// Live commands.

/** Reads the live commands, and compares the fields of their clients with each other. */
function readLive({ hashes, sets }: Snapshot, differences: Differences): readonly Recorded[] {
  const live: Recorded[] = [];
  const bound = new Map<string, Map<string, number>>();
  for (const [ch, client] of hashes('client')) {
    const key = `client:${ch}`;
    const link = client.get('b');
    if (link !== undefined) put(bound, link.split('\0')[0] ?? '', ch, 0);
    const own = [...client].filter(([field]) => field.startsWith('s') && field.length > 1);
    for (const [field, state] of own) {
      const id = field.slice(1);
      const request = client.get(`a${id}`);
      if (request === undefined) {
        differences.add(key, `has the state of ${id} without its request`);
        continue;
      }
      const fields = fieldsOf(state, request);
      live.push({ fields, span: null });
      differences.equal(key, `the client's hash in ${id}`, { has: fields.ch, should: ch });
      auditLive(differences, { key, id, fields, client });
    }
    for (const field of client.keys()) {
      const isOfCommand = /^[apw]./.test(field);
      if (isOfCommand && !client.has(`s${field.slice(1)}`)) differences.add(key, `has ${field} of no live command`);
      if (!isOfCommand && !/^(s.*|[bno])$/.test(field))
        differences.add(key, `has ${field}, which is no field of a client`);
    }
    auditQueue(differences, { key, client, states: own.map(([, state]) => textsOf(state)) });
  }
  const members = new Map(
    [...sets('bound')].map(([node, clients]) => [node, new Map([...clients].map((ch) => [ch, 0]))]),
  );
  differences.keys('bound', { has: members, should: bound });
  return live;
}

type Queue = {
  readonly key: string;
  readonly client: ReadonlyMap<string, string>;
  readonly states: readonly (readonly string[])[];
};

const [STAGE, PLACE] = [STATE.indexOf('stage'), STATE.indexOf('place')];

/** Compares the number of commands that wait to be dispatched, and the highest place that was given to one. */
function auditQueue(differences: Differences, { key, client, states }: Queue): void {
  const waiting = states.filter((state) => state[STAGE] === 'queued' || state[STAGE] === 'admitted');
  differences.equal(key, 'n', { has: Number(client.get('n') ?? 0), should: waiting.length });
  const last = Math.max(0, ...waiting.map((state) => Number(state[PLACE])));
  // The highest place stays as long as any command waits, also if that of the place has been dispatched.
  if (Number(client.get('o') ?? 0) < last) differences.add(key, `has o at ${client.get('o')} below the place ${last}`);
}

type LiveCommand = {
  readonly key: string;
  readonly id: string;
  readonly fields: Fields;
  readonly client: ReadonlyMap<string, string>;
};

function auditLive(differences: Differences, { key, id, fields, client }: LiveCommand): void {
  const { stage, queuedBytes, dispatchedAt } = fields;
  if (stage === 'terminal' || fields.forgetAt !== '') differences.add(key, `has ${id}, which has ended`);
  const bytes = Buffer.byteLength(client.get(`p${id}`) ?? '');
  const counted = dispatchedAt !== '' || bytes === 0 ? '' : String(bytes);
  differences.equal(key, `the queued bytes of ${id}`, { has: queuedBytes, should: counted });
  const entries = (client.get(`w${id}`) ?? '').split('\0').slice(0, -1);
  const nodes = new Set<string>();
  let waits = 0;
  // An entry of a node's earlier epoch stays until the command ends or the node waits again: it counts no more.
  for (let i = 0; i < entries.length; i += 3) {
    const [node = '', , list = ''] = entries.slice(i, i + 3);
    const numbers = list.split(',').slice(0, -1);
    waits += numbers.length;
    if (nodes.has(node)) differences.add(key, `has two entries of ${node} among the waits of ${id}`);
    nodes.add(node);
    if (numbers.length === 0) differences.add(key, `has an entry without waits of ${node} for ${id}`);
    if (new Set(numbers).size < numbers.length) differences.add(key, `has a wait of ${node} for ${id} twice`);
    if (stage === 'acknowledged' && numbers.some((wait) => wait.startsWith('a')))
      differences.add(key, `has a wait for the acknowledgement of ${id}, which is acknowledged`);
  }
  if (client.get(`w${id}`) === '') differences.add(key, `has w${id} without a wait`);
  if (waits > WAITS) differences.add(key, `has ${waits} waits for ${id}`);
}

/** Compares reservations, members and scopes, and the indexes of deadlines, with the live commands. */
function auditReservations({ hashes, zsets }: Snapshot, differences: Differences, live: readonly Recorded[]): void {
  const reserved: Lists = new Map();
  const members: Lists = new Map();
  const scopes = new Map<string, number>();
  const unconnected = new Map<string, number>();
  for (const { fields } of live) {
    const { sh, scopeId, userId, uh, deadline, ch, commandId } = fields;
    put(reserved, sh, nameOf(fields), Number(deadline));
    scopes.set(scopeId, 0);
    if (scopeId !== userId) put(members, sh, uh, (members.get(sh)?.get(uh) ?? 0) + 1);
    if (fields.queuedAt === '')
      unconnected.set(deadline.padStart(13, '0') + ch + commandId, Number(fields.connectDeadline));
  }
  differences.keys('reserved', { has: zsets('reserved'), should: reserved });
  const counted = [...hashes('members')].map(([sh, own]) => [sh, numbered(own)] as const);
  differences.keys('members', { has: new Map(counted), should: members });
  differences.members('scopes', { has: zsets('scopes').get(''), should: scopes });
  differences.members('connectdue', { has: zsets('connectdue').get(''), should: unconnected });
  const due = zsets('scopedue').get('') ?? new Map<string, number>();
  // A scope's time may be too early, and a scope without reservations stays: the next search for due commands mends
  // both.
  for (const [sh, own] of reserved) {
    const first = Math.min(...own.values());
    const at = due.get(sh);
    if (at === undefined || at > first) differences.add('scopedue', `has ${sh} at ${at}, later than ${first}`);
  }
}

function numbered(fields: ReadonlyMap<string, string>): ReadonlyMap<string, number> {
  return new Map([...fields].map(([field, value]) => [field, Number(value)]));
}

// Ended commands.

/**
 * Reads the records of ended commands, and finds commands that have two records at once. Counts the marks that stand in
 * the place of records.
 */
function readEnded(snapshot: Snapshot, differences: Differences, shares: Shares): readonly Recorded[] {
  const ended: Recorded[] = [];
  const kept = new Map<string, string>();
  for (const [part, records] of snapshot.hashes('ended')) {
    const [uh, span] = divided(part);
    for (const [name, whole] of records) {
      const mark = decodeMark(whole);
      if (mark) {
        // The names of a command that ended late may be removed before its mark, and with them the room for the mark.
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

/** The names that a share bounds over all nodes, each with the time until which it counts, by user's hash and span. */
type Order = ReadonlyMap<string, ReadonlyMap<string, number>>;

function orderOf(ended: readonly Recorded[]): Order {
  const order: Lists = new Map();
  for (const { fields, span } of ended)
    put(order, `${fields.uh}:${span}`, fields.ch + fields.commandId, Number(fields.forgetAt));
  return order;
}

/** Returns the marks of messages that are there, in the span of each by which the oldest are found. */
function marksIn({ lists, strings, now }: Snapshot): Order {
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

/** Compares the orders and the indexes by which the oldest are dropped with what is there, and counts it. */
function auditOrder({ lists, zsets }: Snapshot, differences: Differences, { letter, should, shares }: Ordered): void {
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

/** Compares how many commands are forgotten in each second with the records. */
function auditEndedCounts({ hashes, now }: Snapshot, differences: Differences, ended: readonly Recorded[]): void {
  const seconds = new Map<string, number>();
  for (const { fields } of ended) {
    const second = String(Math.floor(Number(fields.forgetAt) / 1000));
    seconds.set(second, (seconds.get(second) ?? 0) + 1);
  }
  const has = numbered(hashes('endedcount').get('') ?? new Map());
  // The counts of past seconds are not read, and are removed from time to time.
  const past = (second: string): boolean => Number(second) <= Math.floor(now / 1000);
  differences.members('endedcount', { has, should: seconds }, past);
}

type Ended = {
  readonly spans: ReadonlyMap<string, ReadonlyMap<string, number>>;
  readonly ended: readonly Recorded[];
  readonly shares: Shares;
};

/** Compares the results with the records that name them, and adds up their bytes. */
function auditResults({ hashes, now }: Snapshot, differences: Differences, { spans, ended, shares }: Ended): void {
  for (const [part, results] of hashes('results')) {
    const [uh, began] = divided(part);
    const bytes = [...results.values()].reduce((sum, result) => sum + Buffer.byteLength(result), 0);
    shares.add(`r${began}:${uh}`, bytes);
  }
  for (const [uh, own] of spans)
    for (const [name, over] of own)
      // The results of a span expire when it is over, and are given back when a node removes the span.
      if (name.startsWith('r') && over <= now && !hashes('results').has(`${uh}:${name.slice(1)}`))
        shares.add(`${name}:${uh}`, 0, Infinity);
  // A result may stay longer than its record, which may be removed sooner. So only records are looked up.
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
  /** The live commands, and those that ended and whose records are kept. */
  readonly commands: readonly Recorded[];
  readonly shares: Shares;
};

/** Compares the names of commands, in the listings by name and by time of admission, and counts the marks of names. */
function auditNames({ zsets, now }: Snapshot, differences: Differences, { spans, commands, shares }: Named): void {
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
    // The name of a command that is gone stays for a while. It is removed so late that a command's record is gone by
    // then, except if no node ran for a while.
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
 * Adds up the marks of each span of names. One is counted for each command that was admitted in the span. A name may
 * stand for no mark: the second name of a command that ended very late, and that of an id that the relay made while the
 * share `marks` had no room. If the window is shorter than the span, one name may stand for several commands.
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
