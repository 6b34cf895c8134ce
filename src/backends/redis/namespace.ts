/** Opens the namespace in Redis: checks its schema and partitions, and reads the secret that signs cursors. */
import { randomBytes } from 'node:crypto';
import { CallboardError } from '../../core/errors.ts';
import { rootOf } from './keys.ts';
import type { Store } from './store.ts';

/** The version of the data in Redis. Every change that older nodes would misread increments it. */
export const SCHEMA = 10;

type Namespace = {
  /**
   * The secret that signs the cursors of the deployment. It is the same on all nodes, so that each node accepts the
   * others' cursors.
   */
  readonly cursorKey: string;
};

/** Which side decides acts on the data of a namespace: relays that own partitions, or scripts in Redis. */
type Decider = 'owned' | 'redis';

/**
 * Opens the namespace. The first node sets the schema, the number of partitions and the decider; every later node must
 * have the same values. Throws `invalid_argument` if they differ, and changes nothing then.
 */
export async function enterNamespace(store: Store, decider: Decider): Promise<Namespace> {
  const root = rootOf(store.namespace);
  const fixed = { schema: SCHEMA, partitions: store.partitions };
  const written = await hold(store, root, { ...fixed, decider, cursor: secret() });
  check(store, written);
  if (written['decider'] !== decider)
    throw new CallboardError(
      'invalid_argument',
      `STORE: the namespace "${store.namespace}" has the data of STORE=${written['decider']}, which STORE=${decider} does not read: choose another namespace`,
    );
  const metas = Array.from({ length: store.partitions }, (_, partition) => store.key(partition, 'meta'));
  for (const meta of await Promise.all(metas.map((key) => hold(store, key, { ...fixed, store: secret() }))))
    check(store, meta);
  const { cursor } = written;
  if (!cursor) throw new CallboardError('internal', 'The namespace could not be read back.');
  return { cursorKey: cursor };
}

/** Sets those fields that have no value yet, and returns all fields. */
async function hold(
  store: Store,
  key: string,
  fields: Readonly<Record<string, string | number>>,
): Promise<Readonly<Record<string, string | null>>> {
  const names = Object.keys(fields);
  const set = Object.entries(fields).map(([name, value]) => ['HSETNX', key, name, value] as const);
  const replies = await store.read([...set, ['HMGET', key, ...names]]);
  const values = replies.at(-1);
  if (!Array.isArray(values)) throw new CallboardError('internal', 'Redis answered HMGET without a list.');
  return Object.fromEntries(names.map((name, i) => [name, typeof values[i] === 'string' ? values[i] : null]));
}

function check({ namespace, partitions }: Store, written: Readonly<Record<string, string | null>>): void {
  const faults: string[] = [];
  if (written['schema'] !== String(SCHEMA))
    faults.push(
      `NAMESPACE: the data of "${namespace}" has schema ${written['schema']}, this version needs schema ${SCHEMA}: choose another namespace`,
    );
  if (written['partitions'] !== String(partitions))
    faults.push(
      `PARTITIONS: the namespace "${namespace}" was created with ${written['partitions']}, not ${partitions}: partitions are fixed for a namespace`,
    );
  if (faults.length > 0) throw new CallboardError('invalid_argument', faults.join('\n'));
}

function secret(): string {
  return randomBytes(32).toString('base64url');
}
