/** Estimates the size of a connection in an answer, for the answer's budget of bytes. */
import type { ActionAdvertisement, Connection } from '../../core/connections/connection.ts';
import type { RowSize } from './page-budget.ts';

/**
 * The size of a connection in an answer. Counts only the fields whose size the client decides, because a client's
 * advertisements alone may fill a frame.
 */
export const CONNECTION_SIZE: RowSize<Connection> = {
  fields: ['metadata', 'actionNames', 'actions'],
  bytes({ metadata, actions }, asks) {
    const said = asks('metadata') ? (metadata?.length ?? 0) : 0;
    if (!asks('actions')) return said + (asks('actionNames') ? sumsOf(actions).names : 0);
    const { names, texts, schemas, metadatas } = sumsOf(actions);
    const words = asks('summary') || asks('description') || asks('version') ? texts : 0;
    return said + 2 * names + words + (asks('schema') ? schemas : 0) + (asks('metadata') ? metadatas : 0);
  },
};

/** The bytes of all advertisements of a client, by the fields that show them. */
type Sums = { names: number; texts: number; schemas: number; metadatas: number };
const known = new WeakMap<readonly ActionAdvertisement[], Sums>();

/** Sums up the bytes of a list of actions, once for each list, because a list is immutable. */
function sumsOf(actions: readonly ActionAdvertisement[]): Sums {
  const before = known.get(actions);
  if (before) return before;
  const sums: Sums = { names: 0, texts: 0, schemas: 0, metadatas: 0 };
  for (const { name, summary, description, version, schema, metadata } of actions) {
    sums.names += name.length + 16;
    sums.texts += (summary?.length ?? 0) + (description?.length ?? 0) + (version?.length ?? 0);
    sums.schemas += schema?.length ?? 0;
    sums.metadatas += metadata?.length ?? 0;
  }
  known.set(actions, sums);
  return sums;
}
