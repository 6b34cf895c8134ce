/** Converts faults of params into the form in which the forms library shows them beside its fields. */
import { ErrorSchemaBuilder, type ErrorSchema } from '@rjsf/utils';
import type { ParamsFault } from '../invoke/checker.ts';
import { isReserved, type Schema, FORMAT_NAME } from './form-schema.ts';

/**
 * Returns the faults as the tree that the forms library reads: each level has the texts of its own faults and the
 * levels below it. If the library cannot represent the name of a faulty member, the fault is shown for the whole value.
 */
export function errorSchemaOf(faults: readonly ParamsFault[]): ErrorSchema {
  const root = new ErrorSchemaBuilder();
  for (const { at, text } of faults) {
    const path = at === '' ? [] : at.split('.');
    root.addErrors(text, path.some(isReserved) ? [] : path);
  }
  return root.ErrorSchema;
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'whole number',
  number: 'number',
  boolean: 'true or false',
  array: 'list',
  object: 'object',
  null: 'none',
};

export function hintOf(schema: Schema, required: boolean): string {
  const words = [rangeOf(schema) ?? typeOf(schema), formatOf(schema), required ? 'required' : ''];
  return words.filter((word) => word !== '').join(', ');
}

function typeOf({ type, enum: values, const: only }: Schema): string {
  if (Array.isArray(values)) return `one of ${values.length}`;
  if (only !== undefined) return `always ${JSON.stringify(only)}`;
  return typeWord(type);
}

/** Returns the words for the type of a schema; an empty text if the schema has no type. */
export function typeWord(type: unknown): string {
  const names = Array.isArray(type) ? type : [type];
  return names
    .map((name) => TYPES[String(name)] ?? '')
    .filter(Boolean)
    .join(' or ');
}

function rangeOf(schema: Schema): string | null {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, maxLength, minLength, maxItems } = schema;
  const low = minimum ?? (exclusiveMinimum === undefined ? undefined : `above ${String(exclusiveMinimum)}`);
  const high = maximum ?? (exclusiveMaximum === undefined ? undefined : `below ${String(exclusiveMaximum)}`);
  if (low !== undefined && high !== undefined) return `${String(low)} to ${String(high)}`;
  if (low !== undefined) return typeof low === 'string' ? low : `at least ${String(low)}`;
  if (high !== undefined) return typeof high === 'string' ? high : `at most ${String(high)}`;
  if (maxItems !== undefined) return `up to ${String(maxItems)}`;
  if (maxLength !== undefined) return `text of at most ${String(maxLength)} characters`;
  return minLength === undefined || minLength === 0 ? null : `text of at least ${String(minLength)} characters`;
}

function formatOf({ [FORMAT_NAME]: format, pattern }: Schema): string {
  if (typeof format === 'string') return format;
  return typeof pattern === 'string' ? `fits ${pattern}` : '';
}
