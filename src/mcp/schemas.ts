/**
 * Rewrites the schema of an action in the part of JSON Schema that hosts and models support: one type for each schema,
 * no references, `anyOf` for every choice, and texts that name the client that wrote them. Anything that the listed
 * schema cannot express, such as a default, becomes a sentence in its description. The listed schema may allow more
 * than the client's own schema, but never less, because the client checks what it receives.
 */
import { countParts, isRecord, parsedJson, type JsonText } from '../core/json.ts';
import {
  AGENT_ENUM_CHARS,
  AGENT_ENUM_VALUES,
  AGENT_LISTED_LEVELS,
  AGENT_LISTED_SCHEMAS,
  AGENT_SCHEMA_CHARS,
  AGENT_SCHEMA_NOTES_CHARS,
  AGENT_SCHEMA_PARTS,
  AGENT_SCHEMA_TEXT_CHARS,
} from '../core/limits.ts';
import { partFault, schemaFault, type CheckedSchemas } from './schema-check.ts';
import { clientText } from './client-text.ts';

type Schema = Readonly<Record<string, unknown>>;

/** A schema in the form in which a tool lists it. */
export type Listed = Readonly<Record<string, unknown>>;

/**
 * The result of rewriting a schema. `schema`: null if the tool accepts any members, for the reason `why`. `chars`: the
 * length of the schema as JSON. `names`: the names of the params at the root of the client's schema.
 */
export type Judged = { readonly names: readonly string[] } & (
  | { readonly schema: Listed; readonly chars: number; readonly why: null }
  | { readonly schema: null; readonly why: string }
);

/** Rewrites an advertised schema. `by`: the client that wrote its texts. */
export function judgeSchema(text: JsonText | null, by: string): Judged {
  if (text === null) return { schema: null, why: 'the client advertises no schema', names: [] };
  if (countParts(text, AGENT_SCHEMA_PARTS + 1) > AGENT_SCHEMA_PARTS)
    return { schema: null, why: `the schema has more than ${AGENT_SCHEMA_PARTS} members and items`, names: [] };
  const root = parsedJson(text);
  const names = isRecord(root) ? namesIn(root) : [];
  const checked: CheckedSchemas = new Set();
  const fault = schemaFault(root, checked);
  if (fault !== null || !isRecord(root)) return { schema: null, why: fault ?? 'the schema is no object', names };
  try {
    const schema = new Lister(root, by, checked).root();
    const { length: chars } = JSON.stringify(schema);
    if (chars > AGENT_SCHEMA_CHARS)
      return { schema: null, why: `it is listed in more than ${AGENT_SCHEMA_CHARS} characters`, names };
    return { schema, chars, why: null, names: [...new Set([...names, ...namesIn(schema)])] };
  } catch (error) {
    if (!(error instanceof NotListed)) throw error;
    return { schema: null, why: error.message, names };
  }
}

const BRANCHES = ['allOf', 'anyOf', 'oneOf'] as const;

/** Returns the names of the params at the root of a schema, including those in the root's alternatives. */
function namesIn(schema: Schema): readonly string[] {
  const { properties, required } = schema;
  const branches = BRANCHES.flatMap((word): readonly unknown[] => {
    const all = schema[word];
    return Array.isArray(all) ? all : [];
  });
  const named = branches.filter(isRecord).flatMap((branch) => namesAt(branch.properties, branch.required));
  return [...namesAt(properties, required), ...named];
}

function namesAt(properties: unknown, required: unknown): readonly string[] {
  const demanded: readonly unknown[] = Array.isArray(required) ? required : [];
  return [
    ...(isRecord(properties) ? Object.keys(properties) : []),
    ...demanded.filter((name) => typeof name === 'string'),
  ];
}

/** Thrown if a schema cannot be listed. The message states the reason for people. */
class NotListed extends Error {}

const ANY_ITEM: Listed = {
  anyOf: [{ type: 'string' }, { type: 'number' }, { type: 'boolean' }, { type: 'object' }],
};
/** Alternatives that allow any value. Each type is named, because some hosts refuse a schema without a type. */
const ANYTHING: readonly Listed[] = [
  { type: 'string' },
  { type: 'number' },
  { type: 'boolean' },
  { type: 'object' },
  { type: 'array', items: ANY_ITEM },
  { type: 'null' },
];

/** Keywords that do not restrict values. Beside a reference, they do not change its target. */
const ANNOTATIONS: ReadonlySet<string> = new Set([
  ...['title', 'description', 'default', 'examples', '$comment', '$schema', '$id', '$anchor', '$defs', 'definitions'],
  ...['deprecated', 'readOnly', 'writeOnly'],
]);
/** For a schema without a type: the keywords that imply each type. */
const SIGNS: readonly (readonly [type: string, keywords: readonly string[]])[] = [
  ['object', ['properties', 'required', 'additionalProperties', 'patternProperties', 'minProperties', 'maxProperties']],
  ['array', ['items', 'prefixItems', 'minItems', 'maxItems', 'uniqueItems', 'contains']],
  ['string', ['minLength', 'maxLength', 'pattern', 'format']],
  ['number', ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']],
];
/** The keywords of each type that are not listed but stated in the description. */
const NOTED: Readonly<Record<string, readonly string[]>> = {
  string: ['format', 'pattern', 'minLength', 'maxLength'],
  number: ['exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  integer: ['exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  array: ['uniqueItems'],
  object: ['minProperties', 'maxProperties'],
};

/** Rewrites one schema. Throws NotListed if that is not possible within the limits. */
class Lister {
  readonly #document: Schema;
  readonly #by: string;
  /** The references that are currently being followed, to detect cycles. */
  readonly #following: string[] = [];
  readonly #checked: CheckedSchemas;
  #left = AGENT_LISTED_SCHEMAS;

  constructor(document: Schema, by: string, checked: CheckedSchemas) {
    this.#document = document;
    this.#checked = checked;
    this.#by = by;
  }

  root(): Listed {
    const listed = this.#list(this.#document, 1);
    const choices = listed?.['anyOf'];
    const all = Array.isArray(choices) ? choices : [listed];
    const objects = all.filter((one: unknown) => isRecord(one) && one['type'] === 'object').filter(isRecord);
    const [only] = objects;
    const others = all.length - objects.length - (all.some((one) => isRecord(one) && one.type === 'null') ? 1 : 0);
    if (!listed || !only || others > 0) {
      // A schema without keywords allows any value, so it allows an object.
      if (listed && all.length === ANYTHING.length) return { ...described(listed), type: 'object' };
      throw new NotListed('the schema describes something else than an object');
    }
    return objects.length > 1 ? { ...described(listed), anyOf: objects } : { ...described(listed), ...only };
  }

  /** Rewrites a schema; null if no value can satisfy it. */
  #list(given: unknown, level: number): Listed | null {
    if (given === false) return null;
    this.#spend(1);
    if (level > AGENT_LISTED_LEVELS) throw new NotListed(`it is listed in more than ${AGENT_LISTED_LEVELS} levels`);
    const before = this.#following.length;
    const schema = this.#resolved(isRecord(given) ? given : {});
    const listed = this.#listResolved(schema, level);
    this.#following.length = before;
    return listed;
  }

  #listResolved(schema: Schema, level: number): Listed | null {
    const choices = schema.anyOf ?? schema.oneOf;
    if (Array.isArray(choices)) {
      const { anyOf: _, oneOf: __, ...base } = schema;
      if (!choices.every(isDemand) || base.properties === undefined)
        return this.#choice(base, this.#distributed(base, choices), level);
      return this.#listResolved(base, level);
    }
    const types = typesOf(schema);
    if (types === null) return this.#described(schema, null, { anyOf: ANYTHING });
    const [type, ...others] = types;
    if (type !== undefined && others.length === 0) return this.#typed(schema, type, level);
    const { title: _, description: __, default: ___, examples: ____, ...rest } = schema;
    const alone = types.map((one) => ({ ...rest, type: one, ...(rest['enum'] !== undefined && enumOf(rest, one)) }));
    return this.#choice(schema, alone, level);
  }

  /** Rewrites a schema that allows everything that one of several branches allows. */
  #choice(schema: Schema, branches: readonly unknown[], level: number): Listed | null {
    const listed = branches.map((branch) => this.#list(branch, level + 1)).filter((one) => one !== null);
    const flat = listed.flatMap((one): readonly unknown[] =>
      Array.isArray(one['anyOf']) && one['description'] === undefined ? one['anyOf'] : [one],
    );
    const distinct = [...new Map(flat.map((one) => [JSON.stringify(one), one])).values()];
    const [only] = distinct;
    if (distinct.length === 0) return null;
    if (distinct.length > 1) return this.#described(schema, null, { anyOf: distinct });
    const text = this.#described(schema, null, {});
    return isRecord(only) ? { ...only, ...text } : null;
  }

  /**
   * Adds the constraints beside a choice to each of its branches, because some hosts ignore either the constraints or
   * the choice.
   */
  #distributed(base: Schema, branches: readonly unknown[]): readonly unknown[] {
    const constraints = Object.fromEntries(Object.entries(base).filter(([name]) => !ANNOTATIONS.has(name)));
    if (Object.keys(constraints).length === 0) return branches;
    return branches.map((branch) => (isRecord(branch) ? { allOf: [constraints, branch] } : branch && constraints));
  }

  #typed(schema: Schema, type: string, level: number): Listed | null {
    if (type === 'object') return this.#object(schema, level);
    if (type === 'array') return this.#array(schema, level);
    if (type === 'string') {
      const values = stringsOf(schema);
      return this.#described(schema, type, { type, ...(values && { enum: values }) });
    }
    const { minimum, maximum } = schema;
    const isNumber = type === 'number' || type === 'integer';
    const bounds = isNumber && { ...(minimum !== undefined && { minimum }), ...(maximum !== undefined && { maximum }) };
    return this.#described(schema, type, { type, ...bounds });
  }

  #array(schema: Schema, level: number): Listed {
    const { items, prefixItems, minItems, maxItems, additionalItems } = schema;
    const rest = Array.isArray(items) ? additionalItems : items;
    const first: readonly unknown[] = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
    // Few hosts support a list with a different schema for each position. So each item may be anything that some
    // position allows.
    const all = first.length === 0 || isRecord(rest) ? [...first, rest ?? true] : first;
    const listed = all.length === 1 ? this.#list(all[0], level + 1) : this.#choice({}, all, level);
    return this.#described(schema, 'array', {
      type: 'array',
      items: listed ?? ANY_ITEM,
      ...(minItems !== undefined && { minItems }),
      ...(maxItems !== undefined && { maxItems }),
    });
  }

  #object(schema: Schema, level: number): Listed {
    const { properties = {}, required = [], additionalProperties: others } = schema;
    const given = isRecord(properties) ? Object.entries(properties) : [];
    const known = given
      .map(([name, property]) => [name, this.#list(property, level + 1)] as const)
      .filter(([, listed]) => listed !== null);
    const names = new Set(known.map(([name]) => name));
    const demanded: readonly unknown[] = Array.isArray(required) ? required : [];
    const wanted = demanded.filter((name) => typeof name === 'string');
    // Some hosts refuse a required name that is not among the properties, so it is added as a property that allows
    // anything.
    const missing = wanted.filter((name) => !names.has(name)).map((name) => [name, { anyOf: ANYTHING }] as const);
    const all = [...known, ...missing];
    const open =
      typeof others === 'boolean' || others === undefined ? others : (this.#list(others, level + 1) ?? false);
    return this.#described(schema, 'object', {
      type: 'object',
      ...(all.length > 0 && { properties: Object.fromEntries(all) }),
      ...(wanted.length > 0 && { required: wanted }),
      ...(open !== undefined && { additionalProperties: open }),
    });
  }

  // Resolves references, and joins schemas that all apply (`allOf`).

  /** Resolves the references of a schema, and joins it with the schemas of its `allOf`. */
  #resolved(schema: Schema): Schema {
    const { $ref: reference, ...beside } = schema;
    if (typeof reference === 'string')
      return this.#resolved({ ...textsOf(beside), allOf: [beside, this.#target(reference)] });
    const { allOf, ...rest } = beside;
    if (!Array.isArray(allOf)) return schema;
    return allOf.reduce<Schema>((joined, part: unknown) => {
      if (part === false) throw new NotListed('parts that apply together allow nothing');
      if (!isRecord(part)) return joined;
      const other = this.#resolved(part);
      this.#spend(Math.ceil(sizeOf(other.properties) / 8));
      return join(joined, other);
    }, this.#resolved(rest));
  }

  #spend(schemas: number): void {
    this.#left -= schemas;
    if (this.#left < 0) throw new NotListed(`it is listed as more than ${AGENT_LISTED_SCHEMAS} schemas`);
  }

  #target(reference: string): unknown {
    if (this.#following.includes(reference)) throw new NotListed(`${clientText(reference, 80)} refers to itself`);
    this.#spend(1);
    this.#following.push(reference);
    let target: unknown = this.#document;
    for (const part of reference.split('/').slice(1)) {
      const name = pointerName(part);
      const isThere = typeof target === 'object' && target !== null && Object.hasOwn(target, name);
      if (!isThere) throw new NotListed(`${clientText(reference, 80)} refers to nothing`);
      target = (target as Schema)[name];
    }
    // A reference may point to a part of the document that is not used as a schema elsewhere and so was not checked
    // yet.
    const fault = typeof target === 'boolean' ? null : partFault(target, this.#checked);
    if (fault !== null) throw new NotListed(`${clientText(reference, 80)}: ${fault}`);
    return target;
  }

  // Adds descriptions.

  /**
   * Adds a description. A schema that contains values of the client always has one, so that these values are attributed
   * to the client too.
   */
  #described(schema: Schema, type: string | null, listed: Listed): Listed {
    const { title, description } = schema;
    const says = [description ?? title].filter((one) => typeof one === 'string' && one.trim() !== '').join('');
    const notes = notesOf(schema, type, listed['enum'] !== undefined);
    const texts = [clientText(says, AGENT_SCHEMA_TEXT_CHARS), clientText(notes.join(' '), AGENT_SCHEMA_NOTES_CHARS)];
    const whole = texts.filter((one) => one !== '').join(' ');
    if (whole === '' && listed['enum'] === undefined) return listed;
    return { description: `From the client "${this.#by}": ${whole || 'one of these values.'}`, ...listed };
  }
}

function sizeOf(value: unknown): number {
  return isRecord(value) ? Object.keys(value).length : 0;
}

function described({ description }: Listed): Listed {
  return description === undefined ? {} : { description };
}

function textsOf({ title, description }: Schema): Schema {
  return { ...(title !== undefined && { title }), ...(description !== undefined && { description }) };
}

function pointerName(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return part;
  }
}

/**
 * Whether a branch only states which members are required. It is left out, because listing it would repeat all
 * properties in each branch.
 */
function isDemand(branch: unknown): boolean {
  return (
    isRecord(branch) &&
    Object.keys(branch).every((name) => ANNOTATIONS.has(name) || ['required', 'not', 'type'].includes(name))
  );
}

/** Joins two schemas that both apply, as far as a listed schema can express it. The texts of the first one are used. */
function join(one: Schema, other: Schema): Schema {
  const joined: Record<string, unknown> = { ...other, ...one };
  const [types, otherTypes] = [listOf(one.type), listOf(other.type)];
  if (types.length > 0 && otherTypes.length > 0) {
    const both = types.filter(
      (type) => otherTypes.includes(type) || (type === 'integer' && otherTypes.includes('number')),
    );
    if (both.length === 0) throw new NotListed('parts that apply together have different types');
    joined['type'] = both.length === 1 ? both[0] : both;
  }
  const [properties, others] = [one.properties, other.properties];
  if (isRecord(properties) && isRecord(others)) {
    const shared = Object.entries(others).map(([name, property]): [string, unknown] => [
      name,
      Object.hasOwn(properties, name) ? { allOf: [properties[name], property] } : property,
    ]);
    joined['properties'] = Object.fromEntries([...Object.entries(properties), ...shared]);
  }
  const required = [...new Set([...listOf(one.required), ...listOf(other.required)])];
  if (required.length > 0) joined['required'] = required;
  // The two differ in which further members they allow. Members that one of them does not know may be known to the
  // other, so the joined schema does not restrict further members.
  if (one.additionalProperties !== other.additionalProperties) delete joined['additionalProperties'];
  return joined;
}

function listOf(value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}

/** Returns the types that a schema allows; null if it allows all. */
function typesOf(schema: Schema): readonly string[] | null {
  const named = listOf(schema.type).filter((type) => typeof type === 'string');
  if (named.length > 0) return named;
  const values = valuesOf(schema);
  if (values) {
    const all = [...new Set(values.map(typeOf))];
    return all.includes('number') ? all.filter((type) => type !== 'integer') : all;
  }
  const signs = SIGNS.filter(([, keywords]) => keywords.some((word) => schema[word] !== undefined));
  return signs.length === 0 ? null : signs.map(([type]) => type);
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (Number.isInteger(value)) return 'integer';
  return typeof value;
}

/** Returns the values of an `enum` or `const`; null if there is neither. */
function valuesOf(schema: Schema): readonly unknown[] | null {
  if (Object.hasOwn(schema, 'const')) return [schema.const];
  const { enum: values } = schema;
  return Array.isArray(values) ? values : null;
}

/** Returns an `enum` with those values that have this type. */
function enumOf(schema: Schema, type: string): Schema {
  const values = (valuesOf(schema) ?? []).filter(
    (value) => typeOf(value) === type || (type === 'number' && typeof value === 'number'),
  );
  return { enum: values.length > 0 ? values : undefined };
}

/**
 * Returns the values of an `enum` of texts. Null if there is no such `enum`, if it has more values than hosts accept,
 * or if a text could be mistaken for something else.
 */
function stringsOf(schema: Schema): readonly string[] | null {
  const values = valuesOf(schema);
  if (!values || values.length > AGENT_ENUM_VALUES) return null;
  const strings = values.filter((value) => typeof value === 'string');
  const plain = strings.every((value) => value !== '' && clientText(value, AGENT_ENUM_CHARS) === value);
  return plain && strings.length === values.length ? [...new Set(strings)] : null;
}

/** Returns sentences that state what the listed schema leaves out. */
function notesOf(schema: Schema, type: string | null, hasEnum: boolean): readonly string[] {
  const values = valuesOf(schema);
  const examples = schema.examples;
  return [
    ...(values && !hasEnum && type !== null ? [`One of ${inShort(values)}.`] : []),
    ...(schema.default === undefined ? [] : [`Default: ${inShort([schema.default])}.`]),
    ...(NOTED[type ?? '']?.filter((word) => schema[word] !== undefined && schema[word] !== false) ?? []).map(
      (word) => `${word}: ${inShort([schema[word]])}.`,
    ),
    ...(Array.isArray(examples) && examples.length > 0 ? [`Examples: ${inShort(examples.slice(0, 3))}.`] : []),
  ];
}

function inShort(values: readonly unknown[]): string {
  let text = '';
  for (const value of values) {
    const next = JSON.stringify(value) ?? 'null';
    if (text.length + next.length > AGENT_SCHEMA_NOTES_CHARS)
      return clientText(`${text}, ...`.replace(/^, /, ''), AGENT_SCHEMA_NOTES_CHARS);
    text += text === '' ? next : `, ${next}`;
  }
  return text;
}
