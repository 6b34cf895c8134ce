/** Reads which commands of each admission scope are live. */
import type { Key } from './events.ts';

type Row = Readonly<Record<string, unknown>>;

/** The commands of one admission scope, as one reading found them. */
export type Scope = {
  readonly live: Key[];
  /**
   * A text that is equal in two readings if no command was admitted or ended in between: ends are final, and no id is
   * used twice.
   */
  text: string;
};

/** All records, by their scope, in the order read. */
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
