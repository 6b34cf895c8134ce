/** The transaction of one act over Redis: turns what a rule reads and changes into conditions and writes of a call. */
import { satisfied, type NewWaiter } from '../../../core/commands/waiter.ts';
import type { Command, CommandMark } from '../../../core/commands/command.ts';
import type { AdmitQuestion, AdmitRequest, Binding } from '../../../core/commands/command-store.ts';
import type {
  ClientView,
  CommandRow,
  ContextState,
  MemberLimits,
  RefusedAdmission,
  Transaction,
} from '../../../core/commands/transaction.ts';
import { clientKeyText, isRelayId, type ClientKey, type CommandKey } from '../../../core/ids.ts';
import { trustJson, utf8Length, type JsonText } from '../../../core/json.ts';
import { WAITERS_PER_COMMAND } from '../../../core/limits.ts';
import { waitOfBucket, type CallerRate } from '../../../core/rates.ts';
import { paramsAreSmall } from '../../../core/shares/queued-bytes.ts';
import { shareRefusal, type ShareRefusal } from '../../../core/shares/share-bounds.ts';
import { REPORTER_FIELDS, reporterOf } from '../connections-rows.ts';
import { listOf, textOr, type ReadCommand } from '../replies.ts';
import { parseWaits, waitsText, waitText, type NodeWaits } from '../waiters-local.ts';
import { GRACE_MS, LIFE_MS, NO_LIMIT, Unread } from './transaction-writes.ts';
import { Entry, decodeMark, type StoredMark } from './record.ts';
import { LinkTransaction, parseLink } from './link-transaction.ts';
import type { ReadHash } from './transaction-call.ts';

const NUL = '\0';
/** The most bytes of params in a mailbox row. Larger params are read when their command is dispatched. */
const CARRIED_BYTES = 4_096;
/** The most bytes of a result in a mailbox row. For a larger result, the row says where it is stored. */
const INLINE_BYTES = 16_384;

type Client = ClientView & {
  readonly userId: string;
  /** The link as Redis stores it; for a dispatch, only its beginning; '' if there is none. */
  readonly link: string;
};

export class RedisTransaction extends LinkTransaction implements Transaction<Entry, Client> {
  /** The index of the number of waiting commands in the answer; null if this number is compared instead of changed. */
  counted: number | null = null;
  #found = false;
  #mark: StoredMark | null = null;
  #client: Client | null = null;
  #member: MemberLimits | null = null;
  #queueLimit = NO_LIMIT;
  #chosen = false;
  #freeParams = true;

  // Reads.

  find(key: CommandKey): Entry | null {
    if (this.#found) return this.entries[0] ?? null;
    this.#found = true;
    const { known } = this.given;
    const read = known ? null : (this.#readLive(key) ?? this.#readEnded(key));
    const entry = known?.command ? Entry.live(known.command) : read;
    if (entry) this.entries.push(entry);
    if (this.#mark) return null;
    if (!entry) this.#expectNone(key);
    else if (entry.span === null) this.call.starts(this.act, this.clientHash(key), `s${key.commandId}`, entry.start);
    else this.call.starts(this.act, this.call.hash(entry.span), this.nameOf(key), entry.start);
    return entry;
  }

  #readLive(key: CommandKey): Entry | null {
    const [read] = liveReads(this.clientHash(key).key, key);
    const [state, request, waits] = listOf(this.read(read));
    if (typeof state !== 'string' || typeof request !== 'string') return null;
    return Entry.read({ state, request, waits: textOr(waits) ?? '' });
  }

  #readEnded(key: CommandKey): Entry | null {
    const uh = this.deps.hash(key.userId);
    const spans = listOf(this.read(['ZRANGE', this.call.key('spans', uh), 0, -1])).map(String);
    const keys = spans.filter((span) => /^\d/.test(span)).map((span) => this.call.key('ended', uh, span));
    const records = this.readAll(keys.map((span) => ['HGET', span, this.nameOf(key)]));
    for (const [i, whole] of records.entries()) {
      if (typeof whole !== 'string') continue;
      const mark = decodeMark(whole);
      if (mark && mark.until > this.now) this.#mark = mark;
      if (mark) continue;
      const entry = Entry.ended(whole, keys[i] ?? '');
      if ((entry.forgetAt ?? 0) > this.now) return entry;
    }
    return null;
  }

  /** Requires that no live or ended command has this id. */
  #expectNone(key: CommandKey): void {
    this.call.equal(this.act, this.clientHash(key), `s${key.commandId}`, '');
    this.call.unknown(this.act, this.deps.hash(key.userId), this.nameOf(key));
  }

  /** Returns the mark that `find` has read in place of a record. */
  markOf(_key: CommandKey, digest: string | null): CommandMark | 'conflict' | null {
    if (!this.#mark) return null;
    return digest === null || this.#mark.digest === digest ? this.#mark.mark : 'conflict';
  }

  client(key: ClientKey): Client {
    this.#client ??= this.given.known ? this.#expectedClient(key) : this.#readClient(key);
    return this.#client;
  }

  #expectedClient(key: ClientKey): Client {
    const { client, command } = this.given.known ?? {};
    if (!client) throw new Unread([]);
    const hash = this.clientHash(key);
    if (command) this.call.starts(this.act, hash, 'b', client.link);
    else {
      this.call.equal(this.act, hash, 'b', client.link);
      this.call.lease(this.act, client.binding.nodeId, false);
    }
    const waiting = this.deps.remembered.waiting.get(clientKeyText(key)) ?? 0;
    return viewOf(key, client.link, { binding: client.binding, waiting });
  }

  #readClient(key: ClientKey): Client {
    const hash = this.clientHash(key);
    const [bound, waiting] = listOf(this.read(clientRead(hash.key)));
    const link = textOr(bound) ?? '';
    this.call.equal(this.act, hash, 'b', link);
    return viewOf(key, link, { binding: this.#bindingOf(link), waiting: Number(waiting ?? 0) });
  }

  /**
   * Returns the link that a text describes; null if there is none, or if the lease of its node is over. Redis checks
   * the lease again by its own clock. Without that check, the node could renew its lease and move its queue before this
   * act is written, and the new command would wait although its link is up.
   */
  #bindingOf(text: string): Binding | null {
    const link = parseLink(text);
    if (!link) return null;
    const { nodeId, instanceId, epoch } = link;
    const lease = this.read(['ZSCORE', this.call.key('nodes'), nodeId]);
    const isOver = lease !== null && (this.given.isDead ?? Number(lease) <= this.now);
    this.call.lease(this.act, nodeId, isOver);
    if (isOver) return null;
    return { nodeId, instanceId, epoch: Number(epoch) };
  }

  isOutdated({ userId, clientId }: AdmitRequest): boolean {
    const { seen, known } = this.given;
    if (seen === undefined || known) return false;
    const { binding, link } = this.client({ userId, clientId });
    return !binding || !link.startsWith(seen);
  }

  isOver(deadline: number): boolean {
    const isOver = this.now >= deadline;
    this.call.deadline(this.act, deadline, isOver);
    return isOver;
  }

  params({ held, command }: Entry): JsonText | null {
    if (held.params !== null) return trustJson(held.params);
    const params = this.read(paramsRead(this.clientHash(command).key, command));
    return typeof params === 'string' ? trustJson(params) : null;
  }

  /** Null, because params are not kept for writing a command again. */
  keptParams(): null {
    return null;
  }

  result({ command, resultIn }: Entry): JsonText | null {
    const { terminalAt } = command;
    if (terminalAt === null || terminalAt + this.deps.retentionMs <= this.now) return null;
    if (resultIn === '' || resultIn === '-') return null;
    const results = this.call.key('results', this.deps.hash(command.userId), resultIn);
    const result = this.read(['HGET', results, this.nameOf(command)]);
    return typeof result === 'string' ? trustJson(result) : null;
  }

  /** Reads the context and the connection of its client. Both must be unchanged when Redis writes. */
  context(key: ClientKey, contextId: string): ContextState {
    const hash = this.hashOfClient(key);
    const keyOf = (kind: ContextKey): string => this.call.key(kind, hash);
    const [row, left, found] = this.readAll(contextReads(keyOf, contextId));
    const reporter = reporterOf(key, listOf(found), { now: this.now, over: new Map() });
    if (!reporter?.reportsContexts) return { kind: 'unknown' };
    if (row === null || left !== null) return { kind: 'gone' };
    const { instanceId } = reporter;
    this.call.starts(this.act, this.call.hash(keyOf('ctx')), contextId, '');
    this.call.equal(this.act, this.call.hash(keyOf('ctxleft')), contextId, '');
    this.call.equal(this.act, this.call.hash(keyOf('conn')), 'instanceId', instanceId);
    return { kind: 'reported', instanceId };
  }

  reserved(scopeId: string): number {
    return Number(this.read(['ZCARD', this.call.key('reserved', this.deps.hash(scopeId))]));
  }

  readonly pauseOf = (): null => null;

  // Guards.

  scopeFull(scopeId: string, most: number, refusal: RefusedAdmission): RefusedAdmission | null {
    if (this.given.asks) return this.reserved(scopeId) >= most ? refusal : null;
    this.call.scope(this.act, { sh: this.deps.hash(scopeId), scope: scopeId, limit: most }, 1);
    return null;
  }

  memberFull(question: AdmitQuestion, limits: MemberLimits, refusal: RefusedAdmission): RefusedAdmission | null {
    this.#member = limits;
    if (!this.given.asks || this.reserved(question.scopeId) <= limits.above) return null;
    const members = this.call.key('members', this.deps.hash(question.scopeId));
    return Number(this.read(['HGET', members, this.deps.hash(question.userId)]) ?? 0) >= limits.most ? refusal : null;
  }

  queueFull({ waiting }: Client, most: number, refusal: RefusedAdmission): RefusedAdmission | null {
    this.#queueLimit = most;
    return this.given.asks && waiting.size >= most ? refusal : null;
  }

  /** Refuses also an id that the relay may have made before and forgotten for lack of room. */
  noMark({ userId }: Client, commandId: string): ShareRefusal | null {
    this.#chosen = true;
    if (isRelayId(commandId) && commandId <= this.#forgottenId(userId)) return 'share_exceeded';
    return this.given.asks ? this.#noShare(userId, 'm', 1) : null;
  }

  /**
   * Returns the greatest id of a user's commands that left no mark; '' if there is none. Expects '' until it is read.
   */
  #forgottenId(userId: string): string {
    const reduced = this.call.hash(this.call.key('reduced', this.deps.hash(userId)));
    const [until, id] = this.given.known ? [] : listOf(this.read(['HMGET', reduced.key, 'until', 'id']));
    const known = textOr(id ?? null) ?? '';
    this.call.equal(this.act, reduced, 'id', known);
    return Number(until ?? 0) > this.now ? known : '';
  }

  /** Small params for a connected client with an empty queue are never refused, because they are dispatched at once. */
  noRoom({ userId, binding, waiting }: Client, params: JsonText): ShareRefusal | null {
    this.#freeParams = binding !== null && waiting.size === 0 && paramsAreSmall(params);
    return this.given.asks && !this.#freeParams ? this.#noShare(userId, 'q', utf8Length(params)) : null;
  }

  /** Returns why a share of the act's user has no room, by the amounts that were read. */
  #noShare(userId: string, letter: string, amount: number): ShareRefusal | null {
    const bound = this.deps.bounds[letter];
    if (!bound) return null;
    const amounts = listOf(this.read(amountsRead(this.call.meta.key, letter, this.deps.hash(userId))));
    const [used = 0, held = 0] = amounts.map((amount) => Number(amount ?? 0));
    return shareRefusal({ guarantee: bound[0], total: bound[1] }, { held, used, amount, admin: false });
  }

  waitForToken(rate: CallerRate): number {
    if (!this.given.asks) return 0;
    const [taken, at] = String(this.read(['GET', this.#bucketOf(rate)]) ?? '0 0')
      .split(' ')
      .map(Number);
    return waitOfBucket(rate, taken ?? 0, this.now - (at ?? 0));
  }

  takeToken(rate: CallerRate): void {
    this.call.token(this.act, this.#bucketOf(rate), rate);
  }

  #bucketOf({ rule, caller }: CallerRate): string {
    return this.call.key('rate', this.deps.hash(rule, caller));
  }

  canWait(entry: Entry, waiter: Pick<NewWaiter, 'waitFor'> & Partial<NewWaiter>, most: number): boolean {
    const waits = parseWaits(this.#waitsOf(entry));
    if (count(waits) < most) return true;
    const isKnown = waits.some(
      ({ node, list }) => node === waiter.callerNodeId && list.includes(this.#waitName(waiter)),
    );
    return isKnown || count(this.#present(waits)) < most;
  }

  #present(waits: readonly NodeWaits[]): readonly NodeWaits[] {
    return waits.filter(({ node, epoch }) => this.epochOf(node) === epoch);
  }

  #waitName({ waitFor }: Pick<NewWaiter, 'waitFor'>): string {
    return waitText(waitFor, this.given.wait ?? '');
  }

  #waitsOf(entry: Entry): string {
    if (entry.waits === null) throw new Unread([]);
    return entry.waits;
  }

  // Writes.

  add(_client: Client, request: AdmitRequest, command: Command, markedBy: string | null): Entry {
    const { hash, windowMs } = this.deps;
    const { userId, clientId, commandId, params, scopeId } = request;
    const [uh, sh] = [hash(userId), hash(scopeId)];
    const hashOfClient = this.clientHash(request);
    const marked = command.dispatchedAt !== null;
    const queuedBytes = marked || params === null ? 0 : utf8Length(params);
    const entry = Entry.added(command, { request: this.given.text ?? '', params, markedBy, queuedBytes });
    this.entries.push(entry);
    const words = [`a${commandId}`, entry.held.request];
    if (params !== null) words.push(`p${commandId}`, params);
    this.write(['HSET', hashOfClient.key], words);
    this.#nameSpan(entry, uh);
    if (marked) this.call.equal(this.act, hashOfClient, 'n', '');
    else {
      // A later command of the same call counts this one as waiting, so that it is not dispatched before it.
      const waiting = this.deps.remembered.waiting;
      const nameOfClient = clientKeyText(request);
      waiting.set(nameOfClient, (waiting.get(nameOfClient) ?? 0) + 1);
      this.counted = this.call.number(this.act, hashOfClient, 'n', {
        by: 1,
        ...{ limit: this.#queueLimit, code: 'queue_full' },
      });
      if (this.#freeParams && queuedBytes > 0) this.call.equal(this.act, hashOfClient, 'n', '');
      const bound = this.#freeParams ? null : (this.deps.bounds['q'] ?? null);
      this.call.share(this.act, { letter: 'q', uh, span: '', bound }, queuedBytes);
    }
    const name = [userId, clientId, commandId].join(NUL);
    this.write(['ZADD', this.call.key('reserved', sh)], [String(command.deadline), name]);
    this.searchBy(sh, command.deadline);
    if (command.queuedAt === null)
      this.write(['ZADD', this.call.key('connectdue')], [String(command.connectDeadline), this.dueName(command)]);
    if (scopeId !== userId) this.countMember(command, 1, this.#member);
    this.indexNewest(request, windowMs);
    return entry;
  }

  reserveMark(entry: Entry): void {
    const { userId, admittedAt } = entry.command;
    if (!entry.unmarked || this.#noShare(userId, 'm', 1) !== null) return;
    const span = this.spanOfNames(admittedAt).name;
    this.call.share(this.act, { letter: 'm', uh: this.deps.hash(userId), span, bound: null }, 1);
    entry.unmarked = false;
    entry.isChanged = true;
    this.changes++;
  }

  wait(entry: Entry, waiter: NewWaiter): void {
    const text = this.#waitName(waiter);
    const all = parseWaits(this.#waitsOf(entry));
    const waits = count(all) < WAITERS_PER_COMMAND ? all : this.#present(all);
    const { callerNodeId: node } = waiter;
    const epoch = this.epochOf(node);
    const before = waits.find((one) => one.node === node);
    const list = before?.epoch === epoch ? before.list : [];
    if (list.includes(text)) return;
    const own: NodeWaits = { node, epoch, list: [...list, text] };
    this.#setWaits(entry, waitsText(before ? waits.map((one) => (one === before ? own : one)) : [...waits, own]));
  }

  /** Removes a wait. May be repeated. */
  unwait(key: CommandKey, waiter: NewWaiter): void {
    const entry = this.find(key);
    if (!entry || entry.span !== null) return;
    const text = this.#waitName(waiter);
    const waits = parseWaits(this.#waitsOf(entry)).map((one) =>
      one.node === waiter.callerNodeId ? { ...one, list: one.list.filter((other) => other !== text) } : one,
    );
    this.#setWaits(entry, waitsText(waits));
  }

  /** Returns the waits as they were read. The act fails if they have changed, because a cached record may lack some. */
  #sameWaits(entry: Entry): string {
    const waits = this.#waitsOf(entry);
    this.call.equal(this.act, this.clientHash(entry.command), `w${entry.command.commandId}`, waits);
    return waits;
  }

  #setWaits(entry: Entry, waits: string): void {
    if (waits === this.#waitsOf(entry)) return;
    if (entry.waitsBefore === null && !entry.isNew) entry.waitsBefore = this.#sameWaits(entry);
    entry.waits = waits;
    this.changes++;
  }

  /** Marks the command to be posted. `close` posts it in its state after the act. */
  offer(entry: Entry, nodeId: string): void {
    entry.offeredTo = nodeId;
    this.changes++;
  }

  post(nodeId: string, row: CommandRow): void {
    const { userId, clientId, commandId } = row.key;
    const reason = row.kind === 'cancel' && row.reason !== null ? ['reason', row.reason] : [];
    const named = ['userId', userId, 'clientId', clientId, 'commandId', commandId];
    this.postTo(nodeId, ['kind', row.kind, ...named, ...reason]);
  }

  move(entry: Entry, command: Command): void {
    entry.command = command;
    entry.isChanged = true;
    this.changes++;
  }

  queue(entry: Entry, command: Command): void {
    const before = entry.command;
    if (before.queuedAt === null) this.write(['ZREM', this.call.key('connectdue')], [this.dueName(before)]);
    entry.queuedOn = command.nodeId;
    this.move(entry, command);
  }

  run(entry: Entry, command: Command, markedBy: string | null): JsonText | null {
    const params = this.params(entry);
    this.#leaveQueue(entry);
    entry.markedBy = markedBy ?? entry.markedBy;
    this.move(entry, command);
    return params;
  }

  /** Stops counting a command and the bytes of its params as waiting. */
  #leaveQueue(entry: Entry): void {
    const { userId } = entry.command;
    this.counted = this.call.number(this.act, this.clientHash(entry.command), 'n', { by: -1, limit: 0, code: '' });
    const share = { letter: 'q', uh: this.deps.hash(userId), span: '', bound: null };
    this.call.share(this.act, share, -entry.queuedBytes);
    entry.queuedBytes = 0;
  }

  arrived(): void {
    // No params are kept, so none can be given up.
  }

  noteProgress(entry: Entry, progress: NonNullable<Entry['progress']>): void {
    entry.progress = progress;
    entry.isChanged = true;
    this.changes++;
  }

  countEnd(isNew: boolean): void {
    this.countSeen(isNew ? 'unique' : 'duplicates');
  }

  reply(entry: Entry): void {
    if (this.#sameWaits(entry) !== '') this.#reply(entry, null);
  }

  end(entry: Entry, command: Command, result: JsonText | null): void {
    const { hash, windowMs } = this.deps;
    const before = entry.command;
    const { userId, clientId, commandId, scopeId } = command;
    const [uh, sh] = [hash(userId), hash(scopeId)];
    const waits = this.#sameWaits(entry);
    const fields = ['s', 'a', 'p', 'w'].map((letter) => letter + commandId);
    this.write(['HDEL', this.clientHash(command).key], fields);
    this.call.scope(this.act, { sh, scope: scopeId, limit: 0 }, -1);
    if (scopeId !== userId) this.countMember(command, -1, null);
    this.write(['ZREM', this.call.key('reserved', sh)], [[userId, clientId, commandId].join(NUL)]);
    if (before.dispatchedAt === null) this.#leaveQueue(entry);
    if (before.queuedAt === null) this.write(['ZREM', this.call.key('connectdue')], [this.dueName(before)]);
    if (result !== null) this.keepResult(entry, uh, result);
    const forgetAt = this.now + windowMs;
    const length = Math.max(1_000, Math.floor(windowMs / 2));
    const began = this.now - (this.now % length);
    const name = `${began}.${windowMs}`;
    const ended = this.call.key('ended', uh, name);
    const over = began + length + windowMs;
    this.openSpan(userId, uh, { key: ended, name, over, grace: GRACE_MS });
    const counted = { userId, uh, began: name, span: name, over };
    this.countBounded({ ...counted, letter: 'e', name: this.nameOf(command), until: forgetAt });
    // A command whose name was removed before its end gets a second name, so that its record can be found.
    if (this.now > command.admittedAt + LIFE_MS) this.nameIn(command, uh);
    this.call.count(this.act, this.call.key('endedcount'), String(Math.floor(forgetAt / 1_000)));
    entry.forgetAt = forgetAt;
    entry.span = ended;
    this.move(entry, command);
    if (waits !== '') this.#reply(entry, result);
  }

  /**
   * Posts the record to each node whose waits it satisfies, and removes these waits. The caller of an act that ends a
   * command for its client replies to the waits of its own node by itself.
   */
  #reply(entry: Entry, result: JsonText | null): void {
    const { command, resultIn } = entry;
    const { caller } = this.deps;
    const left: NodeWaits[] = [];
    for (const one of parseWaits(this.#waitsOf(entry))) {
      const open = one.list.filter((text) => !satisfied(text.startsWith('a') ? 'acknowledged' : 'completed', command));
      const isPresent = open.length === one.list.length || this.epochOf(one.node) === one.epoch;
      left.push({ ...one, list: isPresent ? open : [] });
      const isOwn = one.node === caller.nodeId && this.given.replies === true;
      if (open.length === one.list.length || !isPresent || isOwn) continue;
      const fields = ['kind', 'reply', 'record', entry.whole()];
      if (result !== null && resultIn !== '-' && utf8Length(result) > INLINE_BYTES)
        fields.push(
          'large',
          this.call.key('results', this.deps.hash(command.userId), resultIn),
          'field',
          this.nameOf(command),
        );
      else if (result !== null) fields.push('result', result);
      this.postTo(one.node, fields);
    }
    if (entry.span === null) this.#setWaits(entry, waitsText(left));
  }

  sha256(text: string): string {
    return this.deps.sha256(text);
  }

  /** Adds the writes for the commands in their state after the act. Called once, after the rule. */
  close(): void {
    for (const entry of this.entries) this.#close(entry);
    const { nodeId } = this.deps.caller;
    this.#postNames(this.entries.filter(({ offeredTo, isNew }) => offeredTo === nodeId && !isNew));
  }

  #close(entry: Entry): void {
    const { command, span, held, offeredTo } = entry;
    const client = this.clientHash(command);
    if (span === null && entry.waits !== null && entry.waits !== (entry.waitsBefore ?? held.waits ?? '')) {
      if (entry.waits === '') this.write(['HDEL', client.key], [`w${command.commandId}`]);
      else this.write(['HSET', client.key], [`w${command.commandId}`, entry.waits]);
    }
    if (entry.isNew && command.dispatchedAt === null) this.#enqueue(entry, client);
    else if (span !== null && entry.isChanged) this.write(['HSET', span], [this.nameOf(command), entry.whole()]);
    else if (entry.isChanged || entry.isNew) this.write(['HSET', client.key], [`s${command.commandId}`, entry.state()]);
    if (span === null && !entry.isNew && entry.request !== held.request)
      this.write(['HSET', client.key], [`a${command.commandId}`, entry.request]);
    if (offeredTo === null || offeredTo === this.deps.caller.nodeId || entry.isNew) return;
    const waits = entry.waits === null || entry.waits === '' ? [] : ['waits', entry.waits];
    this.postTo(offeredTo, ['kind', 'command', 'state', entry.state(), 'request', entry.request, ...waits]);
  }

  /** Posts commands to the calling node, in one row that contains all their names: that node caches the records. */
  #postNames(entries: readonly Entry[]): void {
    const [first] = entries;
    if (!first) return;
    const { userId, clientId } = first.command;
    const commandId = entries.map(({ command }) => command.commandId).join(NUL);
    this.post(this.deps.caller.nodeId, { kind: 'command', key: { userId, clientId, commandId } });
  }

  /** Writes a new command that waits, with its place in the queue, and posts it to the node of the client's link. */
  #enqueue(entry: Entry, client: ReadHash): void {
    const { caller } = this.deps;
    const { command, held } = entry;
    const { commandId } = command;
    // While a queue is moving to a link, the act that moves the next part posts the command.
    const { upTo = '', moved = '' } = parseLink(this.#client?.link ?? '') ?? {};
    const nodeId = moved === '' ? entry.offeredTo : null;
    const floor = moved === '' ? '0' : String(Math.max(Number(upTo), Number(moved)));
    const [start = '', rest = ''] = entry.state('\x01').split('\x01');
    const words = [`s${commandId}`, start, rest, floor];
    if (nodeId !== null && nodeId !== caller.nodeId) {
      const box = this.mailboxOf(nodeId);
      const params = held.params !== null && utf8Length(held.params) <= CARRIED_BYTES ? held.params : '';
      if (box !== null)
        return this.call.wait(this.act, client, [...words, box, held.request, entry.waits ?? '', params]);
    } else if (nodeId !== null) this.#postNames([entry]);
    this.call.wait(this.act, client, [...words, '']);
  }

  /** Lists the name of a new command, and takes room for its mark. Ids of the relay may go without a mark. */
  #nameSpan(entry: Entry, uh: string): void {
    const span = this.nameIn(entry.command, uh);
    if (!this.#chosen && this.given.without?.includes('m')) return void (entry.unmarked = true);
    this.call.share(this.act, { letter: 'm', uh, span, bound: this.deps.bounds['m'] ?? null }, 1);
  }
}

/** Returns the reads of a live command: its state, request and waits. `client`: the key of the client's HASH. */
export function liveReads(client: string, { commandId }: CommandKey): readonly [ReadCommand] {
  return [['HMGET', client, `s${commandId}`, `a${commandId}`, `w${commandId}`]];
}

/** Returns the read of a live command's params. `client`: the key of the client's HASH. */
export function paramsRead(client: string, { commandId }: CommandKey): ReadCommand {
  return ['HGET', client, `p${commandId}`];
}

/** Returns the read of a client: its link, and the number of its waiting commands. */
export function clientRead(client: string): ReadCommand {
  return ['HMGET', client, 'b', 'n'];
}

type ContextKey = 'ctx' | 'ctxleft' | 'conn';

/** Returns the reads of a context: its row, the time when it left, and the connection of its client. */
export function contextReads(keyOf: (kind: ContextKey) => string, contextId: string): readonly ReadCommand[] {
  return [
    ['HGET', keyOf('ctx'), contextId],
    ['HGET', keyOf('ctxleft'), contextId],
    ['HMGET', keyOf('conn'), ...REPORTER_FIELDS],
  ];
}

/** Returns the read of the amounts of a share that all users hold, and that one user holds. */
export function amountsRead(meta: string, letter: string, uh: string): ReadCommand {
  return ['HMGET', meta, letter, `${letter}:${uh}`];
}

function viewOf({ userId }: ClientKey, link: string, of: { binding: Binding | null; waiting: number }): Client {
  return { userId, link, binding: of.binding, waiting: { size: of.waiting } };
}

function count(waits: readonly NodeWaits[]): number {
  return waits.reduce((sum, { list }) => sum + list.length, 0);
}
