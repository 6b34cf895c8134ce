/** Checks the params of commands against the JSON Schema of their action. */
import { dereference, schemaArrayKeyword, schemaKeyword, schemaMapKeyword, validate } from '@cfworker/json-schema';
import type { OutputUnit, Schema } from '@cfworker/json-schema';
import { boundedMessage, messageOf } from './errors.ts';
import { SCHEMA_FORM } from './schema-form.ts';
import type { ActionSpec } from './types.ts';

/** Returns null for valid params, otherwise the first fault, at most 256 characters. */
export type Validate = (params: unknown) => string | null;

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
