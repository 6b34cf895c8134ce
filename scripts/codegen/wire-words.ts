/** The words that REST writes for each name of a GraphQL enum. */
import { schema } from '../../src/graphql/schema/schema.ts';

/** Each enum by name, with its words by name. Asked by shape, since codegen has a graphql module of its own. */
export function wireWords(): Record<string, Record<string, string>> {
  const words: Record<string, Record<string, string>> = {};
  for (const type of Object.values(schema.getTypeMap())) {
    if (!('getValues' in type) || type.name.startsWith('__')) continue;
    words[type.name] = Object.fromEntries(type.getValues().map(({ name, value }) => [name, String(value)]));
  }
  return words;
}
