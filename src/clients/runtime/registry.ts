/**
 * Keeps the actions of one runtime, writes their advertisements, and checks values against the schemas of their params
 * and results: a JSON Schema, or a schema of a library.
 */
import {
  dereference,
  schemaArrayKeyword,
  schemaKeyword,
  schemaMapKeyword,
  validate as validateWith,
  type OutputUnit,
  type Schema,
} from '@cfworker/json-schema';
import { NAME } from '../../protocol/fields.ts';
import { isRecord } from '../../protocol/json.ts';
import type { ActionSchema, ActionSpec, JsonSchema, StandardIssue, StandardSchema } from '../link/actions.ts';
import { wrong } from '../link/platform.ts';
import { boundedMessage, fits, messageOf } from './ends.ts';
import type { Handler } from './types.ts';

/** The limits of actions are the relay's (PROTOCOL.md, section 10). */
const MAX_ACTIONS = 256;
const MAX_ACTION_BYTES = 64 * 1024;
/** The longest delay that setTimeout accepts. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** A value as its schema gives it, or its first fault, at most 256 characters. */
export type CheckedValue = { readonly value: unknown } | { readonly fault: string };
/** Rejects or throws only if the schema's library does. */
export type SchemaCheck = (value: unknown) => CheckedValue | Promise<CheckedValue>;

export type Registered = {
  readonly name: string;
  readonly spec: ActionSpec;
  readonly run: Handler;
  readonly check: SchemaCheck | null;
  readonly checkResult: SchemaCheck | null;
  readonly json: string;
};

export class ActionRegistry {
  readonly #actions = new Map<string, Registered>();
  readonly #changed: () => void;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /**
   * Adds an action. Throws TypeError for an invalid one and then changes nothing. Returns a function that removes the
   * action; calling it twice does nothing.
   */
  add(name: string, spec: ActionSpec, run: Handler<never>): () => void {
    const actions = this.#actions;
    if (typeof spec !== 'object' || spec === null)
      throw wrong(`action ${name}`, spec, 'handle(name, spec, handler) with a spec such as {}');
    if (typeof run !== 'function') throw wrong(`action ${name}`, run, 'a function');
    const { timeoutMs = MAX_TIMEOUT_MS } = spec;
    if (typeof name !== 'string' || !NAME.test(name))
      throw wrong('action', name, 'a letter, then up to 127 of A-Z a-z 0-9 _ . : -');
    if (actions.has(name)) throw new TypeError(`action ${name}: already registered`);
    if (actions.size >= MAX_ACTIONS) throw new TypeError(`action ${name}: more than ${MAX_ACTIONS} actions`);
    if (!(timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS))
      throw wrong(`action ${name}: timeoutMs`, timeoutMs, `1 to ${MAX_TIMEOUT_MS}`);
    const action = {
      name,
      spec,
      // `check` makes sure that the params are of the type that the handler was given by the schema.
      run: run as Handler,
      check: checkOf(`action ${name}: schema`, spec.schema),
      checkResult: checkOf(`action ${name}: result`, spec.result),
      json: advertise(name, spec),
    };
    actions.set(name, action);
    this.#changed();
    return () => {
      if (actions.get(name) === action && actions.delete(name)) this.#changed();
    };
  }

  get(name: string): Registered | undefined {
    return this.#actions.get(name);
  }

  /** Returns a JSON array of all advertisements, in the order in which they were added. */
  json(): string {
    return `[${Array.from(this.#actions.values(), ({ json }) => json).join(',')}]`;
  }
}

/** Returns the check of a schema; null without one. `where` begins the message of the TypeError for a wrong schema. */
function checkOf(where: string, schema: ActionSchema | undefined): SchemaCheck | null {
  if (schema === undefined) return null;
  try {
    if (isStandard(schema)) return standardCheck(schema);
    const faultOf = compileSchema(schema);
    return (value) => {
      const fault = faultOf(value);
      return fault === null ? { value } : { fault };
    };
  } catch (error) {
    throw new TypeError(`${where}: ${messageOf(error)}`, { cause: error });
  }
}

/** A schema of a library may be a function, as those of arktype are. */
function isStandard(schema: ActionSchema): schema is StandardSchema {
  return schema instanceof Object && '~standard' in schema;
}

function standardCheck({ '~standard': { validate } }: StandardSchema): SchemaCheck {
  const read = (result: Awaited<ReturnType<typeof validate>>): CheckedValue =>
    result.issues ? { fault: issueText(result.issues[0]) } : { value: result.value };
  return (value) => {
    const result = validate(value);
    return result instanceof Promise ? result.then(read) : read(result);
  };
}

function issueText(issue: StandardIssue | undefined): string {
  const path = issue?.path?.map((part) => `/${String(typeof part === 'object' ? part.key : part)}`).join('');
  return boundedMessage(`${path || 'params'}: ${issue?.message ?? 'invalid'}`);
}

function advertise(name: string, spec: ActionSpec): string {
  const { summary, description, version, metadata } = spec;
  const schema = jsonSchemaOf(name, spec);
  const said = { checks_arguments: spec.schema !== undefined, guards: guardsOf(spec), effects: effectsOf(name, spec) };
  const json = JSON.stringify({ name, summary, description, version, ...said, schema, metadata });
  if (!fits(json, MAX_ACTION_BYTES)) throw new TypeError(`action ${name}: larger than ${MAX_ACTION_BYTES} bytes`);
  return json;
}

/** Returns the JSON Schema to advertise. Throws TypeError for a library's schema that has none. */
function jsonSchemaOf(name: string, { schema, jsonSchema }: ActionSpec): JsonSchema | undefined {
  if (jsonSchema !== undefined || schema === undefined || !isStandard(schema)) return jsonSchema ?? schema;
  const library = schema['~standard'].jsonSchema;
  let cause: unknown;
  try {
    if (library) return library.input({ target: 'draft-2020-12' });
  } catch (error) {
    cause = error;
  }
  throw new TypeError(`action ${name}: schema: it has no JSON Schema: give one as jsonSchema beside it`, { cause });
}

/**
 * Returns the guards to advertise. Undefined: the action defines none, so the advertisement says nothing about them.
 */
function guardsOf({ approval, lease }: ActionSpec): object | undefined {
  return approval === undefined && lease === undefined ? undefined : { approval, lease };
}

function effectsOf(name: string, { effects }: ActionSpec): object | undefined {
  if (effects === undefined) return undefined;
  const { readOnly: read_only, destructive, idempotent, openWorld: open_world } = effects;
  const flags = { read_only, destructive, idempotent, open_world };
  if (Object.values(flags).every((flag) => flag === undefined || typeof flag === 'boolean')) return flags;
  throw new TypeError(`action ${name}: effects: true or false expected`);
}

// A JSON Schema that checks other JSON Schemas (draft 2020-12): the keywords that the validator reads have valid
// values.

const COUNT = { type: 'integer', minimum: 0 };
const NUMBER = { type: 'number' };
const TEXT = { type: 'string' };
const FLAG = { type: 'boolean' };
const TEXTS = { type: 'array', items: TEXT, uniqueItems: true };
const SUBSCHEMA = { $ref: '#' };
const SUBSCHEMAS = { type: 'array', items: SUBSCHEMA, minItems: 1 };
const SUBSCHEMA_MAP = { type: 'object', additionalProperties: SUBSCHEMA };
const TYPE_NAME = { enum: ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'] };

/** The keywords of JSON Schema, grouped by the form that their values must have. */
const FORMS: readonly (readonly [form: object | boolean, keywords: string])[] = [
  [TEXT, '$id $anchor $ref $comment format title description'],
  [{ type: 'string', format: 'regex' }, 'pattern'],
  [{ enum: ['', '#'].map((end) => `https://json-schema.org/draft/2020-12/schema${end}`) }, '$schema'],
  [COUNT, 'minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains'],
  [NUMBER, 'minimum maximum exclusiveMinimum exclusiveMaximum'],
  [{ type: 'number', exclusiveMinimum: 0 }, 'multipleOf'],
  [FLAG, 'uniqueItems'],
  [TEXTS, 'required'],
  [{ type: 'array' }, 'enum'],
  [{ anyOf: [TYPE_NAME, { type: 'array', items: TYPE_NAME, minItems: 1, uniqueItems: true }] }, 'type'],
  [SUBSCHEMAS, 'allOf anyOf oneOf prefixItems'],
  [
    SUBSCHEMA,
    'not if then else items contains additionalProperties propertyNames unevaluatedItems unevaluatedProperties',
  ],
  [SUBSCHEMA_MAP, '$defs definitions properties dependentSchemas'],
  [{ ...SUBSCHEMA_MAP, propertyNames: { format: 'regex' } }, 'patternProperties'],
  [{ type: 'object', additionalProperties: TEXTS }, 'dependentRequired'],
  [true, 'const default examples deprecated readOnly writeOnly'],
  // Forbidden: the validator ignores `$dynamicRef`. It reads the other two, but they belong to older drafts.
  [false, '$dynamicRef $recursiveRef id'],
];

const KEYWORDS = Object.fromEntries(
  FORMS.flatMap(([form, keywords]) => keywords.split(' ').map((name) => [name, form])),
);

/** A JSON Schema that accepts every schema that the validator can apply. */
const SCHEMA_FORM: Readonly<Record<string, unknown>> = { type: ['object', 'boolean'], properties: KEYWORDS };

// Checks values against the JSON Schemas of an action.

/** Returns null for valid params, otherwise the first fault, at most 256 characters. */
type Validate = (params: unknown) => string | null;

/** The keywords whose errors only say that a nested error follows. */
const WRAPPERS: ReadonlySet<string> = new Set([
  ...['properties', 'patternProperties', 'additionalProperties', 'unevaluatedProperties', 'propertyNames'],
  ...['items', 'prefixItems', 'unevaluatedItems', '$ref', 'allOf', 'dependentSchemas', 'if'],
]);

/**
 * A format that is not checked. The validator's pattern for it takes exponential time for some texts, and callers
 * choose the texts. JSON Schema has no such format.
 */
const UNSAFE_FORMAT = 'url';

const checkForm = interpreter(SCHEMA_FORM);

/**
 * Prepares a JSON Schema 2020-12, including its formats, for checking params. Throws if the schema is invalid, has
 * members but no keyword, refers to a schema outside itself, or uses `$dynamicRef`. The schema is interpreted: no code
 * is generated, so a page may forbid `unsafe-eval`.
 */
export function compileSchema(schema: JsonSchema): Validate {
  // `copySchema` refuses what is not plain JSON. The check reads the copy, whose objects have no prototypes.
  const copy = copySchema(schema);
  const fault = checkForm(copy);
  if (fault !== null) throw new TypeError(fault.replace(/^params/, 'the schema'));
  return interpreter(copy);
}

/** Throws TypeError for members none of which is a keyword: such a schema would check nothing. */
function checkKeywords(names: readonly string[]): void {
  const [first] = names;
  if (first === undefined || names.some((name) => Object.hasOwn(KEYWORDS, name))) return;
  throw new TypeError(`${first} is no keyword of JSON Schema: put it into properties`);
}

function interpreter(given: unknown): Validate {
  // The library writes to the schema that it is given, so each interpreter has a copy of its own.
  const schema = copySchema(given);
  const lookup = dereference(schema);
  for (const part of partsOf(schema)) {
    checkKeywords(Object.keys(part));
    if (part.$ref !== undefined && lookup[part.__absolute_ref__ ?? ''] === undefined) {
      throw new TypeError(`no schema for $ref ${part.$ref}`);
    }
    if (part.format === UNSAFE_FORMAT) delete part.format;
  }
  return (params) => {
    try {
      const { valid, errors } = validateWith(bare(params), schema, '2020-12', lookup);
      return valid ? null : describe(errors);
    } catch (error) {
      return messageOf(error);
    }
  };
}

function copySchema(given: unknown): Schema | boolean {
  const copy = bare(JSON.parse(JSON.stringify(given, plain) ?? 'null'));
  if (!isSchema(copy)) throw new TypeError('the schema is neither an object nor a boolean');
  return copy;
}

/** Returns the value if JSON can hold it. Throws TypeError for a function and for an object of a library's class. */
function plain(name: string, value: unknown): unknown {
  const prototype: unknown = value instanceof Object ? Object.getPrototypeOf(value) : null;
  if (prototype === null || Array.isArray(value) || Object.getPrototypeOf(prototype) === null) return value;
  throw new TypeError(`${name || 'it'} is no plain JSON`);
}

function isSchema(value: unknown): value is Schema | boolean {
  return typeof value === 'boolean' || isRecord(value);
}

/**
 * Copies a JSON value into objects without prototypes, because the library treats inherited members such as
 * `constructor` like members of the value.
 */
function bare(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => bare(item));
  const copy: Record<string, unknown> = Object.create(null);
  for (const [name, member] of Object.entries(value)) copy[name] = bare(member);
  return copy;
}

/** Yields the schema and all schemas in it. */
function* partsOf(schema: Schema | boolean): Generator<Schema> {
  if (typeof schema === 'boolean') return;
  yield schema;
  for (const [keyword, value] of Object.entries(schema)) {
    const many = schemaMapKeyword[keyword] || (schemaArrayKeyword[keyword] && Array.isArray(value));
    const parts: (Schema | boolean)[] = many ? Object.values(value) : schemaKeyword[keyword] ? [value] : [];
    for (const part of parts) yield* partsOf(part);
  }
}

function describe(errors: readonly OutputUnit[]): string {
  const error = errors.find(({ keyword }) => !WRAPPERS.has(keyword)) ?? errors.at(-1);
  if (!error) return 'The params do not match the schema.';
  const where = error.instanceLocation === '#' ? 'params' : error.instanceLocation.slice(1);
  return boundedMessage(error.keyword === 'false' ? `${where}: not allowed` : `${where}: ${error.error}`);
}
