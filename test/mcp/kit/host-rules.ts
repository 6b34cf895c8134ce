/**
 * What the hosts of models refuse in a list of tools, as their makers document it or as their errors say: a single tool
 * that breaks a rule fails every request that carries the list.
 */
import { isRecord } from '../../../src/core/json.ts';
import type { Tool } from '../../../src/mcp/tools.ts';

type Schema = Readonly<Record<string, unknown>>;
type Visit = (schema: Schema, level: number) => string | null;

const TYPES: readonly unknown[] = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];

/** Returns the schemas directly within a schema. */
function partsOf({ properties, items, anyOf, additionalProperties }: Schema): readonly unknown[] {
  return [
    ...(isRecord(properties) ? Object.values(properties) : []),
    ...(items === undefined ? [] : [items]),
    ...(Array.isArray(anyOf) ? anyOf : []),
    ...(additionalProperties === undefined || typeof additionalProperties === 'boolean' ? [] : [additionalProperties]),
  ];
}

/** Returns the first fault of a schema and all within it; null: there is none. */
function faultOf(schema: unknown, visit: Visit, level = 1): string | null {
  if (!isRecord(schema)) return `no object: ${JSON.stringify(schema)}`;
  const own = visit(schema, level);
  if (own !== null) return own;
  for (const part of partsOf(schema)) {
    const fault = faultOf(part, visit, level + 1);
    if (fault !== null) return fault;
  }
  return null;
}

/** Messages API: names of tools and of properties, and a root that is an object and combines nothing. */
function anthropic({ name, inputSchema }: Tool): string | null {
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(`mcp__callboard__${name}`)) return `the name ${name}`;
  if (inputSchema.type !== 'object') return 'the root is no object';
  if (['anyOf', 'oneOf', 'allOf'].some((word) => inputSchema[word] !== undefined)) return 'the root combines others';
  return faultOf(inputSchema, ({ properties = {} }) => {
    if (!isRecord(properties)) return 'properties are no object';
    const wrong = Object.keys(properties).find((key) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(key));
    return wrong === undefined ? null : `the property ${wrong}`;
  });
}

/** Function calling: names, lists with items, levels, numbers of properties and of values. */
function openai({ name, inputSchema, description }: Tool): string | null {
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) return `the name ${name}`;
  if (description.length > 1024) return 'a long description';
  let [properties, values] = [0, 0];
  const fault = faultOf(inputSchema, (schema, level) => {
    if (schema['type'] === 'array' && schema['items'] === undefined) return 'a list without items';
    if (level > 12) return 'too many levels';
    properties += isRecord(schema['properties']) ? Object.keys(schema['properties']).length : 0;
    values += Array.isArray(schema['enum']) ? schema['enum'].length : 0;
    if (Array.isArray(schema['enum']) && schema['enum'].length > 250 && schema['enum'].join('').length > 15_000)
      return 'a long enumeration';
    return schema['anyOf'] !== undefined && !Array.isArray(schema['anyOf']) ? 'anyOf is no list' : null;
  });
  return fault ?? (properties > 5_000 || values > 1_000 ? 'too many properties or values' : null);
}

/** The members that the schemas of Gemini have, in JSON Schema and in the older form alike. */
const GEMINI: ReadonlySet<string> = new Set([
  ...['type', 'description', 'enum', 'items', 'minItems', 'maxItems', 'minimum', 'maximum', 'anyOf', 'properties'],
  ...['required', 'additionalProperties'],
]);

/** Function declarations: members, one type for each schema, texts as values, required members that exist. */
function gemini({ inputSchema }: Tool): string | null {
  return faultOf(inputSchema, (schema) => {
    const strange = Object.keys(schema).find((word) => !GEMINI.has(word));
    if (strange !== undefined) return `the member ${strange}`;
    const { type, anyOf, enum: values, properties = {}, required = [] } = schema;
    if (anyOf !== undefined) {
      const beside = Object.keys(schema).filter((word) => word !== 'anyOf' && word !== 'description');
      return beside.length > 0 ? `anyOf beside ${beside.join(', ')}` : null;
    }
    if (!TYPES.includes(type)) return `the type ${JSON.stringify(type)}`;
    if (type === 'array' && schema['items'] === undefined) return 'a list without items';
    if (values !== undefined && type !== 'string') return 'an enumeration of other things than texts';
    if (Array.isArray(values) && !values.every((value) => typeof value === 'string' && value !== '')) return 'a value';
    const names = isRecord(properties) ? Object.keys(properties) : [];
    const missing = Array.isArray(required) ? required.find((name) => !names.includes(String(name))) : 'no list';
    return missing === undefined ? null : `the required member ${String(missing)}`;
  });
}

const HOSTS = { anthropic, openai, gemini };

/** Returns what hosts refuse of a tool; empty: all take it. */
export function refusedByHosts(tool: Tool): readonly string[] {
  return Object.entries(HOSTS).flatMap(([host, check]) => {
    const fault = check(tool);
    return fault === null ? [] : [`${host} refuses ${tool.name}: ${fault}`];
  });
}
