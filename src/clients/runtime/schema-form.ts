/**
 * Holds a JSON Schema that checks other JSON Schemas (draft 2020-12): each keyword that the validator reads must have a
 * valid value.
 */

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
export const SCHEMA_FORM: Readonly<Record<string, unknown>> = {
  type: ['object', 'boolean'],
  properties: Object.fromEntries(FORMS.flatMap(([form, keywords]) => keywords.split(' ').map((name) => [name, form]))),
};
