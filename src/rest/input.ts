/** Converts JSON members of a body into GraphQL variables. */
import { isRecord } from '../core/json.ts';
import {
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isScalarType,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
} from 'graphql';
import type { Shape } from '../core/json-shape.ts';
import type { ReportFault } from './directive.ts';
import type { Faults } from './faults.ts';
import { formOf } from './forms.ts';
import { leafOf, type Bounds, type Leaf } from './leaf.ts';
import { named, orNull, type JsonSchema } from './named.ts';
import { snakeCase } from './names.ts';

/** Converts a value of a JSON body into a GraphQL variable. Reports what is wrong to `faults` under the name `at`. */
export type JsonInput = {
  readonly schema: JsonSchema;
  /** Which parts of the JSON text are parsed before `read` is called. */
  readonly shape: Shape;
  read(value: unknown, at: string, faults: Faults): unknown;
};

type Build = { readonly report: ReportFault; readonly inside: readonly string[]; readonly bounds: Bounds };
type Member = { readonly field: string; readonly required: boolean; readonly input: JsonInput };

const NOTHING: JsonInput = { schema: {}, shape: 'skipped', read: () => undefined };

/** Returns the JSON form of an input type: members in snake_case, enums as wire words, opaque JSON untouched. */
export function jsonInput(type: GraphQLInputType, bounds: Bounds, report: ReportFault): JsonInput {
  return build(type, { report, inside: [], bounds });
}

type Use = { readonly name: string; readonly extensions: Readonly<Record<PropertyKey, unknown>> };

/**
 * Returns the bounds that a field or argument of the schema declares, and the form that belongs to its name. Only
 * `minimum` and `maximum` are copied, because Pothos keeps objects and functions of its own in `extensions`.
 */
export function boundsOf(use: Use | undefined): Bounds {
  if (use === undefined) return {};
  const { minimum, maximum } = use.extensions;
  return {
    form: formOf(use.name),
    ...(typeof minimum === 'number' && { minimum }),
    ...(typeof maximum === 'number' && { maximum }),
  };
}

function build(type: GraphQLInputType, how: Build): JsonInput {
  if (isNonNullType(type)) return build(type.ofType, how);
  if (isListType(type)) return listInput(build(type.ofType, how), how.bounds);
  if (isInputObjectType(type)) return objectInput(type, how);
  if (isScalarType(type) || isEnumType(type)) {
    const leaf = leafOf(type, how.bounds);
    if (leaf !== null) return leafInput(leaf);
  }
  how.report(`the type ${String(type)} has no JSON form`);
  return NOTHING;
}

function leafInput(leaf: Leaf): JsonInput {
  return {
    schema: leaf.schema,
    shape: leaf.shape,
    read(value, at, faults) {
      const read = leaf.fromJson(value);
      if (read === undefined) faults.add(at, `expected ${leaf.expected}`);
      return read;
    },
  };
}

/** Creates the input of a list. A single value is read as a list with one item, as in GraphQL. */
function listInput(item: JsonInput, { form }: Bounds): JsonInput {
  const several: JsonSchema = { type: 'array', items: item.schema, ...form?.list };
  return {
    schema: { anyOf: [several, item.schema] },
    shape: { item: item.shape },
    read(value, at, faults) {
      if (!Array.isArray(value)) return [item.read(value, at, faults)];
      return value.map((one: unknown, index) => item.read(one, `${at}[${index}]`, faults));
    },
  };
}

function objectInput(type: GraphQLInputObjectType, how: Build): JsonInput {
  if (how.inside.includes(type.name)) {
    how.report(`the input type ${type.name} contains itself`);
    return NOTHING;
  }
  const inside = [...how.inside, type.name];
  const members = new Map<string, Member>();
  for (const field of Object.values(type.getFields())) {
    const input = describe(build(field.type, { ...how, inside, bounds: boundsOf(field) }), field);
    members.set(snakeCase(field.name), { field: field.name, required: isRequired(field), input });
  }
  const shapes = new Map([...members].map(([name, { input }]) => [name, input.shape]));
  return {
    schema: named(type.name, objectSchema(members)),
    shape: { members: shapes, others: 'plain' },
    read: (value, at, faults) => readMembers(members, { value, at }, faults),
  };
}

function describe(input: JsonInput, field: GraphQLInputField): JsonInput {
  return field.description ? { ...input, schema: { ...input.schema, description: field.description } } : input;
}

function isRequired(field: GraphQLInputField): boolean {
  return isNonNullType(field.type) && field.defaultValue === undefined && field.default === undefined;
}

function objectSchema(members: ReadonlyMap<string, Member>): JsonSchema {
  const required = [...members].filter(([, member]) => member.required).map(([name]) => name);
  const properties = Object.fromEntries(
    [...members].map(([name, { input, required: needed }]) => [name, needed ? input.schema : orNull(input.schema)]),
  );
  return { type: 'object', properties, ...(required.length > 0 && { required }), additionalProperties: false };
}

function readMembers(
  members: ReadonlyMap<string, Member>,
  { value, at }: { readonly value: unknown; readonly at: string },
  faults: Faults,
): unknown {
  if (!isRecord(value)) return faults.add(at, 'expected a JSON object');
  const inside = (name: string) => (at === '' ? name : `${at}.${name}`);
  const read: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    if (!members.has(name)) faults.add(inside(name), 'unknown member');
  }
  for (const [name, { field, required, input }] of members) {
    // A null member counts as absent: its default applies.
    const given = Object.hasOwn(value, name) ? (value[name] ?? undefined) : undefined;
    if (given !== undefined) read[field] = input.read(given, inside(name), faults);
    else if (required) faults.add(inside(name), 'required');
  }
  return read;
}
