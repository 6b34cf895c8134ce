/** Audits commands: live and ended records, names, reservations, deadlines, waits, and the spans of time. */
import { STATE, textsOf } from '../../src/backends/redis/commands/record.ts';
import type { Differences, Shares } from './differences.ts';
import { readEnded, auditOrder, orderOf, marksIn, auditEndedCounts, auditResults, auditNames } from './ended.ts';
import { isKept, put, fieldsOf, type Recorded, type Fields, nameOf, numbered, type Lists } from './record-fields.ts';
import type { Snapshot } from './snapshot.ts';
import { auditSpans } from './spans.ts';

/** The maximum number of waits for one command (limits.ts: WAITERS_PER_COMMAND). */
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

// Audits live commands.

/** Reads the live commands, and compares the fields of each client's records with one another. */
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

/**
 * Compares the number of commands that wait to be dispatched, and the highest place in the queue that a command was
 * given.
 */
function auditQueue(differences: Differences, { key, client, states }: Queue): void {
  const waiting = states.filter((state) => state[STAGE] === 'queued' || state[STAGE] === 'admitted');
  differences.equal(key, 'n', { has: Number(client.get('n') ?? 0), should: waiting.length });
  const last = Math.max(0, ...waiting.map((state) => Number(state[PLACE])));
  // The highest place stays as long as any command waits, even if the command at that place was dispatched.
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
  // An entry of a node's earlier epoch is ignored. It stays until the command ends or the node waits again.
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
  // The time of a scope may be too early, and a scope may stay without reservations. The next search for due commands
  // corrects both.
  for (const [sh, own] of reserved) {
    const first = Math.min(...own.values());
    const at = due.get(sh);
    if (at === undefined || at > first) differences.add('scopedue', `has ${sh} at ${at}, later than ${first}`);
  }
}
