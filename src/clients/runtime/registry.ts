/** Keeps the actions of one runtime, and writes their advertisement. */
import {
  dereference,
  schemaArrayKeyword,
  schemaKeyword,
  schemaMapKeyword,
  validate,
  type OutputUnit,
  type Schema,
} from '@cfworker/json-schema';
import { NAME } from '../../protocol/fields.ts';
import { boundedMessage, fits, messageOf } from './ends.ts';
import type { ActionSpec, Handler } from './types.ts';

/** The limits of actions are the relay's (PROTOCOL.md, section 10). */
const MAX_ACTIONS = 256;
const MAX_ACTION_BYTES = 64 * 1024;
/** The longest delay that setTimeout accepts. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

export type Registered = {
  readonly name: string;
  readonly spec: ActionSpec;
  readonly run: Handler;
  readonly validate: Validate | null;
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
  add(name: string, spec: ActionSpec, run: Handler): () => void {
    const actions = this.#actions;
    const { timeoutMs = MAX_TIMEOUT_MS } = spec;
    if (!NAME.test(name)) throw new TypeError(`action ${name}: invalid action name`);
    if (actions.has(name)) throw new TypeError(`action ${name}: already registered`);
    if (actions.size >= MAX_ACTIONS) throw new TypeError(`action ${name}: more than ${MAX_ACTIONS} actions`);
    if (!(timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS))
      throw new TypeError(`action ${name}: timeoutMs: 1 to ${MAX_TIMEOUT_MS} expected`);
    const action = { name, spec, run, validate: validatorOf(name, spec), json: advertise(name, spec) };
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

function validatorOf(name: string, { schema }: ActionSpec): Validate | null {
  if (schema === undefined) return null;
  try {
    return compileSchema(schema);
  } catch (error) {
    throw new TypeError(`action ${name}: schema: ${messageOf(error)}`, { cause: error });
  }
}

function advertise(name: string, spec: ActionSpec): string {
  const { summary, description, version, schema, metadata } = spec;
  const said = { checks_arguments: schema !== undefined, guards: guardsOf(spec), effects: effectsOf(name, spec) };
  const json = JSON.stringify({ name, summary, description, version, ...said, schema, metadata });
  if (!fits(json, MAX_ACTION_BYTES)) throw new TypeError(`action ${name}: larger than ${MAX_ACTION_BYTES} bytes`);
  return json;
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
  const wrong = Object.values(flags).some((flag) => flag !== undefined && typeof flag !== 'boolean');
  if (wrong) throw new TypeError(`action ${name}: effects: true or false expected`);
  return flags;
}

// A JSON Schema that checks other JSON Schemas (draft 2020-12): each keyword that the validator reads has a valid value.

const count = { type: 'integer', minimum: 0 };
const number = { type: 'number' };
const text = { type: 'string' };
const flag = { type: 'boolean' };
const names = { type: 'array', items: text, uniqueItems: true };
const schema = { $ref: '#' };
const schemas = { type: 'array', items: schema, minItems: 1 };
const schemaMap = { type: 'object', additionalProperties: schema };
const typeName = { enum: ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'] };

/** The keywords of JSON Schema, grouped by the form that their values must have. */
const FORMS: readonly (readonly [form: object | boolean, keywords: string])[] = [
  [text, '$id $anchor $ref $comment format title description'],
  [{ type: 'string', format: 'regex' }, 'pattern'],
  [{ enum: ['', '#'].map((end) => `https://json-schema.org/draft/2020-12/schema${end}`) }, '$schema'],
  [count, 'minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains'],
  [number, 'minimum maximum exclusiveMinimum exclusiveMaximum'],
  [{ type: 'number', exclusiveMinimum: 0 }, 'multipleOf'],
  [flag, 'uniqueItems'],
  [names, 'required'],
  [{ type: 'array' }, 'enum'],
  [{ anyOf: [typeName, { type: 'array', items: typeName, minItems: 1, uniqueItems: true }] }, 'type'],
  [schemas, 'allOf anyOf oneOf prefixItems'],
  [schema, 'not if then else items contains additionalProperties propertyNames unevaluatedItems unevaluatedProperties'],
  [schemaMap, '$defs definitions properties dependentSchemas'],
  [{ ...schemaMap, propertyNames: { format: 'regex' } }, 'patternProperties'],
  [{ type: 'object', additionalProperties: names }, 'dependentRequired'],
  // Forbidden: the validator ignores `$dynamicRef`. It reads the other two, but they belong to older drafts.
  [false, '$dynamicRef $recursiveRef id'],
];

/** A JSON Schema that accepts every schema that the validator can apply. */
const SCHEMA_FORM: Readonly<Record<string, unknown>> = {
  type: ['object', 'boolean'],
  properties: Object.fromEntries(FORMS.flatMap(([form, keywords]) => keywords.split(' ').map((name) => [name, form]))),
};

// Checks the params of commands against the JSON Schema of their action.

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
 * Prepares a JSON Schema 2020-12, including its formats, for checking params. Throws if the schema is invalid, refers
 * to a schema outside itself, or uses `$dynamicRef`. The schema is interpreted: no code is generated, so a page may
 * forbid `unsafe-eval`.
 */
export function compileSchema(schema: NonNullable<ActionSpec['schema']>): Validate {
  const fault = checkForm(schema);
  if (fault !== null) throw new TypeError(fault.replace(/^params/, 'the schema'));
  return interpreter(schema);
}

function interpreter(given: unknown): Validate {
  // The schema is copied, because the library writes to schemas.
  const schema = copySchema(given);
  const lookup = dereference(schema);
  for (const part of partsOf(schema)) {
    if (part.$ref !== undefined && lookup[part.__absolute_ref__ ?? ''] === undefined) {
      throw new TypeError(`no schema for $ref ${part.$ref}`);
    }
    if (part.format === UNSAFE_FORMAT) delete part.format;
  }
  return (params) => {
    try {
      const { valid, errors } = validate(bare(params), schema, '2020-12', lookup);
      return valid ? null : describe(errors);
    } catch (error) {
      return messageOf(error);
    }
  };
}

function copySchema(given: unknown): Schema | boolean {
  const copy = bare(JSON.parse(JSON.stringify(given)));
  if (!isSchema(copy)) throw new TypeError('the schema is neither an object nor a boolean');
  return copy;
}

function isSchema(value: unknown): value is Schema | boolean {
  return typeof value === 'boolean' || (typeof value === 'object' && value !== null && !Array.isArray(value));
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
