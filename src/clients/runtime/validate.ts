import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import { boundedMessage, messageOf } from './errors.ts';
import type { ActionSpec } from './types.ts';

/** Null: valid. Else the first fault, bounded. */
export type Validate = (params: unknown) => string | null;

/**
 * JSON Schema 2020-12 with formats, by ajv. One compiler for all actions, each schema compiled once and never put into the compiler's own
 * register, so that two actions may use the same `$id`. ajv writes code: a page with a Content-Security-Policy must allow `unsafe-eval`,
 * or do without schemas.
 */
export function createCompiler(): (schema: NonNullable<ActionSpec['schema']>) => Validate {
  const ajv = new Ajv2020({ strict: false, addUsedSchema: false, logger: false });
  ajvFormats.default(ajv);
  return (schema) => {
    const check = ajv.compile(schema);
    ajv.removeSchema(schema);
    return (params) => {
      try {
        return check(params) ? null : describe(check.errors?.[0]);
      } catch (error) {
        return messageOf(error);
      }
    };
  };
}

function describe(error: ErrorObject | undefined): string {
  if (!error) return 'The params do not match the schema.';
  const where = error.instancePath === '' ? 'params' : error.instancePath;
  const extra = error.keyword === 'additionalProperties' ? ` (${String(error.params['additionalProperty'])})` : '';
  return boundedMessage(`${where} ${error.message ?? 'is wrong'}${extra}`);
}
