import { ByClient } from '../../core/by-client.ts';
import type { Clock } from '../../core/clock.ts';
import type { Command } from '../../core/delivery/command.ts';
import type { Binding } from '../../core/delivery/commands.ts';
import type { Waiter } from '../../core/delivery/waiter.ts';
import { clientStream } from '../../core/history/message.ts';
import type { ClientKey, CommandKey } from '../../core/ids.ts';
import { utf8Length, type JsonText } from '../../core/json.ts';
import { LazySet } from '../../core/lazy.ts';
import { RECONCILE_BATCH, TERMINAL_BYTES, TERMINAL_MS, TERMINAL_RECORDS } from '../../core/limits.ts';
import type { Position } from '../../core/page.ts';
import { createShares, type Holdings, type Shares } from '../../core/shares/shares.ts';
import type { CommandHead } from './commands-message.ts';
import { giveUpParams } from './commands-params.ts';
import { DueIndex } from './due.ts';
import { CommandMap, type Whose } from './ledger-map.ts';
import { createQueue } from './list-queue.ts';
import { createSortedMap } from './sorted.ts';

/** A command with what belongs to it. The record is replaced on every move; the rest is only ever touched by the acts. */
export type Entry = {
  command: Command;
  readonly head: CommandHead;
  readonly client: ClientQueue;
  /** The node that it was last queued on. */
  queuedOn: string | null;
  /** Kept until dispatch: nothing is written twice. */
  params: JsonText | null;
  /** Of `params`, as they are counted. */
  paramsBytes: number;
  result: JsonText | null;
  /** Rows of progress that were kept, and when the last one was; null before the first. */
  progress: { readonly rows: number; readonly at: number } | null;
  /** Of an ended command. */
  resultBytes: number;
  /** At most WAITERS_PER_COMMAND, in the order registered. Replaced when one comes or goes: most commands have none most of the time. */
  waiters: readonly WaiterRow[];
};

export type WaiterRow = { readonly waiter: Waiter; readonly entry: Entry; readonly seq: number };

export const NO_WAITERS: readonly WaiterRow[] = [];

/** What waits for one client, in the order admitted, and what it runs. */
export type ClientQueue = {
  /** Of its stream of history. */
  readonly suffix: string;
  /** Of its user. */
  readonly holdings: Holdings;
  binding: Binding | null;
  readonly waiting: LazySet<Entry>;
  readonly running: LazySet<Entry>;
};

/** What is reserved in one admission scope. */
export type Scope = { readonly scopeId: string; readonly holders: Set<Entry> };

/** The state that the command, waiter and node ports share, and its bounds. Holds no rule of the state machine. */
export class Ledger {
  readonly #clock: Clock;
  readonly #entries = new CommandMap<Entry>();
  readonly #clients = new ByClient<ClientQueue>();
  readonly #scopes = createSortedMap<Scope>();
  readonly #due: DueIndex<Entry>;
  /** Ended commands, oldest first. */
  readonly #ended = createQueue<Entry>();
  #endedBytes = 0;
  /** Until when a record would still be shown that was dropped for lack of room. */
  #shortUntil = -Infinity;
  readonly #maxEnded: number;
  readonly #shares: Shares;

  constructor(clock: Clock, maxEnded: number = TERMINAL_RECORDS, shares: Shares = createShares()) {
    this.#clock = clock;
    this.#shares = shares;
    this.#maxEnded = maxEnded;
    this.#due = new DueIndex(clock.now());
  }

  find(key: CommandKey): Entry | undefined {
    this.#forget();
    return this.#entries.get(key);
  }

  client(key: ClientKey): ClientQueue {
    const known = this.#clients.get(key);
    if (known) return known;
    const queue: ClientQueue = {
      suffix: clientStream(key.clientId),
      holdings: this.#shares.of(key.userId),
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
    this.#due.delete(entry);
    client.waiting.delete(entry);
    client.running.delete(entry);
    if (client.binding === null) this.dropIdle(command);
    const holders = this.#scopes.get(command.scopeId)?.holders;
    holders?.delete(entry);
    if (holders?.size === 0) this.#scopes.delete(command.scopeId);
    giveUpParams(entry);
    const bytes = entry.result === null ? 0 : utf8Length(entry.result);
    entry.resultBytes = bytes;
    this.#ended.push(entry);
    this.#endedBytes += bytes;
    this.#forget();
  }

  /** Forgets a client that is not bound and has nothing. */
  dropIdle(key: ClientKey): void {
    const queue = this.peekClient(key);
    if (queue && queue.binding === null && queue.waiting.size + queue.running.size === 0) this.#clients.delete(key);
  }

  due(limit: number = RECONCILE_BATCH): CommandKey[] {
    this.#forget();
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
    this.#forget();
    return this.#entries.values(whose, after);
  }

  /** Scopes with reservations, in order. */
  scopes(after: string | null): IteratorObject<Scope> {
    return this.#scopes.values({ after });
  }

  /** Commands with a record: live, and ended but remembered. */
  get tracked(): number {
    this.#forget();
    return this.#entries.size;
  }

  /** Whether a record that would still be remembered was dropped for lack of room. */
  get short(): boolean {
    return this.#clock.now() < this.#shortUntil;
  }

  get live(): number {
    return this.#due.size;
  }

  get remembered(): number {
    return this.#ended.size;
  }

  #forget(): void {
    const now = this.#clock.now();
    for (let oldest = this.#ended.first(); oldest; oldest = this.#ended.first()) {
      const { command, resultBytes } = oldest;
      const rememberedUntil = (command.terminalAt ?? now) + TERMINAL_MS;
      if (rememberedUntil > now && this.#ended.size <= this.#maxEnded && this.#endedBytes <= TERMINAL_BYTES) return;
      this.#shortUntil = Math.max(this.#shortUntil, rememberedUntil);
      this.#ended.shift();
      this.#endedBytes -= resultBytes;
      this.#entries.delete(command);
    }
  }
}

export function keyOf({ userId, clientId, commandId }: CommandKey): CommandKey {
  return { userId, clientId, commandId };
}
