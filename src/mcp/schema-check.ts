/**
 * Finds faults in a client's JSON Schema: whether it is invalid under its dialect, or breaks a limit for which hosts
 * refuse a whole list of tools. It compiles no schema and runs no pattern of a client.
 */
import { canonicalJson, isRecord } from '../core/json.ts';
import { AGENT_SCHEMA_LEVELS } from '../core/limits.ts';
import { clientText } from './client-text.ts';

type Schema = Readonly<Record<string, unknown>>;

/** Returns the fault in the value of a keyword; null if there is none. */
type Check = (value: unknown, at: Place) => string | null;
type Place = {
  readonly path: string;
  readonly level: number;
  readonly dialect: Dialect;
  readonly checked: CheckedSchemas;
};
/** The schemas within a schema that were already checked. */
export type CheckedSchemas = Set<unknown>;

type Dialect = { readonly tuples: boolean; readonly booleans: boolean; readonly flags: boolean };

/**
 * The dialects by the ends of their URLs. `tuples`: whether `items` may be a list. `booleans`: whether `true` and
 * `false` are schemas. `flags`: whether `exclusiveMinimum` and `exclusiveMaximum` are booleans.
 */
const DIALECTS: ReadonlyMap<string, Dialect> = new Map([
  ['draft/2020-12/schema', { tuples: false, booleans: true, flags: false }],
  ['draft/2019-09/schema', { tuples: true, booleans: true, flags: false }],
  ['draft-07/schema', { tuples: true, booleans: true, flags: false }],
  ['draft-06/schema', { tuples: true, booleans: true, flags: false }],
  ['draft-04/schema', { tuples: true, booleans: false, flags: true }],
]);
const DEFAULT_DIALECT = 'draft/2020-12/schema';
const DIALECT_ADDRESS = /^https?:\/\/json-schema\.org\/(.{1,40}?)#?$/;

/** Matches the property names that hosts accept. One other name makes them refuse all tools. */
const PROPERTY_NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);
/**
 * Keywords whose targets are determined only during evaluation, so that they cannot be followed by reading the schema.
 */
const DYNAMIC = ['$dynamicRef', '$recursiveRef'];

const text: Check = (value, { path }) => (typeof value === 'string' ? null : `${path} is no text`);
const flag: Check = (value, { path }) => (typeof value === 'boolean' ? null : `${path} is neither true nor false`);
const number: Check = (value, { path }) => (Number.isFinite(value) ? null : `${path} is no number`);
const count: Check = (value, { path }) =>
  Number.isSafeInteger(value) && Number(value) >= 0 ? null : `${path} is no count`;
const positive: Check = (value, at) => number(value, at) ?? (Number(value) > 0 ? null : `${at.path} is not above 0`);
const list: Check = (value, { path }) => (Array.isArray(value) ? null : `${path} is no list`);
const anything: Check = () => null;

const values: Check = (value, at) => {
  const fault = list(value, at);
  if (fault !== null || !Array.isArray(value)) return fault;
  if (value.length === 0) return `${at.path} is an empty list`;
  // Drafts before 2019-09 require that all values of an enumeration differ.
  return new Set(value.map(canonicalJson)).size === value.length ? null : `${at.path} has a value twice`;
};

const names: Check = (value, at) => {
  const fault = list(value, at);
  if (fault !== null || !Array.isArray(value)) return fault;
  if (new Set(value).size < value.length) return `${at.path} has a name twice`;
  for (const name of value) {
    if (typeof name !== 'string') return `${at.path} has a name that is no text`;
    if (!PROPERTY_NAME.test(name)) return nameFault(name, at);
  }
  return null;
};

const types: Check = (value, { path }) => {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (all.length === 0 || new Set(all).size < all.length) return `${path} names no type, or one twice`;
  return all.every((type) => TYPES.has(type)) ? null : `${path} is no type`;
};

const schema: Check = (value, at) => faultIn(value, { ...at, level: at.level + 1 });

const schemas: Check = (value, at) => {
  if (!Array.isArray(value) || value.length === 0) return `${at.path} is no list of schemas`;
  return firstFault(value.entries(), at);
};

const schemasByName: Check = (value, at) =>
  isRecord(value) ? firstFault(Object.entries(value), at) : `${at.path} is no object`;

const properties: Check = (value, at) => {
  if (!isRecord(value)) return `${at.path} is no object`;
  const wrong = Object.keys(value).find((name) => !PROPERTY_NAME.test(name));
  return wrong === undefined ? firstFault(Object.entries(value), at) : nameFault(wrong, at);
};

const items: Check = (value, at) =>
  at.dialect.tuples && Array.isArray(value) ? schemas(value, at) : schema(value, at);

const exclusive: Check = (value, at) => (at.dialect.flags ? flag(value, at) : number(value, at));

const namesByName: Check = (value, at) => {
  if (!isRecord(value)) return `${at.path} is no object`;
  for (const [name, wanted] of Object.entries(value)) {
    const fault = names(wanted, within(at, name));
    if (fault !== null) return fault;
  }
  return null;
};

const dependencies: Check = (value, at) => {
  if (!isRecord(value)) return `${at.path} is no object`;
  for (const [name, wanted] of Object.entries(value)) {
    const place = within(at, name);
    const fault = Array.isArray(wanted) ? names(wanted, place) : schema(wanted, place);
    if (fault !== null) return fault;
  }
  return null;
};

const reference: Check = (value, { path }) =>
  typeof value === 'string' && /^#(?:\/|$)/.test(value) ? null : `${path} refers to something outside of the schema`;

/** The keywords whose values the dialects define. Any other member has no meaning and may have any value. */
const KEYWORDS: ReadonlyMap<string, Check> = new Map([
  ...['title', 'description', '$comment', 'format', 'pattern', 'contentEncoding', 'contentMediaType', '$anchor'].map(
    (name): [string, Check] => [name, text],
  ),
  ...['uniqueItems', 'readOnly', 'writeOnly', 'deprecated', '$recursiveAnchor'].map((name): [string, Check] => [
    name,
    flag,
  ]),
  ...['maxLength', 'minLength', 'maxItems', 'minItems', 'maxProperties', 'minProperties'].map(
    (name): [string, Check] => [name, count],
  ),
  ...['maxContains', 'minContains'].map((name): [string, Check] => [name, count]),
  ...['not', 'if', 'then', 'else', 'contains', 'propertyNames', 'additionalProperties', 'additionalItems'].map(
    (name): [string, Check] => [name, schema],
  ),
  ...['unevaluatedItems', 'unevaluatedProperties', 'contentSchema'].map((name): [string, Check] => [name, schema]),
  ...['allOf', 'anyOf', 'oneOf', 'prefixItems'].map((name): [string, Check] => [name, schemas]),
  ...['$defs', 'definitions', 'patternProperties', 'dependentSchemas'].map((name): [string, Check] => [
    name,
    schemasByName,
  ]),
  ['properties', properties],
  ['type', types],
  ['enum', values],
  ['examples', list],
  ['const', anything],
  ['default', anything],
  ['required', names],
  ['items', items],
  ['minimum', number],
  ['maximum', number],
  ['exclusiveMinimum', exclusive],
  ['exclusiveMaximum', exclusive],
  ['multipleOf', positive],
  ['dependentRequired', namesByName],
  ['dependencies', dependencies],
  ['$ref', reference],
]);

/** Returns the fault of a schema as a text for people; null if it is valid and within the limits. */
export function schemaFault(root: unknown, checked: CheckedSchemas = new Set()): string | null {
  if (!isRecord(root)) return 'the schema is no object';
  const dialect = dialectOf(root);
  if (dialect === null) return '$schema names no known dialect';
  const { $schema: _, $id: id = '', ...rest } = root;
  if (typeof id !== 'string') return '$id is no text';
  checked.add(root);
  return faultIn(rest, { path: 'the schema', level: 1, dialect, checked });
}

/** Returns the fault of a part of a schema to which a reference points. Each part is checked once. */
export function partFault(part: unknown, checked: CheckedSchemas): string | null {
  const dialect = { tuples: true, booleans: true, flags: false };
  return faultIn(part, { path: 'this part', level: 1, dialect, checked });
}

function dialectOf({ $schema: named }: Schema): Dialect | null {
  const [, name = ''] = named === undefined ? ['', DEFAULT_DIALECT] : (DIALECT_ADDRESS.exec(String(named)) ?? []);
  return (typeof named === 'string' || named === undefined ? DIALECTS.get(name) : null) ?? null;
}

function faultIn(value: unknown, at: Place): string | null {
  if (typeof value === 'boolean') return at.dialect.booleans || isExtra(at) ? null : `${at.path} is no schema`;
  if (!isRecord(value)) return `${at.path} is no schema`;
  if (value['$schema'] !== undefined && dialectOf(value) === null) return `${at.path} names no known dialect`;
  if (at.checked.has(value)) return null;
  at.checked.add(value);
  if (at.level > AGENT_SCHEMA_LEVELS) return `the schema has more than ${AGENT_SCHEMA_LEVELS} levels`;
  for (const [name, member] of Object.entries(value)) {
    if (name.startsWith('x-mcp-')) return `${at.path} has the reserved member ${shown(name)}`;
    if (name === '$id' || DYNAMIC.includes(name)) return `${at.path} has the member ${name}`;
    const fault = KEYWORDS.get(name)?.(member, within(at, name)) ?? null;
    if (fault !== null) return fault;
  }
  return hasItems(value) ? null : `${at.path} describes a list without its items`;
}

/** Whether the place is one of the members for which draft 4 allows a boolean instead of a schema. */
function isExtra({ path }: Place): boolean {
  return path.endsWith('/additionalProperties') || path.endsWith('/additionalItems');
}

function hasItems({ type, items, prefixItems }: Schema): boolean {
  const isList = type === 'array' || (Array.isArray(type) && type.includes('array'));
  return !isList || items !== undefined || prefixItems !== undefined;
}

function firstFault(parts: Iterable<readonly [number | string, unknown]>, at: Place): string | null {
  for (const [name, part] of parts) {
    const fault = schema(part, within(at, String(name)));
    if (fault !== null) return fault;
  }
  return null;
}

function within(at: Place, name: string): Place {
  return { ...at, path: `${at.path}/${shown(name)}` };
}

function nameFault(name: string, { path }: Place): string {
  return `${path} has the name ${JSON.stringify(shown(name))}, which hosts refuse`;
}

/** The maximum number of characters of a name in a fault. */
const NAME_CHARS = 64;

function shown(name: string): string {
  return clientText(name, NAME_CHARS);
}
