/** The transaction of one act over Redis: what a rule reads and changes becomes words of its tick. */
import type { Command, CommandMark, NewWaiter, Sighting } from '../../../core/commands/command.ts';
import type { AdmitRequest, Binding } from '../../../core/commands/stores.ts';
import type {
  ClientView,
  CommandMessage,
  HeldCommand,
  Progress,
  RefusedAdmission,
  Transaction,
} from '../../../core/commands/transaction.ts';
import { clientStream } from '../../../core/history/message.ts';
import { utf8Length, type JsonText } from '../../../core/json.ts';
import { paramsAreSmall, type ShareRefusal } from '../../../core/shares/shares.ts';
import type { boundsOfPartition } from '../shares.ts';
import type { Held } from './held.ts';
import { fieldOf } from './predict.ts';
import { commandOf, stateText } from './record.ts';
import type { ReadHash, Tick } from './tick.ts';

const NUL = '\0';
const HOUR_MS = 3_600_000;
/** How long keys of a user's spans stay after they are due: as in commands/lib-spans.lua. */
const GRACE_MS = HOUR_MS;
/** The longest time between the admission and the end of a command: as in commands/lib-spans.lua. */
const LIFE_MS = 660_000;
/** How long the counters of deduplication are kept: as in dedup/lib-dedup.lua. */
const SEEN_MS = 7_200_000;
const SEEN_GRAIN_MS = 10_000;
/** The most bytes of params that a mailbox row carries: as in commands/lib-commands.lua. */
const CARRIED_BYTES = 4_096;
/** The most bytes of a result that a mailbox row carries: as in waiters/lib-waiters.lua. */
export const INLINE_BYTES = 16_384;

/** What a process knows of Redis: keys that it need not register again, and epochs of nodes. Dropped once a minute. */
export type Remembered = {
  /** Keys of spans that are registered with their expiry. */
  readonly opened: Set<string>;
  /** When the expiry of a stream was renewed last, by hash of the stream. */
  readonly renewed: Map<string, number>;
  /** The epochs of other nodes. */
  readonly epochs: Map<string, string>;
  /** How many commands of a client wait, by name of the client, as the last answer said. */
  readonly waiting: Map<string, number>;
};

/** What the transactions of a process have in common. */
export type TransactionParts = {
  readonly hash: (...texts: readonly string[]) => string;
  readonly windowMs: number;
  readonly retentionMs: number;
  readonly bounds: ReturnType<typeof boundsOfPartition>;
  readonly remembered: Remembered;
  readonly caller: { readonly nodeId: string; readonly epoch: number };
};

/** A live command as its texts in Redis say. */
export class KnownCommand implements HeldCommand {
  readonly command: Command;
  readonly held: Held;

  constructor(held: Held) {
    this.held = held;
    this.command = commandOf(held.texts);
  }

  get queuedOn(): string | null {
    return this.#field('queuedOn');
  }

  get markedBy(): string | null {
    return this.#field('markedBy');
  }

  get progress(): Progress | null {
    const rows = this.#field('progressRows');
    return rows === null ? null : { rows: Number(rows), at: Number(this.#field('progressRowAt')) };
  }

  get queuedBytes(): number {
    return Number(this.#field('queuedBytes'));
  }

  #field(name: Parameters<typeof fieldOf>[1]): string | null {
    return fieldOf(this.held.texts.state, name) || null;
  }
}

/** A command that this transaction adds. */
type Added = HeldCommand;
type Client = ClientView<HeldCommand>;

/** What the process expects of the act's client. `link`: the text of its binding; for a dispatch only its start. */
export type ExpectedClient = { readonly binding: Binding; readonly link: string; readonly waiting: number };

/** Thrown for what a transaction does not do: the act of the same name follows. */
export class Unfit extends Error {}

type Given = {
  readonly client?: ExpectedClient;
  readonly known?: KnownCommand;
  readonly request?: AdmitRequest;
  /** The text of the request of a new command, and the number of the caller's wait. */
  readonly text?: string;
  readonly wait?: string;
};

export class RedisTransaction implements Transaction<HeldCommand, Client> {
  readonly act: number;
  /** The texts of the command after the act: its state (before and after its place), who waits. */
  state = '';
  resultIn = '';
  waits = '';
  /** The place of the number of waiting commands in the answer; null: it is compared. */
  counted: number | null = null;
  readonly #tick: Tick;
  readonly #parts: TransactionParts;
  readonly #given: Given;
  #queueLimit = 0;
  #chosen = false;
  #freeParams = true;

  constructor(tick: Tick, parts: TransactionParts, given: Given) {
    this.#tick = tick;
    this.#parts = parts;
    this.#given = given;
    this.act = ++tick.acts;
  }

  get now(): number {
    return this.#tick.now;
  }

  find(): HeldCommand | null {
    const { known, request } = this.#given;
    if (known) return known;
    if (!request) return null;
    const name = this.#hashOf(request) + request.commandId;
    this.#tick.equal(this.act, this.#clientHash(request), `s${request.commandId}`, '');
    this.#tick.unknown(this.act, this.#parts.hash(request.userId), name);
    return null;
  }

  markOf(): CommandMark | 'conflict' | null {
    return null;
  }

  client(key: { readonly userId: string; readonly clientId: string }): Client {
    const client = this.#given.client ?? unfit();
    const hash = this.#clientHash(key);
    if (this.#given.request) {
      this.#tick.equal(this.act, hash, 'b', client.link);
      this.#tick.lease(this.act, client.binding.nodeId);
    } else this.#tick.starts(this.act, hash, 'b', client.link);
    const members = (size: number) => Object.assign([], { size }) as never;
    return { binding: client.binding, idle: false, waiting: members(client.waiting), running: members(0) };
  }

  isOutdated(): boolean {
    return false;
  }

  isOver(deadline: number): boolean {
    this.#tick.before(this.act, deadline);
    return this.now >= deadline;
  }

  params(): JsonText | null {
    return unfit();
  }

  result(): JsonText | null {
    return unfit();
  }

  reserved(): number {
    return unfit();
  }

  scopeFull(scopeId: string, most: number): RefusedAdmission | null {
    this.#tick.scope(this.act, { sh: this.#parts.hash(scopeId), scope: scopeId, limit: most }, 1);
    return null;
  }

  memberFull(): RefusedAdmission | null {
    return unfit();
  }

  queueFull(_client: Client, most: number): RefusedAdmission | null {
    this.#queueLimit = most;
    return null;
  }

  noMark(): ShareRefusal | null {
    this.#chosen = true;
    return null;
  }

  noRoom({ waiting }: Client, params: JsonText): ShareRefusal | null {
    this.#freeParams = waiting.size === 0 && paramsAreSmall(params);
    return null;
  }

  canWait(): boolean {
    return unfit();
  }

  add(_client: Client, request: AdmitRequest, command: Command, markedBy: string | null): Added {
    const { hash, remembered, windowMs, bounds } = this.#parts;
    const { userId, clientId, commandId, params } = request;
    const [uh, ch] = [hash(userId), this.#hashOf(request)];
    const client = this.#clientHash(request);
    const marked = command.dispatchedAt !== null;
    const bytes = marked || params === null ? 0 : utf8Length(params);
    const states = (place: string): string =>
      stateText(command, {
        ...{ rev: marked ? 2 : 1, place, queuedOn: command.nodeId, markedBy, forgetAt: null, resultIn: '' },
        ...{ progress: null, queuedBytes: bytes },
      });
    const words = [`a${commandId}`, this.#given.text ?? ''];
    if (params !== null) words.push(`p${commandId}`, params);
    if (marked) {
      this.#tick.equal(this.act, client, 'n', '');
      this.state = states('0');
      words.push(`s${commandId}`, this.state);
    } else {
      this.counted = this.#tick.number(this.act, client, 'n', { by: 1, limit: this.#queueLimit });
      this.state = states('\x01');
      const bound = this.#freeParams ? null : (bounds['q'] ?? null);
      this.#tick.share(this.act, { letter: 'q', uh, span: '', bound }, bytes);
    }
    this.#tick.write(this.act, ['HSET', client.key], words);
    const sh = hash(request.scopeId);
    this.#tick.write(
      this.act,
      ['ZADD', this.#tick.key('reserved', sh)],
      [String(command.deadline), [userId, clientId, commandId].join(NUL)],
    );
    this.#tick.write(this.act, ['ZADD', this.#tick.key('scopedue'), 'LT'], [String(command.deadline), sh]);
    this.#name(request, uh);
    const hour = this.now - (this.now % HOUR_MS);
    const newest = this.#tick.key('admitted', String(hour));
    this.#tick.write(this.act, ['ZADD', newest], [String(this.now), uh + ch + commandId]);
    if (!remembered.opened.has(newest)) {
      remembered.opened.add(newest);
      this.#tick.once(['PEXPIRE', newest, String(HOUR_MS - (this.now % HOUR_MS) + LIFE_MS + windowMs)]);
    }
    return { command, queuedOn: command.nodeId, markedBy, progress: null };
  }

  reserveMark(): void {
    unfit();
  }

  wait(added: HeldCommand, { callerNodeId, waitFor }: NewWaiter): void {
    const { nodeId, epoch } = this.#parts.caller;
    if (callerNodeId !== nodeId) unfit();
    this.waits = [nodeId, epoch, `${waitFor === 'completed' ? 'c' : 'a'}${this.#given.wait},`, ''].join(NUL);
    const { commandId } = added.command;
    this.#tick.write(this.act, ['HSET', this.#clientHash(added.command).key], [`w${commandId}`, this.waits]);
  }

  unwait(): void {
    unfit();
  }

  retain({ command }: HeldCommand, row: CommandMessage): void {
    const { hash, retentionMs, remembered, bounds } = this.#parts;
    const { userId, clientId, commandId, traceId, parentSpanId } = command;
    const { payload = null, spill = null } = row.kept ?? {};
    const [uh, suffix] = [hash(userId), clientStream(clientId)];
    const sth = hash(userId, suffix);
    const bytes = spill ? spill.bytes : utf8Length(payload ?? '');
    const text = [
      ...[row.id ?? `${commandId}:${row.kind}`, row.kind, clientId, row.instanceId ?? command.boundInstanceId ?? ''],
      ...[commandId, traceId ?? '', parentSpanId ?? '', bytes, row.error ? JSON.stringify(row.error) : ''],
      ...[spill ? JSON.stringify(spill) : '', payload ?? '', ''],
    ].join(NUL);
    const heads = this.#tick.hash(this.#tick.key('streamheads', uh));
    const length = Math.max(1, Math.min(HOUR_MS * 12, Math.floor(retentionMs / 8)));
    const start = this.now - (this.now % length);
    this.#tick.holds(this.act, heads, 's', `${start}:${start + length + retentionMs}`);
    this.#tick.holds(this.act, heads, sth, '');
    const lag = Math.min(60_000, Math.floor(retentionMs / 8));
    let renewal: readonly string[] = [];
    const key = this.#tick.key('stream', sth);
    if (Math.abs(this.now - (remembered.renewed.get(sth) ?? 0)) >= lag) {
      remembered.renewed.set(sth, this.now);
      this.#tick.renewed.push(sth);
      renewal = [
        ...[key, String(retentionMs + GRACE_MS), heads.key, String(retentionMs + 2 * GRACE_MS)],
        ...[this.#tick.key('streamgone'), String(this.now + retentionMs), [userId, suffix, uh, sth].join(NUL)],
        ...[this.#tick.key('streamage', uh), `${suffix}${NUL}${sth}`],
      ];
    }
    const places = this.#tick.hash(this.#tick.key('cmdrows', uh, String(start)));
    this.#tick.row(this.act, { key, suffix, sth, heads, places, renewal }, { text, commandId });
    const over = [this.#tick.key('historyover'), `${userId}${NUL}${uh}`] as const;
    this.#tick.share(this.act, { letter: 'h', uh, span: '', bound: bounds['h'] ?? null, over }, utf8Length(text));
  }

  offer({ command }: HeldCommand, nodeId: string): void {
    const { caller, remembered } = this.#parts;
    const { userId, clientId, commandId } = command;
    const client = this.#clientHash(command);
    const [start = '', rest = ''] = this.state.split('\x01');
    if (nodeId === caller.nodeId) {
      const box = this.#tick.key('mailbox', nodeId, String(caller.epoch));
      const names = ['kind', 'command', 'userId', userId, 'clientId', clientId, 'commandId', commandId];
      this.#tick.wait(this.act, client, [`s${commandId}`, start, rest, '', '', '', '']);
      return this.#tick.write(this.act, ['XADD', box, '*'], names);
    }
    const epoch = remembered.epochs.get(nodeId) ?? unfit();
    this.#sameEpoch(nodeId, epoch);
    const params = this.#given.request?.params ?? '';
    const carried = utf8Length(params) <= CARRIED_BYTES ? params : '';
    const box = this.#tick.key('mailbox', nodeId, epoch);
    const far = [box, this.#given.text ?? '', this.waits, carried];
    this.#tick.wait(this.act, client, [`s${commandId}`, start, rest, ...far]);
  }

  post(): void {
    unfit();
  }

  move(): void {
    unfit();
  }

  queue(): void {
    unfit();
  }

  run(entry: HeldCommand, command: Command, markedBy: string | null): JsonText | null {
    const known = this.#expect(entry);
    const { commandId, userId } = command;
    const client = this.#clientHash(command);
    this.counted = this.#tick.number(this.act, client, 'n', { by: -1, limit: 0 });
    this.#tick.share(
      this.act,
      { letter: 'q', uh: this.#parts.hash(userId), span: '', bound: null },
      -known.queuedBytes,
    );
    this.state = this.#next(known, command, { markedBy, queuedBytes: 0 });
    this.#tick.write(this.act, ['HSET', client.key], [`s${commandId}`, this.state]);
    return (known.held.params ?? unfit()) as JsonText;
  }

  noteProgress(): void {
    unfit();
  }

  see(_entry: HeldCommand, _messageId: string, first: Sighting | null): void {
    if (first) unfit();
    const { remembered } = this.#parts;
    const bucket = this.#tick.key('seen', String(Math.floor(this.now / SEEN_GRAIN_MS)));
    this.#tick.count(this.act, bucket, 'unique');
    if (remembered.opened.has(bucket)) return;
    remembered.opened.add(bucket);
    this.#tick.once(['PEXPIRE', bucket, String(SEEN_MS)]);
  }

  reply(): void {
    unfit();
  }

  end(entry: HeldCommand, command: Command, result: JsonText | null): void {
    const { hash, windowMs, bounds } = this.#parts;
    const known = this.#expect(entry);
    const { userId, clientId, commandId, scopeId, terminalAt, admittedAt } = command;
    const waits = known.held.waits ?? unfit();
    if (scopeId !== userId || terminalAt === null || terminalAt > admittedAt + LIFE_MS) unfit();
    const [uh, ch, sh] = [hash(userId), this.#hashOf(command), hash(scopeId)];
    const client = this.#clientHash(command);
    this.#tick.equal(this.act, client, `w${commandId}`, waits);
    const fields = ['s', 'a', 'p', 'w'].map((letter) => letter + commandId);
    this.#tick.write(this.act, ['HDEL', client.key], fields);
    this.#tick.scope(this.act, { sh, scope: scopeId, limit: 0 }, -1);
    const name = [userId, clientId, commandId].join(NUL);
    this.#tick.write(this.act, ['ZREM', this.#tick.key('reserved', sh)], [name]);
    if (result !== null) this.#keepResult(command, { uh, name: ch + commandId, result, bound: bounds['r'] ?? null });
    const forgetAt = this.now + windowMs;
    this.state = this.#next(known, command, { forgetAt, resultIn: this.resultIn, queuedBytes: 0 });
    const length = Math.max(1_000, Math.floor(windowMs / 2));
    const began = this.now - (this.now % length);
    const ended = this.#tick.key('ended', uh, `${began}.${windowMs}`);
    const record = this.state + known.held.request;
    this.#tick.write(this.act, ['HSET', ended], [ch + commandId, record]);
    const span = { key: ended, name: `${began}.${windowMs}`, over: began + length + windowMs, grace: GRACE_MS };
    this.#open(userId, uh, span);
    this.#tick.count(this.act, this.#tick.key('endedcount'), String(Math.floor(forgetAt / 1_000)));
    this.#reply(waits, record, result);
  }

  bind(): void {
    unfit();
  }

  sha256(): string {
    return unfit();
  }

  /** Posts the end to the other nodes that wait. This node replies to its own callers from the answer. */
  #reply(waits: string, record: string, result: JsonText | null): void {
    const { caller } = this.#parts;
    const texts = waits.split(NUL);
    for (let i = 0; i + 2 < texts.length; i += 3) {
      const [node = '', epoch = ''] = [texts[i], texts[i + 1]];
      if (node === caller.nodeId && epoch === String(caller.epoch)) continue;
      if (utf8Length(result ?? '') > INLINE_BYTES) unfit();
      this.#sameEpoch(node, epoch);
      const fields = ['kind', 'reply', 'record', record, ...(result === null ? [] : ['result', result])];
      this.#tick.write(this.act, ['XADD', this.#tick.key('mailbox', node, epoch), '*'], fields);
    }
  }

  #sameEpoch(nodeId: string, epoch: string): void {
    const node = this.#tick.hash(this.#tick.key('node', nodeId));
    this.#tick.equal(this.act, node, 'epoch', epoch);
    this.#tick.equal(this.act, node, 'fenced', '');
  }

  #keepResult(
    { userId }: Command,
    of: { uh: string; name: string; result: JsonText; bound: readonly [number, number | null] | null },
  ): void {
    const { retentionMs, windowMs } = this.#parts;
    const shown = Math.min(retentionMs, windowMs);
    const length = Math.max(1_000, Math.floor(shown / 4));
    const began = this.now - (this.now % length);
    this.resultIn = String(began);
    const key = this.#tick.key('results', of.uh, this.resultIn);
    const share = { letter: 'r', uh: of.uh, span: `r${began}`, bound: of.bound };
    this.#tick.share(this.act, share, utf8Length(of.result));
    this.#tick.write(this.act, ['HSET', key], [of.name, of.result]);
    this.#open(userId, of.uh, { key, name: `r${began}`, over: began + length + shown + 60_000, grace: 0 });
  }

  /** Adds the name of a new command to the listings, and takes room for its mark. */
  #name({ userId, clientId, commandId }: AdmitRequest, uh: string): void {
    const { windowMs, bounds } = this.#parts;
    const hour = this.now - (this.now % HOUR_MS);
    const length = Math.min(HOUR_MS, Math.max(60_000, Math.floor(windowMs / 2)));
    const began = hour + Math.floor((this.now - hour) / length) * length;
    const name = `n${began}.${windowMs}`;
    const key = this.#tick.key('names', uh, name.slice(1));
    this.#tick.write(this.act, ['ZADD', key], ['0', clientId + NUL + commandId]);
    this.#open(userId, uh, { key, name, over: began + length + LIFE_MS + windowMs, grace: GRACE_MS });
    // Without room, an id that the relay made is not counted: the act of that name decides.
    const mark = { letter: this.#chosen ? 'm' : 'm', uh, span: name, bound: bounds['m'] ?? null };
    this.#tick.share(this.act, mark, 1);
  }

  /** Registers a span of a user, unless this process has done so within the last minute. */
  #open(userId: string, uh: string, of: { key: string; name: string; over: number; grace: number }): void {
    const { opened } = this.#parts.remembered;
    if (opened.has(of.key)) return;
    opened.add(of.key);
    this.#tick.once(['ZADD', this.#tick.key('spans', uh), String(of.over), of.name]);
    this.#tick.once(['ZADD', this.#tick.key('endedspans'), String(of.over), [uh, of.name, userId].join(NUL)]);
    this.#tick.once(['ZADD', this.#tick.key('cmdusers'), '0', userId + NUL + uh]);
    this.#tick.once(['PEXPIRE', of.key, String(of.over - this.now + of.grace)]);
  }

  /** The command must be in Redis as this process knows it. */
  #expect(entry: HeldCommand): KnownCommand {
    if (!(entry instanceof KnownCommand)) return unfit();
    const [rev, admittedAt] = entry.held.texts.state;
    const { commandId } = entry.command;
    this.#tick.starts(this.act, this.#clientHash(entry.command), `s${commandId}`, `${rev}${NUL}${admittedAt}${NUL}`);
    return entry;
  }

  #next(
    known: KnownCommand,
    command: Command,
    change: { markedBy?: string | null; forgetAt?: number; resultIn?: string; queuedBytes: number },
  ): string {
    const { state } = known.held.texts;
    return stateText(command, {
      rev: Number(fieldOf(state, 'rev')) + 1,
      place: fieldOf(state, 'place'),
      queuedOn: known.queuedOn,
      markedBy: change.markedBy ?? known.markedBy,
      forgetAt: change.forgetAt ?? null,
      resultIn: change.resultIn ?? '',
      progress: known.progress,
      queuedBytes: change.queuedBytes,
    });
  }

  #clientHash(key: { readonly userId: string; readonly clientId: string }): ReadHash {
    return this.#tick.hash(this.#tick.key('client', this.#hashOf(key)));
  }

  #hashOf({ userId, clientId }: { readonly userId: string; readonly clientId: string }): string {
    return this.#parts.hash(userId, clientId);
  }
}

function unfit(): never {
  throw new Unfit('An act that no transaction does.');
}
