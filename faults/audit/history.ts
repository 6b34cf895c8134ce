/**
 * Audits history: compares the heads of streams with their blocks, the places of commands' rows with the rows, and
 * sums.
 */
import { createHash } from 'node:crypto';
import type { Differences, Shares } from './differences.ts';
import type { Entry, Snapshot } from './snapshot.ts';

/** A stream with its head (see lib-history). */
type Stream = {
  readonly userId: string;
  readonly uh: string;
  readonly suffix: string;
  readonly sth: string;
  readonly head: Head;
  readonly blocks: readonly Entry[];
};
type Head = {
  readonly seq: number;
  readonly at: number;
  readonly turn: number;
  readonly evictedAt: number;
  readonly next: number;
  readonly bytes: number;
};
type Span = { readonly start: number; readonly over: number };

/** The suffix of link histories, which are in no listing and no count. */
const LINKS = 'links';
/** The number of fields of a row in a block, and the index of the command's id among them. */
const FIELDS = 11;
const COMMAND = 4;
/** The maximum number of places in the ZSET of one command (lib-history-commands). Older places are dropped. */
const PLACES = 100_000;
/** The maximum length of a span of places (lib-history-spans), in milliseconds. */
const LONGEST_SPAN_MS = 43_200_000;

export function auditHistory(snapshot: Snapshot, differences: Differences, shares: Shares): void {
  const streams = readStreams(snapshot, differences);
  auditIndexes(snapshot, differences, streams);
  for (const stream of streams) {
    auditBlocks(snapshot, differences, stream);
    if (stream.suffix !== LINKS) shares.add(`h:${stream.uh}`, stream.head.bytes);
  }
  auditOver(snapshot, differences);
  auditPlaces(snapshot, differences, streams);
}

/** Reads the streams that have a head, and compares them with the index of the times at which streams are forgotten. */
function readStreams({ hashes, streams, zsets, now }: Snapshot, differences: Differences): readonly Stream[] {
  const found: Stream[] = [];
  const known = new Set<string>();
  for (const [member, goneAt] of zsets('streamgone').get('') ?? []) {
    const [userId = '', suffix = '', uh = '', sth = ''] = member.split('\0');
    const text = hashes('streamheads').get(uh)?.get(sth);
    known.add(sth);
    if (text !== undefined)
      found.push({ userId, uh, suffix, sth, head: headOf(text), blocks: streams('stream').get(sth) ?? [] });
    // A user's heads expire long after the time at which all of the user's streams should be forgotten.
    else if (goneAt > now) differences.add('streamgone', `has ${member}, which has no head`);
  }
  for (const [uh, heads] of hashes('streamheads'))
    for (const field of heads.keys()) {
      const sth = field.length === 23 && field.startsWith('c') ? field.slice(1) : field;
      if (sth.length === 22 ? !known.has(sth) : !/^[tfs]$/.test(sth))
        differences.add(`streamheads:${uh}`, `has ${field} of no stream`);
      if (field !== sth && !heads.has(sth)) differences.add(`streamheads:${uh}`, `has ${field} without the head`);
    }
  const headed = new Set(found.map(({ sth }) => sth));
  for (const sth of streams('stream').keys()) if (!headed.has(sth)) differences.add(`stream:${sth}`, 'has no head');
  return found;
}

function headOf(text: string): Head {
  const [seq = 0, at = 0, turn = 0, , evictedAt = 0, next = 0, bytes = 0] = text.split(' ').map(Number);
  return { seq, at, turn, evictedAt, next, bytes };
}

/** Compares the listings of streams with the streams themselves. */
function auditIndexes({ hashes, zsets }: Snapshot, differences: Differences, streams: readonly Stream[]): void {
  const suffixes = new Map<string, Map<string, number>>();
  const ages = new Map<string, Map<string, number>>();
  const users = new Map<string, number>();
  for (const { userId, uh, suffix, sth, head } of streams) {
    const turns = Number(hashes('streamheads').get(uh)?.get('t') ?? 0);
    if (head.turn > turns)
      differences.add(`streamheads:${uh}`, `has t at ${turns} below the turn ${head.turn} of ${suffix}`);
    if (suffix === LINKS) continue;
    users.set(`${userId}\0${uh}`, 0);
    suffixes.set(uh, (suffixes.get(uh) ?? new Map<string, number>()).set(suffix, 0));
    ages.set(uh, (ages.get(uh) ?? new Map<string, number>()).set(`${suffix}\0${sth}`, head.turn));
  }
  differences.keys('streams', { has: zsets('streams'), should: suffixes });
  differences.members('streamusers', { has: zsets('streamusers').get(''), should: users });
  // The index of ages may be older than the last write of a stream, but never newer.
  const behind = (_part: string, _member: string, has?: number, turn?: number): boolean =>
    has !== undefined && turn !== undefined && has <= turn;
  differences.keys('streamage', { has: zsets('streamage'), should: ages }, behind);
}

/** Compares the head of a stream with its blocks: bytes, last row, and rows without gaps. */
function auditBlocks({ hashes, zsets, now }: Snapshot, differences: Differences, stream: Stream): void {
  const { uh, suffix, sth, head, blocks } = stream;
  const key = `stream:${sth}`;
  const goneAt = zsets('streamgone').get('')?.get(`${stream.userId}\0${suffix}\0${uh}\0${sth}`) ?? 0;
  // The key of a stream that should be forgotten may expire before its head.
  if (blocks.length === 0 && goneAt <= now) return;
  const bytes = blocks.reduce((sum, { fields }) => sum + Buffer.byteLength(fields[1] ?? ''), 0);
  differences.equal(`streamheads:${uh}`, `bytes of ${suffix}`, { has: head.bytes, should: bytes });
  let upcoming: number | null = null;
  let last = { at: 0, seq: 0 };
  for (const { id, fields } of blocks) {
    const [at = 0, seq = 0] = id.split('-').map(Number);
    const rows = (fields[1] ?? '').split('\0').length - 1;
    differences.equal(key, `rows in ${id}`, { has: Number(fields[0]), should: rows / FIELDS });
    if (upcoming !== null) differences.equal(key, `the first row of ${id} at`, { has: seq, should: upcoming });
    upcoming = seq + Number(fields[0]);
    last = { at, seq: upcoming - 1 };
  }
  const end = `the last row of ${suffix} at`;
  differences.equal(`streamheads:${uh}`, end, { has: `${head.at}-${head.seq}`, should: `${last.at}-${last.seq}` });
  const sizes = new Map(blocks.map(({ id, fields }) => [id, Buffer.byteLength(fields[1] ?? '')]));
  // The oldest blocks, as the last trim read them. Some of them may have been removed since.
  for (const one of (hashes('streamheads').get(uh)?.get(`c${sth}`) ?? '').split(' ')) {
    const [id = '', size] = one.split(':');
    const should = sizes.get(id);
    if (should !== undefined)
      differences.equal(`streamheads:${uh}`, `bytes of block ${id}`, { has: Number(size), should });
  }
}

/**
 * Checks that each user in the index of users that may exceed their guarantee of history has some history. The order of
 * the index may be outdated.
 */
function auditOver({ hashes, zsets }: Snapshot, differences: Differences): void {
  const meta = hashes('meta').get('');
  for (const member of zsets('historyover').get('')?.keys() ?? []) {
    const held = meta?.get(`h:${member.split('\0')[1]}`);
    if (held === undefined) differences.add('historyover', `has ${member}, who holds no history`);
  }
}

// Audits the places of commands' rows.

/** The time at which each row was written, by its place (as text). */
type Places = Map<string, Map<string, number>>;

/** Compares the places of each user's rows of commands with the rows, and the spans of places with their index. */
function auditPlaces(snapshot: Snapshot, differences: Differences, streams: readonly Stream[]): void {
  const { hashes, zsets, now } = snapshot;
  const spans = new Map([...hashes('streamheads')].map(([uh, heads]) => [uh, spansOf(heads.get('s') ?? '')]));
  const rowspans = new Map<string, number>();
  for (const [uh, own] of spans) for (const { start, over } of own) rowspans.set(`${uh}\0${start}`, over);
  differences.members('rowspans', { has: zsets('rowspans').get(''), should: rowspans });
  const rows = new Map<string, Places>();
  for (const stream of streams) addRows(stream, rows);
  const { places, full } = readPlaces(snapshot, differences, rows);
  const evicted = zsets('evicted').get('') ?? new Map<string, number>();
  const users = new Map(streams.map(({ uh, userId }) => [uh, userId]));
  for (const uh of new Set([...rows.keys(), ...places.keys()])) {
    const own = spans.get(uh) ?? [];
    const heads = streams.filter((stream) => stream.uh === uh).map(({ head }) => head.evictedAt);
    const droppedAt = Math.max(evicted.get(users.get(uh) ?? '') ?? 0, ...heads);
    const has: Places = places.get(uh) ?? new Map();
    const should: Places = rows.get(uh) ?? new Map();
    for (const commandId of new Set<string>([...has.keys(), ...should.keys()])) {
      const key = `cmdrows:${uh} of ${commandId}`;
      differences.members(key, { has: has.get(commandId), should: should.get(commandId) }, (_place, place, row) => {
        // A place is removed with its span, which may happen before its row is removed with its stream.
        if (place === undefined && row !== undefined) return full.has(`${uh}\0${commandId}`) || !hasSpan(own, row, now);
        // If a row is removed because of its age, its place stays until its span is removed. The same is true for rows
        // after the first few hundred that one call removes to make room.
        const span = own.findLast(({ start }) => start <= (place ?? 0));
        return span === undefined || (place ?? 0) <= Math.max(now - retentionOf(span), droppedAt);
      });
    }
  }
}

function spansOf(text: string): readonly Span[] {
  return [...text.matchAll(/(\d+):(\d+)/g)].map(([, start, over]) => ({ start: Number(start), over: Number(over) }));
}

function hasSpan(spans: readonly Span[], at: number, now: number): boolean {
  const span = spans.findLast(({ start }) => start <= at);
  return span !== undefined && span.over > now;
}

/**
 * Returns how long rows are kept, computed from a span. A span is removed after its own length, an eighth of the
 * retention, and the retention itself.
 */
function retentionOf({ start, over }: Span): number {
  return Math.max(over - start - LONGEST_SPAN_MS, Math.floor(((over - start) * 8) / 9));
}

function addRows({ uh, suffix, blocks }: Stream, rows: Map<string, Places>): void {
  const own: Places = rows.get(uh) ?? new Map();
  rows.set(uh, own);
  for (const { id, fields } of blocks) {
    const [at = 0, seq = 0] = id.split('-').map(Number);
    const texts = (fields[1] ?? '').split('\0');
    for (let row = 0; (row + 1) * FIELDS < texts.length + 1; row++) {
      const commandId = texts[row * FIELDS + COMMAND] ?? '';
      if (commandId !== '') addPlace(own, commandId, `${at} ${suffix} ${seq + row}`, at);
    }
  }
}

function addPlace(places: Places, commandId: string, place: string, at: number): void {
  const own = places.get(commandId) ?? new Map<string, number>();
  places.set(commandId, own);
  own.set(place, at);
}

type ReadPlaces = {
  /** The places by user's hash and command. */
  readonly places: Map<string, Places>;
  /** The commands (user's hash, NUL, id) whose ZSET is full, so that places were dropped. */
  readonly full: ReadonlySet<string>;
};

/** Reads all places: those in the HASHes of spans, and the further ones in the ZSETs of commands. */
function readPlaces(
  { hashes, zsets }: Snapshot,
  differences: Differences,
  rows: ReadonlyMap<string, Places>,
): ReadPlaces {
  const places = new Map<string, Places>();
  const full = new Set<string>();
  const add = (key: string, uh: string, commandId: string, found: readonly string[]): void => {
    const own: Places = places.get(uh) ?? new Map();
    places.set(uh, own);
    const [at, suffix, seq] = [Number(found[0]), found[1] ?? '', Number(found[2])];
    const place = `${at} ${suffix} ${seq}`;
    if (own.get(commandId)?.has(place)) differences.add(key, `has the place ${place} of ${commandId} twice`);
    addPlace(own, commandId, place, at);
  };
  for (const [part, commands] of hashes('cmdrows')) {
    const uh = part.slice(0, part.indexOf(':'));
    for (const [commandId, text] of commands) {
      const texts = text.split('\0').slice(0, -1);
      for (let i = 0; i < texts.length; i += 3) add(`cmdrows:${part}`, uh, commandId, texts.slice(i, i + 3));
    }
  }
  const ids = new Map<string, string>();
  if (zsets('cmdmore').size > 0)
    for (const [uh, own] of [...rows, ...places])
      for (const id of own.keys()) ids.set(`${uh}:${createHash('sha1').update(id).digest('hex')}`, id);
  for (const [part, members] of zsets('cmdmore')) {
    const uh = part.slice(0, part.indexOf(':'));
    const commandId = ids.get(part) ?? part;
    if (members.size >= PLACES) full.add(`${uh}\0${commandId}`);
    for (const member of members.keys()) add(`cmdmore:${part}`, uh, commandId, member.split('\0'));
  }
  return { places, full };
}
