/** Prints the schema as text, as schema.graphql holds it. */
import { lexicographicSortSchema, printSchema } from 'graphql';
import { schema } from './schema.ts';

/**
 * Prints the served schema as SDL with descriptions, sorted alphabetically and ending in a newline: the text of
 * `schema.graphql`.
 */
export function printedSchema(): string {
  return `${printSchema(lexicographicSortSchema(schema))}\n`;
}
