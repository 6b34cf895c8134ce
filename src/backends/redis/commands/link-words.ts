/**
 * What an act reads and writes when a client's link comes up or goes down: the link in the client's HASH, and the part
 * of the client's queue that the act moves.
 */
import { wasDispatched } from '../../../core/commands/command.ts';
import type { Binding } from '../../../core/commands/stores.ts';
import type { Move, MovingQueue } from '../../../core/commands/transaction.ts';
import type { ClientKey } from '../../../core/ids.ts';
import { listOf, textOr, type ReadCommand, type Reply } from '../types.ts';
import { ActWords } from './act-words.ts';
import { Entry } from './entry.ts';
import { fieldOf } from './record.ts';
import type { ReadHash } from './tick.ts';

/**
 * The most commands that one act moves. Each may add a row to the same block of history, which has at most 64 rows.
 */
export const MOVED_AT_ONCE = 64;

/**
 * The link of a client, as field `b` of its HASH has it. `revision`: that of the actions that the client advertises.
 * While a queue moves to the link in parts, `upTo` is the last place that waited when the link came up, and `moved` the
 * last place that was moved. A command that is admitted meanwhile gets a later place, and a later part posts it.
 */
type StoredLink = {
  readonly nodeId: string;
  readonly epoch: string;
  readonly instanceId: string;
  readonly revision: string;
  readonly upTo: string;
  readonly moved: string;
};

/** Decodes a client's link; null for '', which means that it has none. */
export function parseLink(text: string): StoredLink | null {
  if (text === '') return null;
  const [nodeId = '', epoch = '', instanceId = '', revision = '', upTo = '', moved = ''] = text.split('\0');
  return { nodeId, epoch, instanceId, revision, upTo, moved };
}

function linkText({ nodeId, epoch, instanceId, revision, upTo, moved }: StoredLink): string {
  return [nodeId, epoch, instanceId, revision, upTo, moved, ''].join('\0');
}

/** Returns the first reads of an act that moves a queue. `client` and `connection`: the keys of the client. */
export function queueReads(client: string, connection: string): readonly ReadCommand[] {
  return [linkRead(client), liveRead(client), advertisedRead(connection)];
}

function linkRead(client: string): ReadCommand {
  return ['HGET', client, 'b'];
}

/** Returns the read that lists the live commands of a client, which `liveIds` takes from its answer. */
export function liveRead(client: string): ReadCommand {
  return ['HKEYS', client];
}

export function liveIds(reply: Reply | undefined): readonly string[] {
  const states = listOf(reply).filter((field) => String(field).startsWith('s'));
  return states.map((field) => String(field).slice(1));
}

function advertisedRead(connection: string): ReadCommand {
  return ['HMGET', connection, 'epoch', 'rev'];
}

/** A part of a client's queue, and the link that the client had before the act. */
type Part = {
  readonly text: string;
  readonly before: StoredLink | null;
  /** Whether the client had the link that the act is about. */
  readonly isBound: boolean;
  readonly isUp: boolean;
  /** `whole`: the queue moves in one act; `first`: the act only binds the client; `next`: the act moves a part. */
  readonly kind: 'whole' | 'first' | 'next';
  readonly isLast: boolean;
  /** The last place of the part, if it is not the last one. */
  readonly moved: string;
  /** The ids of all live commands that were read. */
  readonly all: readonly string[];
};

/** What decides whether a command belongs to a part. */
type Position = { readonly place: string; readonly stage: string };

/** The commands that an act reads whole. `moved`: the last place of a part that is not the last one. */
type Chosen = { readonly ids: readonly string[]; readonly isLast: boolean; readonly moved: string };

/** The words of an act that moves commands between links. */
export class LinkWords extends ActWords {
  /** The commands of the act, as the act leaves them. */
  readonly entries: Entry[] = [];
  #part: Part | null = null;

  /** Whether another act must move the next part of the queue. */
  get leavesMore(): boolean {
    const part = this.#part;
    if (!part || part.kind === 'whole' || (part.isUp && part.isLast)) return false;
    return this.changes > 0 || (part.isBound && !part.isLast);
  }

  /**
   * Reads the commands of a client that the act moves. A short queue moves in one act, during which no other command
   * may be admitted. A long queue moves in parts, and so does a short one if that failed. Before the first part an act
   * binds the client to a link that comes up. A client whose link goes down is unbound with the part that seems to be
   * the last one, and then parts follow until no command is queued.
   */
  moving(key: ClientKey, { binding: reported, link, begun = false }: Move): MovingQueue<Entry> {
    const client = this.clientHash(key);
    const text = textOr(this.read(linkRead(client.key))) ?? '';
    this.tick.equal(this.act, client, 'b', text);
    const before = parseLink(text);
    const binding = before && { ...before, epoch: Number(before.epoch) };
    const isUp = link !== 'down';
    const all = liveIds(this.read(liveRead(client.key)));
    const isWhole = !begun && this.given.again !== true && all.length <= MOVED_AT_ONCE;
    const isBound = binding?.epoch === reported.epoch;
    const part = { text, before, isBound, isUp, all };
    const none = { binding, waiting: [], arrived: [], running: [] };
    // Another act has moved the last part, or the client has another link.
    if (isUp && begun && !before?.moved) return { ...none, isLast: true };
    if (isUp && !begun && !isWhole) {
      this.#part = { ...part, kind: 'first', isLast: false, moved: '0' };
      return { ...none, isLast: false };
    }
    const after = isUp && begun ? Number(before?.moved) : -1;
    const isNext = ({ place, stage }: Position): boolean =>
      isUp ? isWaiting(stage) && Number(place) > after : stage === 'queued';
    const { ids, isLast, moved } = this.#choose(client, all, isNext);
    this.#part = { ...part, kind: isWhole ? 'whole' : 'next', isLast, moved };
    const entries = this.#readEntries(client, ids).sort((a, b) => Number(a.place) - Number(b.place));
    const next = entries.filter(({ place, command: { stage } }) => isNext({ place, stage }));
    const running = entries.filter(({ command }) => isLast && isUp && wasDispatched(command));
    // Commands that an earlier instance runs are only reported.
    const own = running.filter(({ command }) => command.boundInstanceId === reported.instanceId);
    for (const { command, start } of [...next, ...own])
      this.tick.starts(this.act, client, `s${command.commandId}`, start);
    if (isWhole) this.tick.only(this.act, client, fieldsOfStates(all));
    this.entries.push(...next, ...running);
    const upTo = isUp && begun ? Number(before?.upTo) : Infinity;
    const hasArrived = ({ place, command: { stage } }: Entry): boolean => Number(place) > upTo && stage === 'queued';
    const waiting = next.filter((entry) => !hasArrived(entry));
    return { binding, waiting, arrived: next.filter(hasArrived), running, isLast };
  }

  /**
   * Chooses the live commands that the act reads whole: all of a short queue. Of a long queue the states are read
   * first. Then the act reads the next part and, with the last one, the commands that were dispatched.
   */
  #choose(client: ReadHash, all: readonly string[], isNext: (of: Position) => boolean): Chosen {
    if (all.length <= MOVED_AT_ONCE) return { ids: all, isLast: true, moved: '' };
    const states = listOf(this.read(['HMGET', client.key, ...fieldsOfStates(all)]));
    const live = all.flatMap((id, i) => {
      // The place and the stage are among the first fields. A long queue is listed for each of its parts.
      const texts = String(states[i] ?? '').split('\0', 5);
      const [place, stage] = [fieldOf(texts, 'place'), fieldOf(texts, 'stage')];
      return stage === '' ? [] : [{ id, place, stage, start: `${texts.slice(0, 2).join('\0')}\0` }];
    });
    const next = live.filter(isNext).sort((a, b) => Number(a.place) - Number(b.place));
    const running = live.filter(({ stage }) => !isWaiting(stage));
    const idsOf = (some: typeof live): readonly string[] => some.map(({ id }) => id);
    if (next.length <= MOVED_AT_ONCE) return { ids: idsOf([...next, ...running]), isLast: true, moved: '' };
    const part = next.slice(0, MOVED_AT_ONCE);
    const last = part.at(-1);
    // As long as the last command of the part waits, no new command gets a place before it.
    if (last) this.tick.starts(this.act, client, `s${last.id}`, last.start);
    return { ids: idsOf(part), isLast: false, moved: last?.place ?? '' };
  }

  #readEntries(client: ReadHash, ids: readonly string[]): Entry[] {
    if (ids.length === 0) return [];
    const fields = ids.flatMap((id) => [`s${id}`, `a${id}`, `w${id}`]);
    const values = listOf(this.read(['HMGET', client.key, ...fields]));
    return ids.flatMap((_, i) => {
      const [state, request, waits] = values.slice(3 * i, 3 * i + 3);
      if (typeof state !== 'string' || typeof request !== 'string') return [];
      return Entry.read({ state, request, waits: textOr(waits) ?? '' });
    });
  }

  /**
   * Binds the client whose queue the act moves. Until the last part the link says how far the queue has moved. With the
   * last part, commands that were admitted for the link since the queue was read are posted to its node.
   */
  bind(key: ClientKey, binding: Binding | null): void {
    const part = this.#part;
    if (!part) return;
    const { before, kind, isLast, moved, all } = part;
    const client = this.clientHash(key);
    const hash = this.hashOfClient(key);
    const bound = (nodeId: string): string => this.tick.key('bound', nodeId);
    if (before && before.nodeId !== binding?.nodeId) this.write(['SREM', bound(before.nodeId)], [hash]);
    if (!binding) return this.write(['HDEL', client.key], ['b']);
    const { nodeId, instanceId } = binding;
    const epoch = String(binding.epoch);
    if (before?.nodeId !== nodeId) this.write(['SADD', bound(nodeId)], [hash]);
    const revision = kind === 'next' && before ? before.revision : this.#advertised(hash, epoch);
    const link = { nodeId, epoch, instanceId, revision };
    if (kind === 'first') {
      // Only Redis knows the last place of the queue.
      const [start = '', rest = ''] = linkText({ ...link, upTo: '\x01', moved }).split('\x01');
      this.changes++;
      return this.tick.link(this.act, client, [start, rest]);
    }
    const places = isLast ? { upTo: '', moved: '' } : { upTo: before?.upTo ?? '', moved };
    const text = linkText({ ...link, ...places });
    if (text !== part.text) this.write(['HSET', client.key], ['b', text]);
    const mailbox = kind === 'next' && isLast ? this.mailboxOf(nodeId) : null;
    if (mailbox !== null) this.tick.late(this.act, client, { mailbox, key, states: fieldsOfStates(all) });
  }

  /** Returns the revision of the actions that a client advertises over the link with this epoch; '' if it has none. */
  #advertised(hashOfClient: string, epoch: string): string {
    const connection = this.tick.hash(this.tick.key('conn', hashOfClient));
    const read = listOf(this.read(advertisedRead(connection.key)));
    const [of = '', revision = ''] = read.map((value) => textOr(value) ?? '');
    this.tick.equal(this.act, connection, 'epoch', of);
    this.tick.equal(this.act, connection, 'rev', revision);
    return of === epoch ? revision : '';
  }
}

function fieldsOfStates(ids: readonly string[]): readonly string[] {
  return ids.map((id) => `s${id}`);
}

function isWaiting(stage: string): boolean {
  return stage === 'queued' || stage === 'admitted';
}
