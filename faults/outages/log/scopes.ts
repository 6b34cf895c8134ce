/** Reads which commands of each capacity scope are live. */
import type { Key } from './events.ts';

type Row = Readonly<Record<string, unknown>>;

/** The commands of one capacity scope in one reading. */
export type Scope = {
  readonly live: Key[];
  /**
   * A text that is equal in two readings if and only if no command was admitted or ended between them. This works
   * because ends are final and no id is used twice.
   */
  text: string;
};

/** Reads all records and returns them by scope, in the order of reading. */
export async function readScopes(
  each: (take: (row: Row) => void) => Promise<void>,
): Promise<ReadonlyMap<string, Scope>> {
  const scopes = new Map<string, Scope>();
  await each((row) => {
    const name = String(row['scope_id']);
    const scope = scopes.get(name) ?? { live: [], text: '' };
    scopes.set(name, scope);
    const key = {
      user: String(row['user_id']),
      client: String(row['client_id']),
      command: String(row['command_id']),
    };
    const ended = row['stage'] === 'terminal';
    if (!ended) scope.live.push(key);
    scope.text += `${key.client}/${key.command}${ended ? '.' : ''} `;
  });
  return scopes;
}
