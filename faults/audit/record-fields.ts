/** Reads the fields of stored records, and puts them into maps. */
import { REQUEST, STATE, textsOf } from '../../src/backends/redis/commands/record.ts';
import type { Snapshot } from './snapshot.ts';

type Field = (typeof STATE)[number] | (typeof REQUEST)[number];
export type Fields = Readonly<Record<Field, string>>;
/**
 * A command with the fields of its record; absent fields are ''. `span`: the span of its record; null while it is live.
 */
export type Recorded = { readonly fields: Fields; readonly span: string | null };
export type Lists = Map<string, Map<string, number>>;

export function isKept({ now }: Snapshot, { fields }: Recorded): boolean {
  return Number(fields.forgetAt) > now;
}

export function fieldsOf(state: string, request: string): Fields {
  const [own, asked] = [textsOf(state), textsOf(request)];
  const pairs = [...STATE.map((name, i) => [name, own[i] ?? '']), ...REQUEST.map((name, i) => [name, asked[i] ?? ''])];
  return Object.fromEntries(pairs) as Fields;
}

export function nameOf({ userId, clientId, commandId }: Fields): string {
  return `${userId}\0${clientId}\0${commandId}`;
}

/** Splits the rest of a key's name into a hash and the text after it. */
export function divided(part: string): [hash: string, rest: string] {
  const end = part.indexOf(':');
  return [part.slice(0, end), part.slice(end + 1)];
}

export function put(lists: Lists, key: string, member: string, value: number): void {
  const list = lists.get(key) ?? new Map<string, number>();
  lists.set(key, list);
  list.set(member, value);
}

export function numbered(fields: ReadonlyMap<string, string>): ReadonlyMap<string, number> {
  return new Map([...fields].map(([field, value]) => [field, Number(value)]));
}
