import { ByClient } from '../../core/by-client.ts';
import type { Clock } from '../../core/clock.ts';
import type { CommandMark } from '../../core/delivery/command.ts';
import { clientStream } from '../../core/history/message.ts';
import type { ClientKey, CommandKey } from '../../core/ids.ts';
import { LazySet } from '../../core/lazy.ts';
import { RECONCILE_BATCH } from '../../core/limits.ts';
import type { Position } from '../../core/page.ts';
import type { ShareRefusal } from '../../core/shares/shares.ts';
import { giveUpParams } from './commands-params.ts';
import { DueIndex } from './due.ts';
import type { ClientQueue, Entry } from './ledger-entry.ts';
import { EndedCommands, type EndedOptions } from './ledger-ended.ts';
import { CommandMap, type Whose } from './ledger-map.ts';
import { createSortedMap } from './sorted.ts';

export { NO_WAITERS, type ClientQueue, type Entry, type WaiterRow } from './ledger-entry.ts';

/** What is reserved in one admission scope. */
export type Scope = { readonly scopeId: string; readonly holders: Set<Entry> };

/** The state that the command, waiter and node ports share, and its bounds. Holds no rule of the state machine. */
export class Ledger {
  readonly windowMs: number;
  readonly #clock: Clock;
  readonly #entries = new CommandMap<Entry>();
  readonly #clients = new ByClient<ClientQueue>();
  readonly #scopes = createSortedMap<Scope>();
  readonly #due: DueIndex<Entry>;
  readonly #ended: EndedCommands;

  constructor(clock: Clock, options: Omit<EndedOptions, 'onGone'>) {
    this.windowMs = options.windowMs;
    this.#clock = clock;
    this.#ended = new EndedCommands({ ...options, onGone: ({ command }) => this.#entries.delete(command) });
    this.#due = new DueIndex(clock.now());
  }

  find(key: CommandKey): Entry | undefined {
    this.#expire();
    return this.#entries.get(key);
  }

  client(key: ClientKey): ClientQueue {
    const known = this.#clients.get(key);
    if (known) return known;
    const user = this.#ended.users.of(key.userId);
    user.clients++;
    const queue: ClientQueue = {
      user,
      suffix: clientStream(key.clientId),
      holdings: user.holdings,
      binding: null,
      waiting: new LazySet(),
      running: new LazySet(),
    };
    this.#clients.set(key, queue);
    return queue;
  }

  /** A look that makes nothing. */
  peekClient(key: ClientKey): ClientQueue | undefined {
    return this.#clients.get(key);
  }

  reserved(scopeId: string): number {
    return this.#scopes.get(scopeId)?.holders.size ?? 0;
  }

  add(entry: Entry, dueAt: number): void {
    const { command } = entry;
    const { scopeId } = command;
    this.#entries.set(command, entry);
    const scope = this.#scopes.get(scopeId);
    if (scope) scope.holders.add(entry);
    else this.#scopes.set(scopeId, { scopeId, holders: new Set([entry]) });
    entry.client.waiting.add(entry);
    this.#due.set(entry, dueAt);
  }

  setDue(entry: Entry, at: number): void {
    this.#due.set(entry, at);
  }

  /** Takes an ended command out of everything that only live ones are in, and remembers it. */
  end(entry: Entry): void {
    const { command, client } = entry;
    this.#expire();
    // Before its client may be forgotten, and with it its user.
    this.#ended.add(entry);
    this.#due.delete(entry);
    client.waiting.delete(entry);
    client.running.delete(entry);
    if (client.binding === null) this.dropIdle(command);
    const holders = this.#scopes.get(command.scopeId)?.holders;
    holders?.delete(entry);
    if (holders?.size === 0) this.#scopes.delete(command.scopeId);
    giveUpParams(entry);
  }

  /** Gives up results and records beyond their totals. The last step of an act that ended a command: replies may hold its result. */
  keepWithin(): void {
    this.#ended.keepWithin(this.#clock.now());
  }

  /**
   * What is left of an ended command whose record is no longer kept; `conflict` where it was of another digest than the one given. Null: nothing
   * is known of the id.
   */
  mark(key: CommandKey, digest: string | null): CommandMark | 'conflict' | null {
    return this.#ended.mark(key, digest, this.#clock.now());
  }

  /**
   * Why an id that a caller chose may not be admitted, though nothing is known of it: no room is left for its mark, or it may be an id of the
   * relay's own that was forgotten for that reason. Null: it may.
   */
  refuseChosen({ user }: ClientQueue, commandId: string): ShareRefusal | null {
    if (commandId <= user.unmarkedId && RELAY_ID.test(commandId)) return 'share_exceeded';
    return user.holdings.refusal('marks', 1);
  }

  /** Keeps room for the mark of a command that has none: always where its caller chose the id, else while there is room. */
  reserveMark(entry: Entry, chosenId: boolean): void {
    const { holdings } = entry.client.user;
    if (entry.marked || (!chosenId && holdings.refusal('marks', 1) !== null)) return;
    entry.marked = true;
    holdings.take('marks', 1);
  }

  /** Forgets a client that is not bound and has nothing. */
  dropIdle(key: ClientKey): void {
    const queue = this.peekClient(key);
    if (!queue || queue.binding !== null || queue.waiting.size + queue.running.size > 0) return;
    this.#clients.delete(key);
    queue.user.clients--;
    this.#ended.users.dropIdle(queue.user, this.#clock.now());
  }

  due(limit: number = RECONCILE_BATCH): CommandKey[] {
    this.#expire();
    return this.#due.due(this.#clock.now(), limit).map(({ command }) => keyOf(command));
  }

  /** How many are due. */
  get dueCount(): number {
    return this.#due.count(this.#clock.now());
  }

  /** Live commands that fall due soonest, at most `limit`. */
  soonest(limit: number): readonly Entry[] {
    return this.#due.soonest(limit);
  }

  /** Commands with a record, of one client, of one user or of all, in order of (user, client, command), after a position. */
  inOrder(whose: Whose, after: Position | null): IteratorObject<Entry> {
    this.#expire();
    return this.#entries.values(whose, after);
  }

  /** Scopes with reservations, in order. */
  scopes(after: string | null): IteratorObject<Scope> {
    return this.#scopes.values({ after });
  }

  /** Commands with a record: live, and ended but remembered. */
  get tracked(): number {
    this.#expire();
    return this.#entries.size;
  }

  /** Whether a record that would still be shown was reduced: of this user, or of any (null). */
  short(userId: string | null): boolean {
    return this.#ended.short(userId, this.#clock.now());
  }

  get live(): number {
    return this.#due.size;
  }

  /** Ended commands with a whole record. */
  get remembered(): number {
    return this.#ended.size;
  }

  /** Bytes that marks are packed in. */
  get markBytes(): number {
    return this.#ended.markBytes;
  }

  #expire(): void {
    this.#ended.expire(this.#clock.now());
  }
}

/** Ids as the relay makes them (UUID version 7, which sort by their time). */
const RELAY_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export function keyOf({ userId, clientId, commandId }: CommandKey): CommandKey {
  return { userId, clientId, commandId };
}
