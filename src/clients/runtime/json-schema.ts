/**
 * Checks values against a JSON Schema 2020-12. The schema is interpreted. No code is generated, so this works in pages
 * that forbid `unsafe-eval`.
 */
import { isRecord } from '../../protocol/json.ts';
import type { JsonSchema } from '../link/actions.ts';
import { boundedMessage, messageOf } from './action-errors.ts';
import { LIMITS, partsOf, typeOf } from './limits.ts';

/**
 * Checks a value. Returns null if it is valid, and otherwise its first fault in at most 256 characters. Never throws.
 */
type Validate = (value: unknown) => string | null;

/**
 * Compiles a JSON Schema 2020-12, including its formats. Throws if the schema is invalid, if it has members but no
 * keyword, if it refers to a schema outside itself, or if it uses `$dynamicRef`.
 */
export function compileSchema(schema: JsonSchema): Validate {
  // `copyOf` refuses anything that is not plain JSON. Changes of the schema after this do not affect the copy.
  const copy = copyOf(schema);
  checkForm(copy);
  return interpreter(copy);
}

function copyOf(schema: unknown): unknown {
  return JSON.parse(JSON.stringify(schema, plain) ?? 'null');
}

/**
 * Returns the value if JSON can represent it. Throws TypeError for a function, and for an object of a library's class.
 */
function plain(name: string, value: unknown): unknown {
  const prototype: unknown = value instanceof Object ? Object.getPrototypeOf(value) : null;
  if (prototype === null || Array.isArray(value) || Object.getPrototypeOf(prototype) === null) return value;
  throw new TypeError(`${name || 'it'} is no plain JSON`);
}

/** Returns the function that checks a value. The schema must already have passed `checkForm`. */
function interpreter(root: unknown): Validate {
  const check = checksOf(referencesIn(root))(root);
  return (value) => {
    try {
      const fault = check(value, '', new Set());
      return fault === null ? null : boundedMessage(fault);
    } catch (error) {
      // The value is nested too deeply for the stack.
      return messageOf(error);
    }
  };
}

type Members = Readonly<Record<string, unknown>>;
/**
 * Returns the first fault of a value; null if there is none. `at`: the path of the value; empty for the whole value.
 * `seen`: receives the names, or indexes, of the parts of the value that the schema describes.
 */
type Check = (value: unknown, at: string, seen: Set<string>) => string | null;
type CheckOf = (schema: unknown) => Check;

/** Returns a function that compiles the check of a schema, and does so once for each schema. */
function checksOf(targets: ReadonlyMap<unknown, unknown>): CheckOf {
  const prepared = new Map<unknown, Check>();
  const checkOf: CheckOf = (schema) => {
    if (!isRecord(schema)) return (_, at) => (schema === false ? `${at || 'params'}: not allowed` : null);
    const known = prepared.get(schema);
    if (known) return known;
    // A schema may refer to itself. So its check is stored before the checks of its parts are compiled.
    let checks: readonly Check[] = [];
    const check: Check = (value, at, seen) => firstFault(checks, value, at, seen);
    prepared.set(schema, check);
    const target = targets.has(schema) ? [within(checkOf(targets.get(schema)))] : [];
    checks = [...limits(schema), ...target, ...choices(schema, checkOf), ...dependents(schema, checkOf)];
    checks = [...checks, members(schema, checkOf), items(schema, checkOf), rest(schema, checkOf)];
    return check;
  };
  return checkOf;
}

function firstFault(checks: readonly Check[], value: unknown, at: string, seen: Set<string>): string | null {
  for (const check of checks) {
    const fault = check(value, at, seen);
    if (fault !== null) return fault;
  }
  return null;
}

/**
 * Returns a check of the same value by another schema. If it finds no fault, the parts that it describes count as
 * described.
 */
function within(check: Check): Check {
  return (value, at, seen) => {
    const described = new Set<string>();
    const fault = check(value, at, described);
    if (fault === null) for (const name of described) seen.add(name);
    return fault;
  };
}

/** Returns a check with this text as its fault. */
function expecting(text: string, isMet: (value: unknown, at: string, seen: Set<string>) => boolean): Check {
  return (value, at, seen) => (isMet(value, at, seen) ? null : `${at || 'params'}: ${text}`);
}

function limits(schema: Members): readonly Check[] {
  return Object.entries(schema).flatMap(([keyword, limit]) => {
    const keeps = LIMITS.get(keyword);
    if (!keeps) return [];
    const fault = `does not match ${keyword} ${JSON.stringify(limit)}`;
    const typeFault = (value: unknown): string => `${typeOf(value)} given, ${[limit].flat().join(' or ')} expected`;
    return [
      (value, at) =>
        keeps(value, limit) ? null : `${at || 'params'}: ${keyword === 'type' ? typeFault(value) : fault}`,
    ];
  });
}

/** Compiles the keywords that apply several schemas to the same value, or a schema that must not match. */
function choices(schema: Members, checkOf: CheckOf): readonly Check[] {
  const partsBy = (keyword: string): readonly Check[] => partsOf(schema[keyword]).map((part) => within(checkOf(part)));
  const matching = (keyword: string, isRight: (count: number) => boolean): Check => {
    const parts = keyword === 'not' ? [within(checkOf(schema[keyword]))] : partsBy(keyword);
    return expecting(`does not match ${keyword}`, (value, at, seen) =>
      isRight(parts.filter((part) => part(value, at, seen) === null).length),
    );
  };
  const checks = [...partsBy('allOf')];
  if ('anyOf' in schema) checks.push(matching('anyOf', (count) => count > 0));
  if ('oneOf' in schema) checks.push(matching('oneOf', (count) => count === 1));
  if ('not' in schema) checks.push(matching('not', (count) => count === 0));
  if ('if' in schema) {
    const [condition, yes, no] = [schema['if'], schema['then'], schema['else']].map((part) => within(checkOf(part)));
    checks.push((value, at, seen) => (condition?.(value, at, seen) === null ? yes : no)?.(value, at, seen) ?? null);
  }
  return checks;
}

/**
 * The keywords that say what an object must have, or match, if it has a certain member. The last one is from older
 * drafts.
 */
const DEPENDENT = ['dependentRequired', 'dependentSchemas', 'dependencies'];

function dependents(schema: Members, checkOf: CheckOf): readonly Check[] {
  const missing = (names: unknown): readonly Check[] =>
    partsOf(names).map((name) =>
      expecting(`${String(name)} is missing`, (value) => !isRecord(value) || Object.hasOwn(value, String(name))),
    );
  const needs = DEPENDENT.flatMap((keyword) => Object.entries(Object(schema[keyword])));
  const conditional = needs.flatMap(([name, need]) => {
    const checks = Array.isArray(need) ? missing(need) : [within(checkOf(need))];
    return checks.map(
      (check): Check =>
        (value, at, seen) =>
          isRecord(value) && Object.hasOwn(value, name) ? check(value, at, seen) : null,
    );
  });
  return [...missing(schema['required']), ...conditional];
}

/** Compiles the checks of an object's members. */
function members(schema: Members, checkOf: CheckOf): Check {
  const byName = new Map(Object.entries(Object(schema['properties'])).map(([name, part]) => [name, checkOf(part)]));
  const byPattern = Object.entries(Object(schema['patternProperties'])).map(
    ([pattern, part]) => [new RegExp(pattern, 'u'), checkOf(part)] as const,
  );
  const other = 'additionalProperties' in schema ? [checkOf(schema['additionalProperties'])] : [];
  const ofNames = checkOf(schema['propertyNames']);
  return (value, at, seen) => {
    if (!isRecord(value)) return null;
    for (const [name, member] of Object.entries(value)) {
      const path = pathOf(at, name);
      const named = byName.get(name);
      const matching = byPattern.filter(([pattern]) => pattern.test(name)).map(([, check]) => check);
      const found = named ? [named, ...matching] : matching;
      const checks = found.length > 0 ? found : other;
      if (checks.length > 0) seen.add(name);
      const fault = ofNames(name, path, new Set()) ?? firstFault(checks, member, path, new Set());
      if (fault !== null) return fault;
    }
    return null;
  };
}

/** Compiles the checks of a list's items. */
function items(schema: Members, checkOf: CheckOf): Check {
  const first = partsOf(schema['prefixItems']).map(checkOf);
  const other = 'items' in schema ? checkOf(schema['items']) : undefined;
  const contained = 'contains' in schema ? checkOf(schema['contains']) : undefined;
  const { minContains = 1, maxContains = Infinity } = schema;
  return (value, at, seen) => {
    if (!Array.isArray(value)) return null;
    let count = 0;
    for (const [index, item] of value.entries()) {
      const path = `${at}/${index}`;
      const check = first[index] ?? other;
      const isFound = contained?.(item, path, new Set()) === null;
      if (isFound) count++;
      if (check || isFound) seen.add(String(index));
      const fault = check?.(item, path, new Set()) ?? null;
      if (fault !== null) return fault;
    }
    const isRight = !contained || (count >= Number(minContains) && count <= Number(maxContains));
    return isRight ? null : `${at || 'params'}: ${count} items match contains`;
  };
}

/**
 * Compiles `unevaluatedItems` and `unevaluatedProperties`: the check of those parts that no other keyword describes.
 */
function rest(schema: Members, checkOf: CheckOf): Check {
  const [ofItems, ofMembers] = ['unevaluatedItems', 'unevaluatedProperties'].map((keyword) =>
    keyword in schema ? checkOf(schema[keyword]) : undefined,
  );
  return (value, at, seen) => {
    const check = Array.isArray(value) ? ofItems : ofMembers;
    if (!check || !(value instanceof Object)) return null;
    for (const [name, part] of Object.entries(value)) {
      const fault = seen.has(name) ? null : check(part, pathOf(at, name), new Set());
      if (fault !== null) return fault;
      seen.add(name);
    }
    return null;
  };
}

/** Returns the path of a part of a value, as a JSON Pointer. */
function pathOf(at: string, name: string): string {
  return `${at}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

// The references between schemas, and the formats that the values of keywords must have.

/** The address of a schema without `$id`. */
const NAMELESS = 'schema:/';

/**
 * Returns, for each schema with a `$ref`, the schema to which the `$ref` refers. Throws TypeError if a `$ref` refers to
 * nothing, if two schemas have the same address, or if a schema has no keyword.
 */
function referencesIn(root: unknown): ReadonlyMap<unknown, unknown> {
  const known = new Map<string, unknown>();
  const references = new Map<Members, string>();
  const visited = new Set<unknown>();
  const name = (address: string, schema: unknown): void => {
    if (known.has(address)) throw new TypeError(`two schemas are named ${address}`);
    known.set(address, schema);
  };
  const visit = (schema: unknown, base: string): void => {
    if (!isRecord(schema) || visited.has(schema)) return;
    visited.add(schema);
    checkKeywords(Object.keys(schema));
    const { $id, $anchor, $ref } = schema;
    const own = $id === undefined ? base : new URL(String($id), base).href.replace(/#.*/, '');
    if ($id !== undefined || schema === root) name(own, schema);
    if ($anchor !== undefined) name(`${own}#${String($anchor)}`, schema);
    if ($ref !== undefined) references.set(schema, new URL(String($ref), own).href);
    for (const keyword of ONE) visit(schema[keyword], own);
    for (const keyword of [...LISTS, ...MAPS, ...DEPENDENT])
      for (const part of partsOf(schema[keyword])) visit(part, own);
  };
  visit(root, NAMELESS);
  const targets = new Map<unknown, unknown>();
  for (const [schema, address] of references) {
    const [resource = '', pointer = ''] = address.split('#');
    const target = known.get(pointer === '' ? resource : address) ?? partAt(known.get(resource), pointer);
    if (typeof target !== 'boolean' && !isRecord(target))
      throw new TypeError(`no schema for $ref ${String(schema['$ref'])}`);
    // The target may be in a place where no schema is expected, so its form was not checked yet.
    if (!visited.has(target)) checkForm(target);
    visit(target, resource);
    targets.set(schema, target);
  }
  return targets;
}

function partOf(value: unknown, name: string): unknown {
  return value instanceof Object ? Object.getOwnPropertyDescriptor(value, name)?.value : undefined;
}

/** Returns the part of a value to which a JSON Pointer refers; undefined if there is none. */
function partAt(value: unknown, pointer: string): unknown {
  if (!pointer.startsWith('/')) return undefined;
  const names = decodeURIComponent(pointer).split('/').slice(1);
  return names.reduce((part, name) => partOf(part, name.replaceAll('~1', '/').replaceAll('~0', '~')), value);
}

const SUBSCHEMA = { $ref: '#' };
const SUBSCHEMA_MAP = { type: 'object', additionalProperties: SUBSCHEMA };
const COUNT = { type: 'integer', minimum: 0 };
const TEXT = { type: 'string' };
const TEXTS = { type: 'array', items: TEXT, uniqueItems: true };
const PATTERN = { format: 'regex' };
const TYPE_NAME = { enum: ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'] };
const DRAFT = 'https://json-schema.org/draft/2020-12/schema';

/** The keywords whose value is a schema (ONE), a list of schemas, or an object of schemas. */
const ONE =
  'not if then else items contains additionalProperties propertyNames unevaluatedItems unevaluatedProperties'.split(
    ' ',
  );
const LISTS = 'allOf anyOf oneOf prefixItems'.split(' ');
const MAPS = '$defs definitions properties dependentSchemas patternProperties'.split(' ');

const FORMS: readonly (readonly [form: object | boolean, keywords: readonly string[]])[] = [
  [SUBSCHEMA, ONE],
  [{ type: 'array', items: SUBSCHEMA, minItems: 1 }, LISTS],
  [SUBSCHEMA_MAP, MAPS],
  [{ ...SUBSCHEMA_MAP, propertyNames: PATTERN }, ['patternProperties']],
  [TEXT, '$id $anchor $ref $comment format title description'.split(' ')],
  [{ ...TEXT, ...PATTERN }, ['pattern']],
  [{ enum: [DRAFT, `${DRAFT}#`] }, ['$schema']],
  [COUNT, 'minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains'.split(' ')],
  [{ type: 'number' }, 'minimum maximum exclusiveMinimum exclusiveMaximum'.split(' ')],
  [{ type: 'number', exclusiveMinimum: 0 }, ['multipleOf']],
  [{ type: 'boolean' }, ['uniqueItems']],
  [TEXTS, ['required']],
  [{ type: 'array' }, ['enum']],
  [{ anyOf: [TYPE_NAME, { ...TEXTS, items: TYPE_NAME, minItems: 1 }] }, ['type']],
  [{ type: 'object', additionalProperties: TEXTS }, ['dependentRequired']],
  [true, 'const default examples deprecated readOnly writeOnly'.split(' ')],
  // These keywords are refused: the first cannot be resolved, and the other two are from older drafts.
  [false, '$dynamicRef $recursiveRef id'.split(' ')],
];

const KEYWORDS = Object.fromEntries(FORMS.flatMap(([form, keywords]) => keywords.map((name) => [name, form])));
const faultOfForm = interpreter({ type: ['object', 'boolean'], properties: KEYWORDS });

function checkForm(schema: unknown): void {
  const fault = faultOfForm(schema);
  if (fault !== null) throw new TypeError(fault.replace(/^params/, 'the schema'));
}

/** Throws TypeError if no member is a keyword, because such a schema would check nothing. */
function checkKeywords([first, ...others]: readonly string[]): void {
  if (first === undefined || [first, ...others].some((name) => Object.hasOwn(KEYWORDS, name))) return;
  throw new TypeError(`${first} is no keyword of JSON Schema: put it into properties`);
}
