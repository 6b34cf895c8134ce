/**
 * The writes of an act on a command besides its record: rows of history, names, results, counters, and mailbox rows.
 */
import type { Command } from '../../../core/commands/command.ts';
import type { AdmitRequest, Binding } from '../../../core/commands/command-store.ts';
import type { CommandMessage, MemberLimits } from '../../../core/commands/transaction.ts';
import { clientStream, LINK_STREAM, type NewMessage } from '../../../core/history/message.ts';
import type { ClientKey, CommandKey } from '../../../core/ids.ts';
import { utf8Length, type JsonText } from '../../../core/json.ts';
import { DEDUP_TTL_MS } from '../../../core/limits.ts';
import { lagOf, rowText } from '../history-rows.ts';
import type { boundsOfPartition } from '../shares.ts';
import { listOf, type ReadCommand, type Reply } from '../replies.ts';
import type { Store } from '../store.ts';
import type { Entry, LiveCommand } from './record.ts';
import type { ReadHash, StreamOf, TransactionCall } from './transaction-call.ts';

const NUL = '\0';
const HOUR_MS = 3_600_000;
/** How long the keys of a user's spans exist after their time is over, in case no node removes them. */
export const GRACE_MS = HOUR_MS;
/** The longest time between the admission and the end of a command: as in lib-reduce of commands-records.lua. */
export const LIFE_MS = 660_000;
/** How much longer a key exists than the mark of a message that it contains. */
const MARK_GRACE_MS = 10_000;
/**
 * How long the counters of deduplication are kept (SEEN_MS), and the time that one counter covers (SEEN_GRAIN_MS), as
 * in dedup.lua.
 */
const SEEN_MS = 7_200_000;
const SEEN_GRAIN_MS = 10_000;
/** How much longer a result is kept than it is shown, because a mailbox row may still refer to it. */
const FETCHED_MS = 60_000;
/** A search time counts as reached this long before it, because the clocks of the relay and of Redis may differ. */
const SOON_MS = 1_000;
/**
 * How long names of commands that no longer exist stay in the index by admission, and how much of the index one call
 * trims.
 */
const NEWEST_TRIM_MS = 10_000;
export const NO_LIMIT = 1e15;

/** The length of a span for marks of messages, in milliseconds. */
const MARKS_MS = 30_000;

/**
 * The kinds of keys with which Redis keeps two shares within their totals (see lib-bounded in commands-records.lua).
 */
const BOUNDED = {
  e: { order: 'endorder', oldest: 'endedoldest', over: 'endedover' },
  d: { order: 'markorder', oldest: 'markoldest', over: 'markover' },
} as const;

/**
 * A row that is added to a share, such as a mark. `until`: when it no longer counts. `name`: its name, by which Lua
 * removes it. Rows are counted in spans of time: `span` is the name of this row's span, `began` when that began, and
 * `over` when it is removed.
 */
type ShareRow = {
  readonly letter: keyof typeof BOUNDED;
  readonly userId: string;
  readonly uh: string;
  readonly began: string;
  readonly span: string;
  readonly over: number;
  readonly name: string;
  readonly until: number;
};

/**
 * What a process remembers of Redis, for example keys that need not be registered again. It is emptied once a minute.
 */
export type Remembered = {
  /** Keys of spans that are registered with their expiry. */
  readonly opened: Set<string>;
  /** By hash of a stream: when its expiry was last renewed. Under '': when the index by admission was last trimmed. */
  readonly renewed: Map<string, number>;
  /** The epochs of other nodes; '' for a node that is not attached. */
  readonly epochs: Map<string, string>;
  /** By the key of a scope's reservations: a time by which Redis searches the scope for due commands. */
  readonly searched: Map<string, number>;
  /** By name of a client: how many of its commands wait, according to the last answer. */
  readonly waiting: Map<string, number>;
  /**
   * By name of a client whose connection this process has just changed: what it found, until this process moves the
   * queue.
   */
  readonly seen: Map<string, SeenQueue>;
};

/** The data of a client that an act compares before it moves the client's queue. */
type QueueOwner = {
  /** The client's link in the form of its HASH (see link-transaction.ts); '' if it has none. */
  readonly link: string;
  /** The epoch of its connection, and the revision of the actions that it advertises over that connection. */
  readonly advertised: readonly [epoch: string, revision: string];
};

/**
 * A client directly after the act that changed its connection. `fields`: the number of fields in its HASH besides the
 * link.
 */
export type SeenQueue = QueueOwner & { readonly fields: number };

/** The part of a client's queue that an act moves, as this process expects it or has read it. */
export type QueuePart = QueueOwner & {
  /** `whole`: the queue moves in one act; `first`: the act only binds the client; `next`: the act moves a part. */
  readonly kind: 'whole' | 'first' | 'next';
  /** Whether this is the last part of the listed commands. */
  readonly isLast: boolean;
  readonly commands: readonly LiveCommand[];
  /** The ids of all live commands that were listed. */
  readonly listed: readonly string[];
};

/** The data that all transactions of a process share. */
export type TransactionDeps = {
  readonly hash: Store['hash'];
  readonly sha256: (text: string) => string;
  readonly windowMs: number;
  readonly retentionMs: number;
  readonly bounds: ReturnType<typeof boundsOfPartition>;
  readonly remembered: Remembered;
  /** Whether a call under way may open a stream of the user of this hash. */
  readonly isOpening: (uh: string) => boolean;
  /** The calling node and its epoch; '' if the process has none. */
  readonly caller: { readonly nodeId: string; readonly epoch: number };
};

/** What the process expects of the client of an act. */
export type ExpectedClient = { readonly binding: Binding; readonly link: string };

/**
 * The mark by which a message is appended once. `hash`: names the message; `token`: names the call, and is the same if
 * Redis runs the call twice; `isCounted`: whether deduplication counts the message.
 */
export type MarkOfRow = { readonly hash: string; readonly token: string; readonly isCounted: boolean };

/** `place`: `<at>-<seq>` of a message that was appended before; null: the answer of Redis has it. */
type Appended = { readonly kind: 'appended'; readonly place: string | null } | { readonly kind: 'duplicate' };

/** Thrown if a transaction needs data that was not read. The act is decided again after the read. */
export class Unread extends Error {
  readonly commands: readonly ReadCommand[];
  constructor(commands: readonly ReadCommand[]) {
    super('Not read yet.');
    this.commands = commands;
  }
}

/**
 * Thrown if a call that is not answered yet may open a stream of the row's user. The act waits for that answer, so that
 * the rows of a stream stay in order.
 */
export class Opening extends Error {
  readonly uh: string;
  constructor(uh: string) {
    super('A stream of the user is being opened.');
    this.uh = uh;
  }
}

/** The answers of Redis, by the read that they belong to. */
export type Reads = ReadonlyMap<string, Reply>;

/** The input of the transaction of one act, besides the act's arguments. */
export type TransactionInput = {
  /**
   * What this process expects of the client and the command, or has read of the queue that the act moves. Null:
   * everything is read.
   */
  readonly known: {
    readonly client?: ExpectedClient;
    readonly command?: LiveCommand;
    readonly queue?: QueuePart;
  } | null;
  readonly reads: Reads;
  /** The text of the request of a new command. */
  readonly text?: string | undefined;
  /**
   * The beginning that the text of the client's link must have, if the caller relied on a connection that it has seen.
   */
  readonly seen?: string | undefined;
  /** The number of the wait that the act registers or removes. */
  readonly wait?: string | undefined;
  /** Whether guards are checked against what was read, because the act writes nothing. */
  readonly asks?: boolean;
  /** Whether the caller of the act replies to the waits of its own node by itself. */
  readonly replies?: boolean;
  /** The letters of the shares that had no room. The act then omits what would count in them. */
  readonly without?: string | undefined;
  /** The number of commands of the act, according to what was read. */
  readonly size?: number;
  /** Whether the lease of the link's node is over by the clock of Redis; null if unknown. */
  readonly isDead?: boolean | null;
};

export function readName(command: ReadCommand): string {
  return command.join(NUL);
}

/** One act of a call: reads data, and adds conditions and writes to the call. */
export class TransactionWrites {
  readonly act: number;
  /** The number of changes that the act makes. */
  changes = 0;
  /** The hashes of the user and of the stream that the act appends rows to; null if it appends none. */
  appendsTo: { readonly uh: string; readonly sth: string } | null = null;
  protected readonly call: TransactionCall;
  protected readonly deps: TransactionDeps;
  protected readonly given: TransactionInput;

  constructor(call: TransactionCall, deps: TransactionDeps, given: TransactionInput) {
    this.call = call;
    this.deps = deps;
    this.given = given;
    this.act = ++call.acts;
  }

  get now(): number {
    return this.call.now;
  }

  /** Counts a reservation of the user in a scope that several users share. */
  protected countMember({ scopeId, userId }: Command, by: 1 | -1, limits: MemberLimits | null): void {
    const members = this.call.hash(this.call.key('members', this.deps.hash(scopeId)));
    const { above, most } = limits ?? { above: 0, most: NO_LIMIT };
    this.call.number(this.act, members, this.deps.hash(userId), {
      by,
      limit: most,
      code: 'share_exceeded',
      within: { sh: this.deps.hash(scopeId), above },
    });
  }

  /** Makes Redis search a scope for due commands by this time, unless it is known to do so earlier. */
  protected searchBy(sh: string, deadline: number): void {
    const scope = this.call.key('reserved', sh);
    const known = this.call.searched.get(scope) ?? this.deps.remembered.searched.get(scope) ?? Infinity;
    // A search raises the time of a scope, but only after that time has come.
    if (known <= deadline && known > this.now + SOON_MS) return;
    this.call.searched.set(scope, deadline);
    this.call.once(['ZADD', this.call.key('scopedue'), 'LT', String(deadline), sh]);
  }

  protected dueName({ deadline, commandId, ...key }: Command): string {
    return String(deadline).padStart(13, '0') + this.hashOfClient(key) + commandId;
  }

  /** Adds the name of a new command to the index by admission. Trims the index from time to time. */
  protected indexNewest({ userId, clientId, commandId }: AdmitRequest, windowMs: number): void {
    const { hash, remembered } = this.deps;
    const keyOf = (at: number): string => this.call.key('admitted', String(at - (at % HOUR_MS)));
    const newest = keyOf(this.now);
    this.write(['ZADD', newest], [String(this.now), hash(userId) + hash(userId, clientId) + commandId]);
    if (this.opens(newest))
      this.call.once(['PEXPIRE', newest, String(HOUR_MS - (this.now % HOUR_MS) + LIFE_MS + windowMs)]);
    if (this.now - (remembered.renewed.get('') ?? 0) < NEWEST_TRIM_MS / 10) return;
    remembered.renewed.set('', this.now);
    const gone = this.now - LIFE_MS - windowMs;
    this.call.once(['ZREMRANGEBYSCORE', keyOf(gone), String(gone - NEWEST_TRIM_MS), String(gone)]);
  }

  retain({ command }: Entry, { id, kind, kept, instanceId, error = null }: CommandMessage): void {
    const { userId, clientId, commandId, traceId, parentSpanId, contextId, caller } = command;
    const callerLabel = kind === 'command' ? caller.label : undefined;
    this.append({
      userId,
      suffix: clientStream(clientId),
      id: id ?? `${commandId}:${kind}`,
      kind,
      clientId,
      instanceId: instanceId ?? command.boundInstanceId,
      commandId,
      traceId,
      parentSpanId,
      error,
      payload: kept?.payload ?? null,
      spill: kept?.spill ?? null,
      ...(contextId !== undefined && { contextId }),
      ...(callerLabel && { callerLabel }),
    });
  }

  /**
   * Appends a message, unless a mark shows that another call has appended it. A mark is
   * `<until> <token> <last> <place>`: when it ends, the call that set it, the call that saw it last, and the place of
   * the message in history.
   */
  appendOnce(message: NewMessage, { hash, token, isCounted }: MarkOfRow): Appended {
    const key = this.call.key('mark', hash);
    const text = this.given.known ? '' : String(this.read(['GET', key]) ?? '');
    this.call.text(this.act, key, text);
    const [until = '', first, last, place = ''] = text.split(' ');
    if (Number(until) > this.now) {
      if (first === token) return { kind: 'appended', place };
      if (last === token) return { kind: 'duplicate' };
      this.countSeen('duplicates');
      const ms = String(Number(until) - this.now + MARK_GRACE_MS);
      this.write(['SET', key], [[until, first, token, place].join(' '), 'PX', ms]);
      return { kind: 'duplicate' };
    }
    if (isCounted) this.countSeen('unique');
    const value = `${this.now + DEDUP_TTL_MS} ${token} ${token} `;
    this.countMark(message.userId, hash);
    this.append(message, [key, value, DEDUP_TTL_MS + MARK_GRACE_MS].join(NUL));
    return { kind: 'appended', place: null };
  }

  /**
   * Appends a message. `mark`: the arguments of its mark. Rows of link histories count in no share, because they have
   * their own limit.
   */
  private append(message: NewMessage, mark = ''): void {
    const { hash, bounds } = this.deps;
    const { userId, suffix, commandId } = message;
    const text = rowText(message);
    const uh = hash(userId);
    this.changes++;
    this.call.row(this.act, this.streamOf(message, uh), { text, commandId: commandId ?? '', mark });
    if (suffix === LINK_STREAM) return;
    const over = [this.call.key('historyover'), `${userId}${NUL}${uh}`] as const;
    this.call.share(this.act, { letter: 'h', uh, span: '', bound: bounds['h'] ?? null, over }, utf8Length(text));
  }

  /**
   * Returns the stream of a message. Requires that the stream is open, and for a row of a command also the span for its
   * place.
   */
  private streamOf({ userId, suffix, commandId }: NewMessage, uh: string): StreamOf {
    const { hash, retentionMs, remembered } = this.deps;
    const sth = hash(userId, suffix);
    if (this.deps.isOpening(uh)) throw new Opening(uh);
    this.appendsTo = { uh, sth };
    const heads = this.call.hash(this.call.key('streamheads', uh));
    const length = Math.max(1, Math.min(HOUR_MS * 12, Math.floor(retentionMs / 8)));
    const start = this.now - (this.now % length);
    if (commandId !== null) this.call.holds(this.act, heads, 's', `${start}:${start + length + retentionMs}`);
    this.call.holds(this.act, heads, sth, '');
    const key = this.call.key('stream', sth);
    const places = this.call.hash(this.call.key('cmdrows', uh, String(start)));
    const stream = { key, userId, uh, suffix, sth, heads, places, renewal: [] };
    const isRenewed = Math.abs(this.now - (remembered.renewed.get(sth) ?? 0)) < lagOf(retentionMs);
    if (isRenewed && !this.call.settings.opens) return stream;
    remembered.renewed.set(sth, this.now);
    this.call.renewed.push(sth);
    const renewal = [
      ...[key, String(retentionMs + GRACE_MS), heads.key, String(retentionMs + 2 * GRACE_MS)],
      ...[this.call.key('streamgone'), String(this.now + retentionMs), [userId, suffix, uh, sth].join(NUL)],
      ...(suffix === LINK_STREAM ? [] : [this.call.key('streamage', uh), `${suffix}${NUL}${sth}`]),
    ];
    return { ...stream, renewal };
  }

  protected postTo(nodeId: string, words: readonly string[]): void {
    const mailbox = this.mailboxOf(nodeId);
    if (mailbox !== null) this.write(['XADD', mailbox, '*'], words);
  }

  /** Returns the key of a node's mailbox; null if the node is not attached. */
  protected mailboxOf(nodeId: string): string | null {
    const epoch = this.epochOf(nodeId);
    return epoch === '' ? null : this.call.key('mailbox', nodeId, epoch);
  }

  protected countSeen(field: 'unique' | 'duplicates'): void {
    const bucket = this.call.key('seen', String(Math.floor(this.now / SEEN_GRAIN_MS)));
    this.call.count(this.act, bucket, field);
    if (this.opens(bucket)) this.call.once(['PEXPIRE', bucket, String(SEEN_MS)]);
  }

  /** Counts a mark of a message that is set now. */
  private countMark(userId: string, name: string): void {
    const uh = this.deps.hash(userId);
    const began = String(this.now - (this.now % MARKS_MS));
    const until = this.now + DEDUP_TTL_MS;
    const span = { name: `d${began}`, over: Number(began) + MARKS_MS + DEDUP_TTL_MS + MARK_GRACE_MS };
    this.openSpan(userId, uh, { ...span, key: this.call.key('markorder', uh, began), grace: GRACE_MS });
    this.countBounded({ letter: 'd', userId, uh, began, span: span.name, over: span.over, name, until });
  }

  /** Counts a row in a share that is limited over all nodes, and records it as the newest row of its user. */
  protected countBounded({ letter, userId, uh, began, span, over, name, until }: ShareRow): void {
    const { order, oldest, over: usersOver } = BOUNDED[letter];
    const member = userId + NUL + uh;
    const key = this.call.key(order, uh, began);
    this.write(['RPUSH', key], [`${until} ${name}`]);
    const index = [this.call.key(usersOver), member] as const;
    this.call.share(this.act, { letter, uh, span, bound: this.deps.bounds[letter] ?? null, over: index }, 1);
    if (!this.opens(`${key} oldest`)) return;
    // With LT, because a row that another relay wrote first may have a later time by its clock.
    this.call.once(['ZADD', this.call.key(oldest), 'LT', String(until), member]);
    this.call.once(['PEXPIRE', key, String(over - this.now + GRACE_MS)]);
  }

  protected keepResult(entry: Entry, uh: string, result: JsonText): void {
    const { retentionMs, windowMs, bounds } = this.deps;
    if (this.given.without?.includes('r')) return void (entry.resultIn = '-');
    const shown = Math.min(retentionMs, windowMs);
    const length = Math.max(1_000, Math.floor(shown / 4));
    const began = this.now - (this.now % length);
    entry.resultIn = String(began);
    const key = this.call.key('results', uh, entry.resultIn);
    const share = { letter: 'r', uh, span: `r${began}`, bound: bounds['r'] ?? null };
    this.call.share(this.act, share, utf8Length(result));
    this.write(['HSET', key], [this.nameOf(entry.command), result]);
    const over = began + length + shown + FETCHED_MS;
    this.openSpan(entry.command.userId, uh, { key, name: `r${began}`, over, grace: 0 });
  }

  /** Adds the name of a command to the listings, and returns its span. */
  protected nameIn({ userId, clientId, commandId }: CommandKey, uh: string): string {
    const { name, over } = this.spanOfNames(this.now);
    const key = this.call.key('names', uh, name.slice(1));
    this.write(['ZADD', key], ['0', clientId + NUL + commandId]);
    this.openSpan(userId, uh, { key, name, over, grace: GRACE_MS });
    return name;
  }

  /** Returns the span of names for commands that are admitted at this time, as in lib-reduce. */
  protected spanOfNames(at: number): { readonly name: string; readonly over: number } {
    const { windowMs } = this.deps;
    const hour = at - (at % HOUR_MS);
    const length = Math.min(HOUR_MS, Math.max(60_000, Math.floor(windowMs / 2)));
    const began = hour + Math.floor((at - hour) / length) * length;
    return { name: `n${began}.${windowMs}`, over: began + length + LIFE_MS + windowMs };
  }

  /** Registers a span of a user, unless this process has registered it within the last minute. */
  protected openSpan(userId: string, uh: string, of: { key: string; name: string; over: number; grace: number }): void {
    if (!this.opens(of.key)) return;
    this.call.once(['ZADD', this.call.key('spans', uh), String(of.over), of.name]);
    this.call.once(['ZADD', this.call.key('endedspans'), String(of.over), [uh, of.name, userId].join(NUL)]);
    this.call.once(['ZADD', this.call.key('cmdusers'), '0', userId + NUL + uh]);
    this.call.once(['PEXPIRE', of.key, String(of.over - this.now + of.grace)]);
  }

  /** Whether this call must register a key: neither this call nor an answered earlier call has registered it. */
  private opens(key: string): boolean {
    if (this.deps.remembered.opened.has(key) || this.call.opened.has(key)) return false;
    this.call.opened.add(key);
    return true;
  }

  /**
   * Returns the epoch of an attached node, and requires that the epoch is the same when Redis writes; '' for any other
   * node.
   */
  protected epochOf(nodeId: string): string {
    const { caller, remembered } = this.deps;
    if (nodeId === caller.nodeId) return String(caller.epoch);
    const node = this.call.hash(this.call.key('node', nodeId));
    let known = this.given.known ? remembered.epochs.get(nodeId) : undefined;
    if (known === undefined) {
      const [epoch, fenced] = listOf(this.read(['HMGET', node.key, 'epoch', 'fenced']));
      known = typeof epoch === 'string' && fenced === null ? epoch : '';
      remembered.epochs.set(nodeId, known);
    }
    if (known === '') return known;
    this.call.equal(this.act, node, 'epoch', known);
    this.call.equal(this.act, node, 'fenced', '');
    return known;
  }

  protected read(command: ReadCommand): Reply {
    return this.readAll([command])[0] ?? null;
  }

  protected readAll(commands: readonly ReadCommand[]): readonly Reply[] {
    const { reads } = this.given;
    const unread = commands.filter((command) => !reads.has(readName(command)));
    if (unread.length > 0) throw new Unread(unread);
    return commands.map((command) => reads.get(readName(command)) ?? null);
  }

  protected write(start: readonly string[], words: readonly string[]): void {
    this.changes++;
    this.call.write(this.act, start, words);
  }

  protected clientHash(key: ClientKey): ReadHash {
    return this.call.hash(this.call.key('client', this.hashOfClient(key)));
  }

  protected hashOfClient({ userId, clientId }: ClientKey): string {
    return this.deps.hash(userId, clientId);
  }

  /** Returns the name of a command in keys of its user. */
  protected nameOf(key: CommandKey): string {
    return this.hashOfClient(key) + key.commandId;
  }
}
