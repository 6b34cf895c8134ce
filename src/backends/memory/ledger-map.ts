import type { CommandKey } from '../../core/ids.ts';

/** Values by the key of a command. Its parts are looked up one after another, so that no text has to be made and hashed for a look. */
export class CommandMap<V> {
  readonly #users = new Map<string, Map<string, Map<string, V>>>();

  get({ userId, clientId, commandId }: CommandKey): V | undefined {
    return this.#users.get(userId)?.get(clientId)?.get(commandId);
  }

  set({ userId, clientId, commandId }: CommandKey, value: V): void {
    const clients = this.#users.get(userId) ?? new Map<string, Map<string, V>>();
    const commands = clients.get(clientId) ?? new Map<string, V>();
    commands.set(commandId, value);
    if (commands.size > 1) return;
    clients.set(clientId, commands);
    this.#users.set(userId, clients);
  }

  delete({ userId, clientId, commandId }: CommandKey): void {
    const clients = this.#users.get(userId);
    const commands = clients?.get(clientId);
    if (!clients || !commands?.delete(commandId) || commands.size > 0) return;
    clients.delete(clientId);
    if (clients.size === 0) this.#users.delete(userId);
  }
}
