/** A map by user, client and command id. It can be read in that order, and from the newest value to the oldest. */
import type { ClientKey, CommandKey } from '../../core/ids.ts';
import type { Position } from '../../core/page.ts';
import { NewestFirst, type Newest } from './ledger-newest.ts';
import { createSortedMap, type SortedMap } from './collections.ts';

type Commands<V> = SortedMap<V>;
type Clients<V> = SortedMap<{ readonly clientId: string; readonly commands: Commands<V> }>;
type Users<V> = SortedMap<{ readonly userId: string; readonly clients: Clients<V> }>;

/** Selects the values to read: those of one client, of one user (`clientId` null), or all (both null). */
export type Whose = { readonly userId: string | null; readonly clientId: string | null };

/**
 * A map by command key, ordered by (user, client, command). The parts of a key are looked up one after another, so that
 * no combined text has to be built and hashed. Ids that sort by time are appended to the other ids of their client.
 */
export class CommandMap<V> {
  readonly #users: Users<V> = createSortedMap();
  readonly #newest: NewestFirst<V>;
  #size = 0;

  /**
   * `gone`: returns whether a value was deleted. It must already return true when `delete` is called. `now`: the time
   * in epoch milliseconds.
   */
  constructor(gone: (value: V) => boolean, now: number) {
    this.#newest = new NewestFirst(gone, now);
  }

  get size(): number {
    return this.#size;
  }

  get({ userId, clientId, commandId }: CommandKey): V | undefined {
    return this.#of(userId, clientId)?.get(commandId);
  }

  /** Adds a value. Its key must not be in the map. */
  add(key: CommandKey, value: V): void {
    const commands = this.#of(key.userId, key.clientId) ?? this.#make(key);
    commands.set(key.commandId, value);
    this.#newest.push(value);
    this.#size++;
  }

  delete({ userId, clientId, commandId }: CommandKey): void {
    const clients = this.#users.get(userId)?.clients;
    const commands = clients?.get(clientId)?.commands;
    if (!clients || !commands?.delete(commandId)) return;
    this.#size--;
    this.#newest.noteDeleted();
    if (commands.size > 0) return;
    clients.delete(clientId);
    if (clients.size === 0) this.#users.delete(userId);
  }

  /**
   * Reads the values after a position of (user, client, command). While they are being read, no key may be added or
   * removed.
   */
  *values(whose: Whose, after: Position | null): Generator<V> {
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
   * Reads the values whose place is below `after`, latest first. If `after` is null, reads all values. While they are
   * being read, no key may be added or removed.
   */
  newest(after: number | null): IteratorObject<Newest<V>> {
    return this.#newest.values(after);
  }

  /** Reads the values from the place `from` on, oldest first; see `NewestFirst.oldestFirst`. */
  oldest(from: number): IteratorObject<Newest<V>> {
    return this.#newest.oldestFirst(from);
  }

  /** The place of the next value that is added. */
  get end(): number {
    return this.#newest.end;
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
