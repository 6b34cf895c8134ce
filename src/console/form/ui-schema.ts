/** Decides which parts of a schema a form can show; the others become fields of JSON text. */
import type { UiSchema } from '@rjsf/utils';

/** The JSON Schema keywords that a form cannot show. */
const NOT_FORMABLE = [
  'prefixItems',
  'patternProperties',
  'if',
  'not',
  'dependentSchemas',
  'unevaluatedProperties',
  'contains',
];
/**
 * The deepest level that a form shows. Deeper parts are fields of JSON text, so that a schema that refers to itself
 * ends somewhere.
 */
const DEPTH = 8;

const JSON_PART: UiSchema = { 'ui:field': 'JsonField' };

export function uiSchemaOf(schema: unknown): UiSchema {
  return partOf(schema, { root: schema, depth: 0 });
}

type Place = { readonly root: unknown; readonly depth: number };

function partOf(given: unknown, place: Place): UiSchema {
  const schema = resolve(given, place.root);
  if (place.depth > DEPTH || !isFormable(schema)) return JSON_PART;
  const below = { ...place, depth: place.depth + 1 };
  const parts: UiSchema = {};
  for (const [name, property] of Object.entries(membersOf(schema['properties']))) parts[name] = partOf(property, below);
  if (schema['items'] !== undefined) parts['items'] = partOf(schema['items'], below);
  for (const keyword of ['oneOf', 'anyOf']) {
    const options: unknown = schema[keyword];
    if (Array.isArray(options)) parts[keyword] = options.map((option) => partOf(option, below));
  }
  return parts;
}

/** Whether the form has a control for this schema. */
function isFormable(schema: Readonly<Record<string, unknown>>): boolean {
  if (NOT_FORMABLE.some((keyword) => schema[keyword] !== undefined)) return false;
  if (schema['enum'] !== undefined || schema['const'] !== undefined) return true;
  if (schema['oneOf'] !== undefined || schema['anyOf'] !== undefined || schema['allOf'] !== undefined) return true;
  const { type } = schema;
  if (Array.isArray(type)) return type.filter((name) => name !== 'null').length === 1;
  if (type === 'array') return schema['items'] !== undefined && typeof schema['items'] !== 'boolean';
  return typeof type === 'string' || schema['properties'] !== undefined;
}

/**
 * Returns the given schema, or the part of the root schema that its `$ref` names. For any other `$ref`, returns a
 * schema that no form can show.
 */
function resolve(given: unknown, root: unknown): Readonly<Record<string, unknown>> {
  const schema = membersOf(given);
  const { $ref } = schema;
  if (typeof $ref !== 'string') return schema;
  if (!$ref.startsWith('#/')) return { not: {} };
  let found: unknown = root;
  for (const part of $ref.slice(2).split('/')) {
    found = membersOf(found)[decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')];
  }
  return membersOf(found);
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}
