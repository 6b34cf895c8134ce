/**
 * The transaction part for links of clients: reads and writes a client's link, and moves its queue, in several acts if
 * necessary, when the link comes up or goes down.
 */
import { wasDispatched } from '../../../core/commands/command.ts';
import type { Binding } from '../../../core/commands/command-store.ts';
import type { Move, MovingQueue } from '../../../core/commands/transaction.ts';
import type { ClientKey } from '../../../core/ids.ts';
import { listOf, textOr, type ReadCommand, type Reply } from '../replies.ts';
import { TransactionWrites, type QueuePart, type SeenQueue } from './transaction-writes.ts';
import { Entry, heldCommand, type LiveCommand } from './record.ts';

/**
 * The most commands that one act moves. Each may add a row to the same block of history, which has room for 64 rows.
 */
export const MOVED_AT_ONCE = 64;

/**
 * The link of a client, as field `b` of its HASH stores it. `revision`: the revision of the advertised actions. The
 * queue may move to the link in several parts. Until the last part, `upTo` is the last place that was taken when the
 * link came up, and `moved` is the last place that was moved. A command that is admitted meanwhile gets a later place,
 * and a later part posts it.
 */
type StoredLink = {
  readonly nodeId: string;
  readonly epoch: string;
  readonly instanceId: string;
  readonly revision: string;
  readonly upTo: string;
  readonly moved: string;
};

/** Decodes a client's link; null for '', which stands for no link. */
export function parseLink(text: string): StoredLink | null {
  if (text === '') return null;
  const [nodeId = '', epoch = '', instanceId = '', revision = '', upTo = '', moved = ''] = text.split('\0');
  return { nodeId, epoch, instanceId, revision, upTo, moved };
}

function linkText({ nodeId, epoch, instanceId, revision, upTo, moved }: StoredLink): string {
  return [nodeId, epoch, instanceId, revision, upTo, moved, ''].join('\0');
}

// Reading a queue.

/** Returns the read that lists the live commands of a client. `liveIds` decodes its reply. */
export function liveRead(client: string): ReadCommand {
  return ['HKEYS', client];
}

export function liveIds(reply: Reply | undefined): readonly string[] {
  const states = listOf(reply).filter((field) => String(field).startsWith('s'));
  return states.map((field) => String(field).slice(1));
}

function linkRead(client: string): ReadCommand {
  return ['HGET', client, 'b'];
}

/** Returns the read of these commands. `heldIn` decodes its reply. */
function commandsRead(client: string, ids: readonly string[]): readonly ReadCommand[] {
  return ids.length === 0 ? [] : [['HMGET', client, ...ids.flatMap((id) => [`s${id}`, `a${id}`, `w${id}`])]];
}

/** Decodes those commands in the reply that are live. */
function heldIn(reply: Reply | undefined): readonly LiveCommand[] {
  const values = listOf(reply);
  const found: LiveCommand[] = [];
  for (let i = 0; i < values.length; i += 3) {
    const [state, request] = [values[i], values[i + 1]];
    if (typeof state !== 'string' || typeof request !== 'string') continue;
    found.push(heldCommand({ state, request, waits: textOr(values[i + 2]) ?? '', params: null }));
  }
  return found;
}

/** The most fields, besides the link, in the HASH of a client with a short queue. */
const SHORT_FIELDS = 4 * MOVED_AT_ONCE + 2;

type Reading = {
  readonly read: (commands: readonly ReadCommand[]) => Promise<readonly Reply[]>;
  /** The keys of the client's HASH and of its connection. */
  readonly client: string;
  readonly connection: string;
  readonly isUp: boolean;
  /** What this process expects of the client; null if nothing. */
  readonly seen: SeenQueue | null;
};

/**
 * The live commands of a client when they were listed. `waiting`: the commands that move, in the order of their places.
 */
type Listing = {
  readonly waiting: readonly { readonly id: string; readonly place: number }[];
  readonly running: readonly string[];
  readonly all: readonly string[];
};

/**
 * Reads a client's queue for the acts that move it. If this process has just seen that a client has no commands,
 * nothing is read. A short queue is read as a whole. A long queue is listed once, after the client was bound, and each
 * part is read before it moves.
 */
export class QueueReader {
  readonly #of: Reading;
  #seen: SeenQueue | null;
  #isRepeated = false;
  #listing: Listing | null = null;
  /** The last place of the parts that have moved (`#moved`), and of the part that is moving (`#moving`). */
  #moved = -1;
  #moving = -1;
  #isLast = false;

  constructor(of: Reading) {
    this.#of = of;
    this.#seen = of.seen;
  }

  /**
   * Returns the data for the next act. `begun`: whether an act has passed already. `failed`: whether the last act did
   * not pass and is decided again.
   */
  async next(begun: boolean, failed: boolean): Promise<QueuePart> {
    const { read, client, connection, isUp } = this.#of;
    if (begun) return this.#next(failed);
    const seen = this.#seen;
    this.#seen = null;
    const none = { commands: [], listed: [] };
    if (seen?.fields === 0) return { ...seen, ...none, kind: 'whole', isLast: true };
    if (seen && isUp && seen.fields > SHORT_FIELDS) return { ...seen, ...none, kind: 'first', isLast: false };
    const isRepeated = this.#isRepeated;
    this.#isRepeated = true;
    const [link, keys, connected] = await read([linkRead(client), liveRead(client), advertisedRead(connection)]);
    const [epoch = '', revision = ''] = listOf(connected).map((value) => textOr(value) ?? '');
    const owner = { link: textOr(link) ?? '', advertised: [epoch, revision] } as const;
    const all = liveIds(keys);
    if (!isRepeated && all.length <= MOVED_AT_ONCE) {
      const [found] = await read(commandsRead(client, all));
      return { ...owner, kind: 'whole', isLast: true, commands: heldIn(found), listed: all };
    }
    return isUp ? { ...owner, ...none, kind: 'first', isLast: false } : this.#next(failed);
  }

  async #next(failed: boolean): Promise<QueuePart> {
    const { read, client, isUp } = this.#of;
    if (!failed) this.#moved = this.#moving;
    // When a link goes down, its queue is listed again, until a listing finds no more queued commands.
    if (!failed && this.#isLast) [this.#listing, this.#moved] = [null, -1];
    for (;;) {
      const listing = (this.#listing ??= await this.#list());
      const left = listing.waiting.filter(({ place }) => place > this.#moved);
      const part = left.slice(0, MOVED_AT_ONCE);
      this.#isLast = left.length <= MOVED_AT_ONCE;
      this.#moving = part.at(-1)?.place ?? this.#moved;
      const ids = [...part.map(({ id }) => id), ...(this.#isLast && isUp ? listing.running : [])];
      const [link, found] = await read([linkRead(client), ...commandsRead(client, ids)]);
      const commands = heldIn(found);
      if (commands.length > 0 || this.#isLast) {
        const owner = { link: textOr(link) ?? '', advertised: ['', ''] } as const;
        return { ...owner, kind: 'next', isLast: this.#isLast, commands, listed: listing.all };
      }
      this.#moved = this.#moving;
    }
  }

  async #list(): Promise<Listing> {
    const { read, client, isUp } = this.#of;
    const [keys] = await read([liveRead(client)]);
    const ids = liveIds(keys);
    const [states] = ids.length === 0 ? [] : await read([['HMGET', client, ...fieldsOfStates(ids)]]);
    const live = listOf(states).flatMap((state, i) => {
      const [, , place, , stage = ''] = textOr(state)?.split('\0', 5) ?? [];
      // A command that ended after its id was read has no state.
      return place === undefined ? [] : [{ id: ids[i] ?? '', place: Number(place), stage }];
    });
    const waiting = live.filter(({ stage }) => moves(stage, isUp)).sort((a, b) => a.place - b.place);
    const running = live.filter(({ stage }) => !moves(stage, true)).map(({ id }) => id);
    return { waiting, running, all: live.map(({ id }) => id) };
  }
}

function advertisedRead(connection: string): ReadCommand {
  return ['HMGET', connection, 'epoch', 'rev'];
}

// Moving a queue.

/** A part of a client's queue, with the link that the client had before the act. */
type Part = QueuePart & {
  readonly before: StoredLink | null;
  /** Whether the client was bound to the link that the act is about. */
  readonly isBound: boolean;
  readonly isUp: boolean;
  /** The last place in the part. */
  readonly moved: string;
};

/** The transaction of an act that moves commands between links. */
export class LinkTransaction extends TransactionWrites {
  /** The commands of the act, in their state after the act. */
  readonly entries: Entry[] = [];
  #part: Part | null = null;

  /** Whether another act must move another part of the queue. */
  get leavesMore(): boolean {
    const part = this.#part;
    if (!part || part.kind === 'whole' || (part.isUp && part.isLast)) return false;
    return this.changes > 0 || (part.isBound && !part.isLast);
  }

  /**
   * Returns the commands of a client that the act moves. A short queue moves in one act, which requires that no other
   * command is admitted meanwhile. A long queue moves in parts, and so does a short queue after a failed attempt. When
   * a link comes up, an act before the first part binds the client to it. When a link goes down, the client is unbound
   * together with the part that seems to be the last; more parts follow until no command is queued.
   */
  moving(key: ClientKey, { binding: reported, link, begun = false }: Move): MovingQueue<Entry> {
    const { queue } = this.given.known ?? {};
    if (!queue) throw new Error('The queue that moves was not read.');
    const client = this.clientHash(key);
    const { link: text, kind, isLast, listed } = queue;
    this.call.equal(this.act, client, 'b', text);
    const before = parseLink(text);
    const binding = before && { ...before, epoch: Number(before.epoch) };
    const isUp = link !== 'down';
    const none = { binding, waiting: [], arrived: [], running: [], isLast };
    // Another act has moved the last part already, or the client has another link.
    if (isUp && begun && !before?.moved) return { ...none, isLast: true };
    const entries = queue.commands.map((command) => Entry.live(command));
    const next = entries
      .filter(({ command: { stage } }) => moves(stage, isUp))
      .sort((a, b) => Number(a.place) - Number(b.place));
    const running = entries.filter(({ command }) => isLast && isUp && wasDispatched(command));
    // Commands that an earlier instance is running are reported, but not moved.
    const own = running.filter(({ command }) => command.boundInstanceId === reported.instanceId);
    // These conditions hold the queue in place: while the last command of the part waits, no new command gets a place
    // before it.
    for (const { command, start } of [...next, ...own])
      this.call.starts(this.act, client, `s${command.commandId}`, start);
    if (kind === 'whole') this.call.only(this.act, client, fieldsOfStates(listed));
    const isBound = binding?.epoch === reported.epoch;
    const moved = kind === 'first' ? '0' : (next.at(-1)?.place ?? before?.moved ?? '');
    this.#part = { ...queue, before, isBound, isUp, moved };
    this.entries.push(...next, ...running);
    const upTo = isUp && begun ? Number(before?.upTo) : Infinity;
    const hasArrived = ({ place, command: { stage } }: Entry): boolean => Number(place) > upTo && stage === 'queued';
    const waiting = next.filter((entry) => !hasArrived(entry));
    return { ...none, waiting, arrived: next.filter(hasArrived), running };
  }

  /**
   * Binds the client whose queue the act moves. Until the last part, the link stores how far the queue has moved. With
   * the last part, commands that were admitted for the link since the listing are posted to its node.
   */
  bind(key: ClientKey, binding: Binding | null): void {
    const part = this.#part;
    if (!part) return;
    const { before, kind, isLast, moved, listed } = part;
    const client = this.clientHash(key);
    const hash = this.hashOfClient(key);
    const bound = (nodeId: string): string => this.call.key('bound', nodeId);
    if (before && before.nodeId !== binding?.nodeId) this.write(['SREM', bound(before.nodeId)], [hash]);
    if (!binding) return this.write(['HDEL', client.key], ['b']);
    const { nodeId, instanceId } = binding;
    const epoch = String(binding.epoch);
    if (before?.nodeId !== nodeId) this.write(['SADD', bound(nodeId)], [hash]);
    const revision = kind === 'next' && before ? before.revision : this.#advertised(hash, epoch, part);
    const link = { nodeId, epoch, instanceId, revision };
    if (kind === 'first') {
      // Redis inserts the last place of the queue, because only Redis knows it.
      const [start = '', rest = ''] = linkText({ ...link, upTo: '\x01', moved }).split('\x01');
      this.changes++;
      return this.call.link(this.act, client, [start, rest]);
    }
    const places = isLast ? { upTo: '', moved: '' } : { upTo: before?.upTo ?? '', moved };
    const text = linkText({ ...link, ...places });
    if (text !== part.link) this.write(['HSET', client.key], ['b', text]);
    const mailbox = kind === 'next' && isLast ? this.mailboxOf(nodeId) : null;
    if (mailbox !== null) this.call.late(this.act, client, { mailbox, key, states: fieldsOfStates(listed) });
  }

  /**
   * Returns the revision of the actions that the client advertises over the link with this epoch; '' if there is none.
   */
  #advertised(hashOfClient: string, epoch: string, { advertised: [of, revision] }: QueuePart): string {
    const connection = this.call.hash(this.call.key('conn', hashOfClient));
    this.call.equal(this.act, connection, 'epoch', of);
    this.call.equal(this.act, connection, 'rev', revision);
    return of === epoch ? revision : '';
  }
}

function fieldsOfStates(ids: readonly string[]): readonly string[] {
  return ids.map((id) => `s${id}`);
}

/** Whether a live command in this stage moves when its client's link comes up or goes down. */
function moves(stage: string, isUp: boolean): boolean {
  return stage === 'queued' || (isUp && stage === 'admitted');
}
