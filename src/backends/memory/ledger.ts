/**
 * The live and ended commands in memory with their indexes, which the stores of commands, waiters and nodes share.
 *
 * It contains no rule about the states of commands.
 */
import { ByClient } from '../../core/collections.ts';
import type { Clock } from '../../core/ports.ts';
import { wasDispatched, type CommandMark } from '../../core/commands/command.ts';
import { isRelayId, keyOf, type ClientKey, type CommandKey } from '../../core/ids.ts';
import { RECONCILE_BATCH } from '../../core/limits.ts';
import { comparePositions, sortable, type Position } from '../../core/page.ts';
import type { ShareRefusal } from '../../core/shares/share-bounds.ts';
import type { Holdings } from '../../core/shares/shares.ts';
import { DueIndex } from './due-index.ts';
import { createSortedMap, type SortedMap } from './sorted-map.ts';
import { SparseQueue } from './sparse-queue.ts';
import { ClientQueue, type Entry, type Scope, type UserLedger, hasNoRecord } from './ledger-entry.ts';
import { EndedCommands, type EndedOptions, type RecordDrops } from './ledger-ended.ts';
import type { Binding } from '../../core/commands/command-store.ts';

export { ClientQueue, Entry, WaiterRow, type Scope, type UserLedger } from './ledger-entry.ts';

/**
 * The commands, clients and admission scopes of one state, within their limits. The stores of commands, waiters and
 * nodes share one ledger.
 */
export class Ledger {
  readonly windowMs: number;
  readonly #clock: Clock;
  readonly #entries: CommandMap<Entry>;
  readonly #clients = new ByClient<ClientQueue>();
  readonly #scopes = createSortedMap<Scope>();
  readonly #due: DueIndex<Entry>;
  /** The ended commands. Only a journal uses this member; other callers use the methods of the ledger. */
  readonly ended: EndedCommands;
  readonly #drops: Pick<RecordDrops, 'replaying'> | undefined;

  constructor(clock: Clock, options: Omit<EndedOptions, 'onGone'>) {
    this.windowMs = options.windowMs;
    this.#drops = options.drops;
    this.#clock = clock;
    this.ended = new EndedCommands({ ...options, onGone: (entry) => this.#entries.delete(entry) });
    this.#entries = new CommandMap(hasNoRecord, clock.now());
    this.#due = new DueIndex(clock.now());
  }

  find(key: CommandKey): Entry | undefined {
    const found = this.#entries.get(key);
    // A live command never expires, so it is returned without dropping expired commands first.
    if (found && found.terminalAt === null) return found;
    this.#expire();
    return this.#entries.get(key);
  }

  client(key: ClientKey): ClientQueue {
    const known = this.#clients.get(key);
    if (known) return known;
    const user = this.ended.users.of(key.userId);
    user.clients++;
    const queue = new ClientQueue(user, key);
    this.#clients.set(key, queue);
    return queue;
  }

  /** Returns the queue of a client, if there is one. Creates none. */
  peekClient(key: ClientKey): ClientQueue | undefined {
    return this.#clients.get(key);
  }

  /** Returns the object of a user, if there is one. Creates none. */
  peekUser(userId: string): UserLedger | undefined {
    return this.ended.users.find(userId);
  }

  reserved(scopeId: string): number {
    return this.#scopes.get(scopeId)?.holders.size ?? 0;
  }

  /** Returns how many reservations of a scope a user holds. */
  reservedBy(scopeId: string, userId: string): number {
    return this.#scopes.get(scopeId)?.members.get(userId) ?? 0;
  }

  add(entry: Entry, dueAt: number): void {
    const { command } = entry;
    const { scopeId } = command;
    this.#entries.add(entry, entry.command.admittedAt);
    const scope = this.#scope(scopeId);
    entry.scope = scope;
    scope.holders.push(entry);
    countMember(scope, command.userId, 1);
    entry.place = wasDispatched(command) ? 'running' : 'waiting';
    entry.client[entry.place].push(entry);
    this.#due.set(entry, dueAt);
  }

  setDue(entry: Entry, at: number): void {
    this.#due.set(entry, at);
  }

  /** Moves a dispatched command from its client's waiting commands to its client's running commands. */
  run(entry: Entry): void {
    const { waiting, running } = entry.client;
    entry.place = 'running';
    waiting.noteDeleted();
    running.push(entry);
  }

  /** Removes an ended command from all indexes of live commands, and keeps it among the ended ones. */
  end(entry: Entry, now: number): void {
    const { client, command, scope, place } = entry;
    this.ended.expire(now);
    // The ended entry is added first, because the steps below may drop the client, and with the client its user.
    this.ended.add(entry);
    this.#due.delete(entry);
    entry.place = null;
    entry.scope = null;
    if (place) client[place].noteDeleted();
    if (client.binding === null) this.dropIdle(client.head);
    if (scope) {
      scope.holders.noteDeleted();
      countMember(scope, command.userId, -1);
      if (scope.holders.size === 0) this.#scopes.delete(command.scopeId);
    }
    entry.giveUpParams();
  }

  /**
   * Drops results and records until the totals of their shares are within the limits. An act that ends a command calls
   * it after it has posted the replies, because a reply may contain the command's result.
   */
  keepWithin(now: number): void {
    this.ended.keepWithin(now);
  }

  /**
   * Returns the mark of an ended command whose record was dropped. Returns `conflict` if the digest of the mark differs
   * from the given one, or null if the id is unknown.
   */
  mark(key: CommandKey, digest: string | null): CommandMark | 'conflict' | null {
    return this.ended.mark(key, digest, this.#clock.now());
  }

  /**
   * Returns why a caller may not use an id that is unknown, or null if the id may be used. It is refused if there is no
   * room for its mark, or if it may be an id that the relay made and forgot for lack of room.
   */
  refuseChosen(
    { user }: { readonly user: Pick<UserLedger, 'holdings' | 'unmarkedId'> },
    commandId: string,
  ): ShareRefusal | null {
    if (commandId <= user.unmarkedId && isRelayId(commandId)) return 'share_exceeded';
    return user.holdings.refusal('marks', 1);
  }

  /**
   * Reserves room for a command's mark, unless room is reserved already. If `chosenId` is false, reserves it only if
   * there is room, and never while a journal is replayed, because the journal records which marks were reserved.
   */
  reserveMark(entry: Entry, chosenId: boolean): void {
    const { holdings } = entry.client.user;
    if (entry.marked) return;
    if (!chosenId && (this.#drops?.replaying || !this.#hasRoomForMark(holdings))) return;
    entry.marked = true;
    holdings.take('marks', 1);
  }

  /** Removes the queue of a client that is not bound and has no live commands. */
  dropIdle(key: ClientKey): void {
    const queue = this.peekClient(key);
    if (!queue || queue.binding !== null || !queue.idle) return;
    this.#clients.delete(key);
    queue.user.clients--;
    this.ended.users.dropIdle(queue.user, this.#clock.now());
  }

  due(limit: number = RECONCILE_BATCH): CommandKey[] {
    this.#expire();
    return this.#due.due(this.#clock.now(), limit).map(keyOf);
  }

  /** The number of commands that are due. */
  get dueCount(): number {
    return this.#due.count(this.#clock.now());
  }

  /** Returns at most `limit` live commands, those that are due soonest. */
  soonest(limit: number): readonly Entry[] {
    return this.#due.soonest(limit);
  }

  /**
   * Reads the commands that have a record, ordered by (user, client, command), after a position. `whose` selects the
   * commands of one client, of one user or of all.
   */
  inOrder(whose: OwnerFilter, after: Position | null): IteratorObject<Entry> {
    this.#expire();
    return this.#entries.values(whose, after);
  }

  /** Reads the commands that have a record and follow a position, latest admission first. */
  newestFirst(after: Position | null): IteratorObject<TimedValue<Entry>> {
    this.#expire();
    return this.#entries.newest(after);
  }

  /** Reads the admission scopes that have reservations, ordered by id. */
  scopes(after: string | null): IteratorObject<Scope> {
    return this.#scopes.values({ after });
  }

  scope(scopeId: string): Scope | undefined {
    return this.#scopes.get(scopeId);
  }

  /** The number of commands with a record, live and ended. */
  get tracked(): number {
    this.#expire();
    return this.#entries.size;
  }

  /** Whether listings of this user (null: of any user) lack records that were reduced to marks early. */
  short(userId: string | null): boolean {
    return this.ended.short(userId, this.#clock.now());
  }

  get live(): number {
    return this.#due.size;
  }

  /** The number of ended commands with a whole record. */
  get remembered(): number {
    return this.ended.size;
  }

  /** The size of the packed marks, in bytes. */
  get markBytes(): number {
    return this.ended.markBytes;
  }

  /** Starts a new pass of `next` over the commands that have a record now. The ledger supports one pass at a time. */
  rewind(): void {
    this.#entries.rewind();
  }

  /**
   * Returns the next command of the pass that `rewind` started, in order of admission; undefined at the end. Acts may
   * run between two calls.
   */
  next(): Entry | undefined {
    return this.#entries.next();
  }

  /** Returns the clients that are bound to a link or have live commands. */
  clients(): IteratorObject<ClientQueue> {
    return this.#clients.values();
  }

  /** Returns the clients of one user that are bound to a link or have live commands. */
  clientsOf(userId: string): Iterable<ClientQueue> {
    return this.#clients.ofUser(userId);
  }

  /**
   * Adds an ended command from a snapshot. `bound`: the link that its client was bound to when the command ended. Call
   * `restoreEnds` after the last one.
   */
  restoreEnded(entry: Entry, bound: Binding | null): void {
    this.#entries.add(entry, entry.command.admittedAt);
    entry.pack(bound);
  }

  /** Sorts the commands that `restoreEnded` added by the time of their ends. */
  restoreEnds(entries: readonly Entry[]): void {
    const byEnd = entries.toSorted((a, b) => (a.terminalAt ?? 0) - (b.terminalAt ?? 0));
    for (const entry of byEnd) this.ended.add(entry);
  }

  #scope(scopeId: string): Scope {
    const known = this.#scopes.get(scopeId);
    if (known) return known;
    const made: Scope = { scopeId, holders: new SparseQueue(({ scope }) => scope === null), members: new Map() };
    this.#scopes.set(scopeId, made);
    return made;
  }

  /** Whether there is room for a mark once expired marks have been dropped. */
  #hasRoomForMark(holdings: Holdings): boolean {
    if (holdings.refusal('marks', 1) === null) return true;
    this.#expire();
    return holdings.refusal('marks', 1) === null;
  }

  #expire(): void {
    this.ended.expire(this.#clock.now());
  }
}

/**
 * Counts a reservation of a user in a scope. The scope of the user itself has one member, so it needs no such count.
 */
function countMember({ scopeId, members }: Scope, userId: string, by: number): void {
  if (scopeId === userId) return;
  const held = (members.get(userId) ?? 0) + by;
  if (held > 0) members.set(userId, held);
  else members.delete(userId);
}

type Commands<V> = SortedMap<V>;
type Clients<V> = SortedMap<{ readonly clientId: string; readonly commands: Commands<V> }>;
type Users<V> = SortedMap<{ readonly userId: string; readonly clients: Clients<V> }>;

/**
 * A value with its time of admission, in epoch milliseconds. The time is never before the time of a value that was
 * added earlier.
 */
type TimedValue<V> = { readonly item: V; readonly at: number };

/** Selects the values to read: those of one client, of one user (`clientId` null), or all (both null). */
type OwnerFilter = { readonly userId: string | null; readonly clientId: string | null };

/**
 * A map by command key, ordered by (user, client, command). It is nested by the parts of the key, so that no combined
 * text has to be built and hashed. An id that sorts by time is appended to the ids of its client.
 */
class CommandMap<V extends CommandKey> {
  readonly #users: Users<V> = createSortedMap();
  readonly #byAdmission: SparseQueue<V>;
  /** The queue stores times as differences to this time, because small integers take less memory. */
  readonly #origin: number;
  #lastAt = -Infinity;

  /**
   * `gone`: returns whether a value was deleted. It must already return true when `delete` is called. `now`: the time
   * in epoch milliseconds.
   */
  constructor(gone: (value: V) => boolean, now: number) {
    this.#byAdmission = new SparseQueue(gone);
    this.#origin = now;
  }

  get size(): number {
    return this.#byAdmission.size;
  }

  get({ userId, clientId, commandId }: CommandKey): V | undefined {
    return this.#of(userId, clientId)?.get(commandId);
  }

  /** Adds a value, which was admitted at this time. Its key must not be in the map. */
  add(value: V, admittedAt: number): void {
    const commands = this.#of(value.userId, value.clientId) ?? this.#make(value);
    commands.set(value.commandId, value);
    this.#lastAt = Math.max(this.#lastAt, admittedAt);
    this.#byAdmission.push(value, this.#lastAt - this.#origin);
  }

  delete({ userId, clientId, commandId }: CommandKey): void {
    const clients = this.#users.get(userId)?.clients;
    const commands = clients?.get(clientId)?.commands;
    if (!clients || !commands?.delete(commandId)) return;
    this.#byAdmission.noteDeleted();
    if (commands.size > 0) return;
    clients.delete(clientId);
    if (clients.size === 0) this.#users.delete(userId);
  }

  /**
   * Reads the values after a position of (user, client, command). No key may be added or removed during the iteration.
   */
  *values(whose: OwnerFilter, after: Position | null): Generator<V> {
    const [afterUser = '', afterClient = '', afterCommand = ''] = after ?? [];
    for (const { userId, clients } of this.#users.values({ from: laterOf(whose.userId, afterUser) })) {
      if (whose.userId !== null && userId !== whose.userId) return;
      const fromClient = userId === afterUser ? afterClient : '';
      for (const { clientId, commands } of clients.values({ from: laterOf(whose.clientId, fromClient) })) {
        if (whose.userId !== null && whose.clientId !== null && clientId !== whose.clientId) break;
        const begun = userId === afterUser && clientId === afterClient && after !== null;
        yield* commands.values({ after: begun ? afterCommand : null });
      }
    }
  }

  /**
   * Reads the values after a position of (time of admission, user, client, command) in descending order, or all values
   * if `after` is null. No key may be added or removed during the iteration.
   */
  *newest(after: Position | null): Generator<TimedValue<V>> {
    const last = after === null ? Infinity : parseInt(after[0] ?? '', 36) - this.#origin;
    let together: V[] = [];
    let at = last;
    for (const { item, number } of this.#byAdmission.backwards(last + 1)) {
      if (number !== at) {
        yield* this.#falling(together, at, after);
        [together, at] = [[], number];
      }
      together.push(item);
    }
    yield* this.#falling(together, at, after);
  }

  /** Reads the values with one time of admission, greatest key first, after a position. */
  *#falling(together: V[], number: number, after: Position | null): Generator<TimedValue<V>> {
    const at = this.#origin + number;
    const key = ({ userId, clientId, commandId }: V): Position => [sortable(at), userId, clientId, commandId];
    if (together.length > 1) together.sort((a, b) => comparePositions(key(b), key(a)));
    for (const item of together) if (after === null || comparePositions(key(item), after) < 0) yield { item, at };
  }

  rewind(): void {
    this.#byAdmission.rewind();
  }

  next(): V | undefined {
    return this.#byAdmission.next()?.item;
  }

  #of(userId: string, clientId: string): Commands<V> | undefined {
    return this.#users.get(userId)?.clients.get(clientId)?.commands;
  }

  #make({ userId, clientId }: ClientKey): Commands<V> {
    const user = this.#users.get(userId) ?? { userId, clients: createSortedMap() };
    const commands: Commands<V> = createSortedMap();
    user.clients.set(clientId, { clientId, commands });
    this.#users.set(userId, user);
    return commands;
  }
}

function laterOf(a: string | null, b: string): string {
  return a === null || a < b ? b : a;
}
