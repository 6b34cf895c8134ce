/** A map whose keys are clients: a user and a client id. */
import type { ClientKey } from './ids.ts';

/**
 * A map keyed by client. It looks up the user and then the client id, so that no look-up builds a key string. Iterates
 * as a Map does.
 */
export class ByClient<V> {
  readonly #users = new Map<string, Map<string, V>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get({ userId, clientId }: ClientKey): V | undefined {
    return this.#users.get(userId)?.get(clientId);
  }

  set({ userId, clientId }: ClientKey, value: V): void {
    const known = this.#users.get(userId);
    const clients = known ?? new Map<string, V>();
    if (!known) this.#users.set(userId, clients);
    const before = clients.size;
    this.#size += clients.set(clientId, value).size - before;
  }

  delete({ userId, clientId }: ClientKey): void {
    const clients = this.#users.get(userId);
    if (!clients?.delete(clientId)) return;
    this.#size--;
    if (clients.size === 0) this.#users.delete(userId);
  }

  *entries(): Generator<readonly [ClientKey, V]> {
    for (const [userId, clients] of this.#users)
      for (const [clientId, value] of clients) yield [{ userId, clientId }, value];
  }

  *values(): Generator<V> {
    for (const clients of this.#users.values()) yield* clients.values();
  }
}
