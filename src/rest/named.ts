/** The type of JSON Schemas, and the names of those schemas that are components of the OpenAPI document. */

/** A JSON Schema (2020-12, as OpenAPI 3.1 takes it). */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** The key under which a schema keeps the name of its component. It does not appear in JSON. */
const COMPONENT = Symbol('component');

export type SchemaComponent = { readonly name: string; readonly schema: JsonSchema };

type Reference = JsonSchema & { readonly [COMPONENT]?: SchemaComponent };

/**
 * Returns a reference to a schema that the OpenAPI document lists under this name. Further keywords may be added to it.
 * The document is the only reader: `openapi/components.ts` turns it into a `$ref`.
 */
export function named(name: string, schema: JsonSchema): JsonSchema {
  const reference: Reference = { [COMPONENT]: { name, schema } };
  return reference;
}

export function componentOf(schema: Reference): SchemaComponent | undefined {
  return schema[COMPONENT];
}

/** Returns a schema that also accepts null. A schema that accepts everything stays as it is. */
export function orNull(schema: JsonSchema): JsonSchema {
  const { description, default: preset, ...rest } = schema;
  const { type, anyOf } = rest;
  if (typeof type === 'string') return { ...schema, type: [type, 'null'] };
  if (Array.isArray(anyOf)) return { ...schema, anyOf: [...anyOf, { type: 'null' }] };
  if (componentOf(schema) === undefined) return schema;
  const outer = { ...(description !== undefined && { description }), ...(preset !== undefined && { default: preset }) };
  return { ...outer, anyOf: [rest, { type: 'null' }] };
}
