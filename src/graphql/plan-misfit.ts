import {
  getNullableType,
  isInputObjectType,
  isLeafType,
  isListType,
  isRequiredInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
} from 'graphql';

/** The one scalar that takes objects and lists. */
export const JSON_SCALAR = 'JSON';

type Misfit = { readonly path: string; readonly says: string };

/** Members and characters of a value that graphql-js may print: beyond, errors are said without the value. */
const PRINTED = 1_000;

/** Whether printing the value is cheap. Looks at no more of it than that. */
export function isSmall(value: unknown): boolean {
  let left = PRINTED;
  const take = (one: unknown): boolean => {
    left -= typeof one === 'string' ? 1 + one.length : 1;
    if (left < 0) return false;
    if (typeof one !== 'object' || one === null) return true;
    for (const name in one) {
      left -= name.length;
      if (!take(Reflect.get(one, name))) return false;
    }
    return true;
  };
  return take(value);
}

/**
 * What graphql-js would refuse of a value by printing all of it, said without the value: members that a type lacks, or needs, and objects in
 * the place of something else. Null where it finds none of these; other faults are for graphql-js. Linear in the value, and stops at the first.
 */
export function misfitOf(given: GraphQLInputType, value: unknown, path = ''): Misfit | null {
  const type = getNullableType(given);
  if (value === null || value === undefined) return null;
  if (isListType(type)) return inList(type.ofType, value, path);
  if (isLeafType(type)) {
    return typeof value === 'object' && type.name !== JSON_SCALAR ? expected(type.name, path) : null;
  }
  if (!isInputObjectType(type)) return null;
  return isObject(value) ? inObject(type, value, path) : expected(type.name, path);
}

function inList(item: GraphQLInputType, value: unknown, path: string): Misfit | null {
  // One value stands for a list of it.
  if (!Array.isArray(value)) return misfitOf(item, value, path);
  for (const [i, one] of value.entries()) {
    const found = misfitOf(item, one, `${path}[${i}]`);
    if (found) return found;
  }
  return null;
}

function inObject(type: GraphQLInputObjectType, value: Readonly<Record<string, unknown>>, path: string): Misfit | null {
  const fields = type.getFields();
  for (const name in value) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (!field) return { path, says: `Expected value of type "${type.name}" not to include unknown field "${name}".` };
    const found = misfitOf(field.type, value[name], `${path}.${name}`);
    if (found) return found;
  }
  for (const field of Object.values(fields)) {
    if (isRequiredInputField(field) && value[field.name] === undefined) {
      return { path, says: `Expected value of type "${type.name}" to include required field "${field.name}".` };
    }
  }
  return null;
}

function expected(name: string, path: string): Misfit {
  return { path, says: `Expected value of type "${name}".` };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
