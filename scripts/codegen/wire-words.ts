/** Finds the words that REST writes for the values of each GraphQL enum. */
import { schema } from '../../src/graphql/schema/schema.ts';

/**
 * Returns a record for each enum, by the enum's name. The record has the word of each value, by the value's name. It
 * recognizes enums by their form, since codegen uses its own copy of the graphql module.
 */
export function wireWords(): Record<string, Record<string, string>> {
  const words: Record<string, Record<string, string>> = {};
  for (const type of Object.values(schema.getTypeMap())) {
    if (!('getValues' in type) || type.name.startsWith('__')) continue;
    words[type.name] = Object.fromEntries(type.getValues().map(({ name, value }) => [name, String(value)]));
  }
  return words;
}
