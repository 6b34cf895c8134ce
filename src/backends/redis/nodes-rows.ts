/**
 * The parts of the node store: encodes and decodes mailbox rows and reports, reads a mailbox, runs the cleanup after
 * nodes that are gone, and finds nodes that no longer renew their lease.
 */
import type { Binding, DispatcherNode, MailboxRow, NodeReport, NodeRow } from '../../core/commands/stores.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { ClientKey, CommandKey } from '../../core/ids.ts';
import type { JsonText } from '../../core/json.ts';
import { NODE_SILENT_MS } from '../../core/limits.ts';
import type { Clock } from '../../core/ports.ts';
import { heldCommand, decodeCommand, decodeEnded, requestField, textsOf, type Held } from './commands/record.ts';
import { decodeConnection } from './connections-rows.ts';
import type { RedisParts } from './parts.ts';
import { partitionsOf } from './store.ts';
import { listOf, numbersOf, type Client, type Reply } from './client.ts';

/**
 * A row of a mailbox, before a large result is fetched. `id`: its entry; `place`: its index among the rows of the
 * entry; `last`: whether it is the entry's last row.
 */
export type RawRow = {
  readonly id: string;
  readonly place: number;
  readonly last: boolean;
  readonly fields: ReadonlyMap<string, string>;
};

/** Encodes the fields of a row after its kind: names and values in turn. */
export function encodeRow(row: Exclude<NodeRow, { kind: 'pulse' }>): readonly (string | number)[] {
  switch (row.kind) {
    case 'kick': {
      const { client, epoch, cause, instanceId } = row;
      const named = ['userId', client.userId, 'clientId', client.clientId];
      const successor = instanceId === null ? [] : ['instanceId', instanceId];
      return [...named, 'epoch', epoch, 'cause', cause, ...successor];
    }
    case 'drain':
      return ['withinMs', row.withinMs];
    case 'question':
      return ['questionId', row.questionId, 'from', row.from, 'topic', row.topic, 'text', row.text];
    case 'answer':
      return ['questionId', row.questionId, 'text', row.text];
  }
}

type DecodedRow = Exclude<MailboxRow, { kind: 'pulse' }>;
type RowParts = { readonly result: JsonText | null; readonly offered: Held | null };

/**
 * Decodes a row: to several rows if it names several commands, and to none if its kind is one that only a newer version
 * of callboard knows. `result`: the result of a reply. `offered`: the command that the row contains. A reply is for all
 * callers of the node that wait for the command, so its rpc id is ''.
 */
export function decodeRows(fields: ReadonlyMap<string, string>, parts: RowParts): readonly DecodedRow[] {
  const row = decodeRow(fields, parts);
  if (row?.kind !== 'command') return row ? [row] : [];
  const { key } = row;
  return key.commandId.split('\0').map((commandId) => ({ kind: 'command', key: { ...key, commandId } }));
}

function decodeRow(fields: ReadonlyMap<string, string>, { result, offered }: RowParts): DecodedRow | null {
  const text = (name: string): string => fields.get(name) ?? '';
  const { client, key } = namedIn(fields, offered);
  const kind = text('kind');
  switch (kind) {
    case 'command':
    case 'ended':
      return { kind, key };
    case 'cancel':
      return { kind, key, reason: fields.get('reason') ?? null };
    case 'kick': {
      const cause = text('cause') === 'operator' ? 'operator' : 'replaced';
      return { kind, client, epoch: Number(text('epoch')), cause, instanceId: fields.get('instanceId') ?? null };
    }
    case 'drain':
      return { kind, withinMs: Number(text('withinMs')) };
    case 'question': {
      const topic = text('topic');
      if (topic !== 'series' && topic !== 'leaving' && topic !== 'waits' && topic !== 'answers') return null;
      return { kind, questionId: text('questionId'), from: text('from'), topic, text: text('text') };
    }
    case 'answer':
      return { kind, questionId: text('questionId'), text: text('text') };
    case 'reply': {
      const command = result === null ? decodeCommand(text('record')) : decodeEnded(text('record'));
      return { kind, reply: { rpcId: '', command, result } };
    }
    default:
      return null;
  }
}

/**
 * Reads the client and the command that a row names. The names are in fields of the row, or in the request of the
 * command that the row contains.
 */
function namedIn(
  fields: ReadonlyMap<string, string>,
  offered: Held | null,
): { readonly client: ClientKey; readonly key: CommandKey } {
  const text = (name: 'userId' | 'clientId' | 'commandId'): string =>
    offered ? offered.command[name] : (fields.get(name) ?? '');
  const client = { userId: text('userId'), clientId: text('clientId') };
  return { client, key: { ...client, commandId: text('commandId') } };
}

/** Decodes the command that a row contains; null for a row that only names a command, and for rows of other kinds. */
export function heldOf(fields: ReadonlyMap<string, string>): Held | null {
  const [state, request] = [fields.get('state'), fields.get('request')];
  if (state === undefined || request === undefined) return null;
  return heldCommand({ state, request, waits: fields.get('waits') ?? '', params: fields.get('params') ?? null });
}

/** Returns the rows in the reply of XREAD or XRANGE for one stream, in order. */
function rawRows(entries: unknown): readonly RawRow[] {
  if (!Array.isArray(entries)) return [];
  return (entries as readonly (readonly [string, Reply])[]).flatMap(([id, flat]) => {
    const rows = rowsIn(listOf(flat).map(String));
    return rows.map((fields, place) => ({ id, place, last: place === rows.length - 1, fields }));
  });
}

/** Splits the fields of an entry into rows. Each row begins with its field `kind`. */
function rowsIn(flat: readonly string[]): readonly ReadonlyMap<string, string>[] {
  const rows: Map<string, string>[] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const [name = '', value = ''] = [flat[i], flat[i + 1]];
    if (name === 'kind') rows.push(new Map());
    rows.at(-1)?.set(name, value);
  }
  return rows;
}

export function encodeReport(report: NodeReport): string {
  return JSON.stringify({ ...report, counters: Object.fromEntries(report.counters) });
}

/** Decodes the report of a node; null if the node has not reported. */
export function decodeNode(nodeId: string, reply: Reply): DispatcherNode | null {
  const [report, updatedAt] = Array.isArray(reply) ? (reply as readonly Reply[]) : [];
  if (typeof report !== 'string') return null;
  type Stored = Omit<NodeReport, 'counters' | 'process'> & {
    readonly counters: Readonly<Record<string, number>>;
    readonly process?: NodeReport['process'];
  };
  const stored = JSON.parse(report) as Stored;
  const counters = new Map(Object.entries(stored.counters));
  return { ...stored, counters, process: stored.process ?? null, nodeId, updatedAt: Number(updatedAt) };
}

// Reads the mailbox of a node (a Redis stream), in order and without loss while the node lives. Interprets no row.

/** The most entries that one read returns. Each has the rows of one call. */
const ENTRIES = 32;
const BLOCK_MS = 1_000;
/**
 * The longest time that a read may take, milliseconds. After that its connection is replaced, even if it looks healthy.
 */
const TURN_MS = BLOCK_MS + 1_500;
const CONNECT_MS = 3_000;
const RETRY_MS = { first: 50, most: 1_000 } as const;

type MailboxOptions = {
  readonly parts: Pick<RedisParts, 'connect' | 'log' | 'system'>;
  /** The key of the mailbox, which is a stream. */
  readonly key: string;
  /**
   * Called with one row at a time, in the order in which the rows were posted. If it rejects, it is called with the
   * same row again. A row for which it resolved is not delivered again.
   */
  readonly take: (row: RawRow) => Promise<void>;
};

type Reading = {
  stopped: boolean;
  client: Client | null;
  /** The id of the last entry whose rows were all taken. */
  cursor: string;
  trimmed: string;
  /** The entry that was taken in part, and how many of its rows were taken. */
  begun: { readonly id: string; readonly taken: number };
  wake: () => void;
};

/**
 * Reads a mailbox from its beginning until the returned function is called. It has its own connection, makes one
 * blocking read at a time, and trims the rows that were taken. After any failure it continues after the last taken row,
 * over a new connection.
 */
export function readMailbox(options: MailboxOptions): () => void {
  const begun = { id: '', taken: 0 };
  const reading: Reading = { stopped: false, client: null, cursor: '0-0', trimmed: '0-0', begun, wake: () => {} };
  void readOn(options, reading);
  return () => {
    reading.stopped = true;
    reading.client?.disconnect();
    reading.wake();
  };
}

async function readOn(options: MailboxOptions, reading: Reading): Promise<void> {
  const { log, system } = options.parts;
  let waitMs: number = RETRY_MS.first;
  let since: number | null = null;
  const turned = (): void => {
    waitMs = RETRY_MS.first;
    if (since !== null) log.info({ mailbox: options.key, afterMs: system.now() - since }, 'a mailbox is read again');
    since = null;
  };
  while (!reading.stopped) {
    try {
      await readOver(options, reading, turned);
    } catch (error) {
      if (!reading.stopped && since === null)
        log.warn({ err: error, mailbox: options.key }, 'a mailbox cannot be read');
      since ??= system.now();
    }
    reading.client?.disconnect();
    reading.client = null;
    if (!reading.stopped) await pause(options.parts.system, reading, waitMs);
    waitMs = Math.min(RETRY_MS.most, waitMs * 2);
  }
}

/** Reads over one connection until it fails. */
async function readOver({ parts, key, take }: MailboxOptions, reading: Reading, turned: () => void): Promise<void> {
  const client = parts.connect('mailbox');
  reading.client = client;
  client.on('error', (error: unknown) => parts.log.debug({ err: error }, 'a mailbox connection failed'));
  await within(parts.system, CONNECT_MS, client.connect());
  while (!reading.stopped) {
    const rows = await within(parts.system, TURN_MS, turn(client, key, reading));
    turned();
    for (const row of rows) {
      if (reading.stopped) return;
      if (row.id === reading.begun.id && row.place < reading.begun.taken) continue;
      await take(row);
      reading.begun = { id: row.id, taken: row.place + 1 };
      if (row.last) reading.cursor = row.id;
    }
  }
}

/** Makes one round trip: trims the rows that were taken, and reads the next ones. */
async function turn(client: Client, key: string, reading: Reading): Promise<readonly RawRow[]> {
  const { cursor, trimmed } = reading;
  const pipeline = client.pipeline();
  if (cursor !== trimmed) pipeline.xtrim(key, 'MINID', after(cursor));
  pipeline.xread('COUNT', ENTRIES, 'BLOCK', BLOCK_MS, 'STREAMS', key, cursor);
  const replies = (await pipeline.exec()) ?? [];
  for (const [error] of replies) if (error) throw error;
  reading.trimmed = cursor;
  const streams = replies.at(-1)?.[1];
  return Array.isArray(streams) ? streams.flatMap(([, entries]: [string, unknown]) => rawRows(entries)) : [];
}

/** Returns the smallest entry id after this one. */
function after(id: string): string {
  const [ms, seq] = id.split('-');
  return `${ms}-${BigInt(seq ?? 0) + 1n}`;
}

/** Waits this long, or until `wake` of the waiter is called. */
export function pause(system: Clock, waiter: { wake: () => void }, ms: number): Promise<void> {
  return new Promise((done) => {
    const cancel = system.after(ms, done);
    waiter.wake = () => {
      cancel();
      done();
    };
  });
}

async function within<T>(system: Clock, ms: number, promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const cancel = system.after(ms, () => reject(new Error(`no answer within ${ms} ms`)));
  try {
    return await Promise.race([promise, late]);
  } finally {
    cancel();
    promise.catch(() => {});
  }
}

// Runs the cleanup after nodes that are gone, part by part. The rules are in the act `reap` of nodes.lua.

type ReaperOptions = {
  readonly parts: Pick<RedisParts, 'store' | 'log'>;
  /** Called with the links that were found lost, each once in the whole deployment. */
  readonly linksLost: (connections: readonly Connection[]) => void;
  /** Parks the commands that wait for a client, and unbinds it, unless a newer link came up. */
  readonly park: (client: ClientKey, link: Binding) => Promise<unknown>;
};

export type Reaper = ReturnType<typeof createReaper>;

export function createReaper({ parts, linksLost, park }: ReaperOptions) {
  const underWay = new Set<string>();
  /**
   * Removes all that a node held in a partition. `boot`: the boot id of this process if the node is its own, or null
   * for another node. Another node is cleaned up only if its lease is over. Throws the errors of acts.
   */
  const clear = async (partition: number, node: string, boot: string | null): Promise<void> => {
    for (;;) {
      const [more, rows, waiting] = listOf(await parts.store.act(partition, 'nodes-reap', [node, boot]));
      const lost = listOf(rows).flatMap((row) => decodeConnection(row) ?? []);
      if (lost.length > 0) linksLost(lost);
      const parked = listOf(waiting).map((one) => {
        const [request = '', epoch, instanceId = ''] = listOf(one).map(String);
        const texts = textsOf(request);
        const client = { userId: requestField(texts, 'userId'), clientId: requestField(texts, 'clientId') };
        return park(client, { nodeId: node, instanceId, epoch: Number(epoch) });
      });
      await Promise.all(parked);
      if (more !== 1) return;
    }
  };
  return {
    clear,
    /** Starts the cleanup after these nodes, unless it is running. If it fails, the next call starts it again. */
    begin(partition: number, nodes: readonly string[]): void {
      for (const node of nodes) {
        const place = `${partition} ${node}`;
        if (underWay.has(place)) continue;
        underWay.add(place);
        parts.log.warn({ node, partition }, 'a node is gone: the cleanup after it begins');
        clear(partition, node, null)
          .catch((error: unknown) =>
            parts.log.warn({ err: error, node, partition }, 'the cleanup after a node failed: it begins again later'),
          )
          .finally(() => underWay.delete(place));
      }
    },
  };
}

// Reads which nodes exist, and which of them have stopped renewing their lease. Changes nothing.

/** The value that `nodes-reap` stores as the end of the lease of a node that releases its id. */
const LEAVING = 1;

/** The nodes of one partition as they were read. */
type NodesSeen = {
  /** The time of the store when it was read, epoch milliseconds. */
  readonly now: number;
  /** When the lease of each attached node ends. */
  readonly leases: ReadonlyMap<string, number>;
  /** Nodes that died and are still listed. */
  readonly gone: readonly string[];
};

export async function lookAtNodes(
  { store, clock }: Pick<RedisParts, 'store' | 'clock'>,
  partition: number,
): Promise<NodesSeen> {
  const now = clock.now();
  const [leases, gone] = await store.read([
    ['ZRANGE', store.key(partition, 'nodes'), 0, -1, 'WITHSCORES'],
    ['ZRANGEBYSCORE', store.key(partition, 'nodesgone'), `(${now}`, '+inf'],
  ]);
  return { now, leases: numbersOf(leases), gone: listOf(gone).map(String) };
}

/** Implements NodeStore.silent. Reads every partition, because a node may reach only some of them. */
export async function silentNodes(parts: Pick<RedisParts, 'store' | 'clock' | 'leaseMs'>): Promise<readonly string[]> {
  const seen = await Promise.all(partitionsOf(parts.store).map((partition) => lookAtNodes(parts, partition)));
  return [...new Set(seen.flatMap((one) => silentIn(one, parts.leaseMs)))].sort();
}

/**
 * Returns the nodes whose last beat is too long ago, and the nodes that died. The time of a node's last beat is the end
 * of its lease minus the length of a lease.
 */
function silentIn({ now, leases, gone }: NodesSeen, leaseMs: number): readonly string[] {
  const since = now - Math.min(NODE_SILENT_MS, leaseMs);
  const late = [...leases].filter(([, end]) => end !== LEAVING && end - leaseMs <= since).map(([node]) => node);
  return [...late, ...gone];
}
