/** Reads the examples of the OpenAPI document: requests to a relay and its answers. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A request to one operation, and the answers of a relay by status. */
export type OperationExample = {
  readonly requestBody?: unknown;
  readonly responses: Readonly<Record<string, unknown>>;
};

export type Examples = {
  /** A value for each parameter, by its wire name. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** The example of each operation, by operation id. */
  readonly operations: Readonly<Record<string, OperationExample>>;
};

/** An empty set of examples, for documents that do not ship with callboard. */
export const NO_EXAMPLES: Examples = { parameters: {}, operations: {} };

/** Reads the examples that ship with callboard. `scripts/docs/record-examples.ts` records them from a relay. */
export function readExamples(): Examples {
  return JSON.parse(readFileSync(join(import.meta.dirname, 'examples.json'), 'utf8'));
}
