import type { Clock } from '../../core/clock.ts';
import type { Command } from '../../core/delivery/command.ts';
import type { Binding } from '../../core/delivery/commands.ts';
import type { Waiter } from '../../core/delivery/waiter.ts';
import { clientKeyText, commandKeyText, type ClientKey, type CommandKey } from '../../core/ids.ts';
import { utf8Length, type JsonText } from '../../core/json.ts';
import { RECONCILE_BATCH, TERMINAL_BYTES, TERMINAL_MS, TERMINAL_RECORDS } from '../../core/limits.ts';
import { DueIndex } from './due.ts';

/** A command with what belongs to it. The record is replaced on every move; the rest is only ever touched by the acts. */
export type Entry = {
  command: Command;
  readonly client: ClientQueue;
  /** Kept until dispatch: nothing is written twice. */
  params: JsonText | null;
  result: JsonText | null;
  progressRows: number;
  progressRowAt: number;
  readonly waiters: Map<string, WaiterRow>;
};

export type WaiterRow = { readonly waiter: Waiter; readonly entry: Entry; readonly seq: number };

/** What waits for one client, in the order admitted, and what it runs. */
export type ClientQueue = {
  binding: Binding | null;
  readonly waiting: Set<Entry>;
  readonly running: Set<Entry>;
};

type Remembered = { readonly entry: Entry; readonly bytes: number; readonly until: number };

/** The state that the command, waiter and node ports share, and its bounds. Holds no rule of the state machine. */
export class Ledger {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  readonly #clients = new Map<string, ClientQueue>();
  readonly #scopes = new Map<string, Set<Entry>>();
  readonly #due: DueIndex<Entry>;
  /** Ended commands, oldest first. */
  readonly #ended = new Map<Entry, Remembered>();
  #endedBytes = 0;
  readonly #maxEnded: number;

  constructor(clock: Clock, maxEnded: number = TERMINAL_RECORDS) {
    this.#clock = clock;
    this.#maxEnded = maxEnded;
    this.#due = new DueIndex(clock.now());
  }

  find(key: CommandKey): Entry | undefined {
    this.#forget();
    return this.#entries.get(commandKeyText(key));
  }

  client(key: ClientKey): ClientQueue {
    const text = clientKeyText(key);
    const queue = this.#clients.get(text) ?? { binding: null, waiting: new Set(), running: new Set() };
    this.#clients.set(text, queue);
    return queue;
  }

  /** A look that makes nothing. */
  peekClient(key: ClientKey): ClientQueue | undefined {
    return this.#clients.get(clientKeyText(key));
  }

  reserved(scopeId: string): number {
    return this.#scopes.get(scopeId)?.size ?? 0;
  }

  add(entry: Entry, dueAt: number): void {
    const { command } = entry;
    this.#entries.set(commandKeyText(command), entry);
    const holders = this.#scopes.get(command.scopeId) ?? new Set();
    this.#scopes.set(command.scopeId, holders.add(entry));
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
    this.dropIdle(command);
    const holders = this.#scopes.get(command.scopeId);
    holders?.delete(entry);
    if (holders?.size === 0) this.#scopes.delete(command.scopeId);
    entry.params = null;
    const bytes = entry.result === null ? 0 : utf8Length(entry.result);
    this.#ended.set(entry, { entry, bytes, until: this.#clock.now() + TERMINAL_MS });
    this.#endedBytes += bytes;
    this.#forget();
  }

  /** Forgets a client that is not bound and has nothing. */
  dropIdle(key: ClientKey): void {
    const queue = this.peekClient(key);
    if (queue && queue.binding === null && queue.waiting.size + queue.running.size === 0)
      this.#clients.delete(clientKeyText(key));
  }

  due(limit: number = RECONCILE_BATCH): CommandKey[] {
    this.#forget();
    return this.#due.due(this.#clock.now(), limit).map(({ command }) => keyOf(command));
  }

  get live(): number {
    return this.#due.size;
  }

  get remembered(): number {
    return this.#ended.size;
  }

  #forget(): void {
    const now = this.#clock.now();
    for (const { entry, bytes, until } of this.#ended.values()) {
      if (until > now && this.#ended.size <= this.#maxEnded && this.#endedBytes <= TERMINAL_BYTES) return;
      this.#ended.delete(entry);
      this.#endedBytes -= bytes;
      this.#entries.delete(commandKeyText(entry.command));
    }
  }
}

export function keyOf({ userId, clientId, commandId }: CommandKey): CommandKey {
  return { userId, clientId, commandId };
}
