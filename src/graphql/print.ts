import { lexicographicSortSchema, printSchema } from 'graphql';
import { schema } from './schema.ts';

/** The served schema in SDL with its descriptions, in alphabetical order, ending in a newline: the text of `schema.graphql`. */
export function printedSchema(): string {
  return `${printSchema(lexicographicSortSchema(schema))}\n`;
}
