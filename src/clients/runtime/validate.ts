import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import { boundedMessage, messageOf } from './errors.ts';
import type { ActionSpec } from './types.ts';

/** Returns null for valid params, otherwise the first fault, at most 256 characters. */
export type Validate = (params: unknown) => string | null;

/**
 * Compiles JSON Schema 2020-12 with formats, using ajv. One compiler serves all actions. Each schema is compiled once
 * and not kept in ajv's registry, so two actions may use the same `$id`. ajv generates code: a page with a
 * Content-Security-Policy must allow `unsafe-eval`, or use no schemas.
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
