/** Compares a value with a schema, to choose among the alternatives that a form offers. */
import type { RJSFSchema } from '@rjsf/utils';
import { nearestOf } from './exact.ts';

/**
 * Whether a value may be meant for a schema, judged by the types, constants, choices and ranges of its members. The
 * schema must be a part of the bounded copy of `formSchemaOf`, so each call takes at most as many steps as the copy has
 * parts. Entries of lists are not compared, and no regular expression runs, because clients choose the expressions.
 */
export function fits(schema: RJSFSchema | boolean, given: unknown, how: Fit = {}): boolean {
  const value = nearestOf(given);
  if (typeof schema === 'boolean') return schema;
  const { type, const: only, enum: choices, required = [], properties = {} } = schema;
  const alternatives = choicesIn(schema);
  if (type !== undefined && ![type].flat().some((name) => isOfType(name, value))) return false;
  if (only !== undefined && !isSame(only, value)) return false;
  if (!how.isLoose && choices && !choices.some((choice) => isSame(choice, value))) return false;
  if (!how.isLoose && typeof value === 'number' && !isWithin(schema, value)) return false;
  if (isRecord(value)) {
    if (!how.isLoose && !required.every((name) => Object.hasOwn(value, name))) return false;
    const known = Object.entries(properties).filter(([name]) => Object.hasOwn(value, name));
    const isChecked = (part: RJSFSchema | boolean): boolean =>
      !how.isLoose || (typeof part === 'object' && part.const !== undefined);
    if (!known.every(([name, part]) => !isChecked(part) || fits(part, value[name], how))) return false;
  }
  return alternatives.length === 0 || alternatives.some((option) => fits(option, value, how));
}

/** `isLoose`: compares only types and constants, so that an alternative stays chosen while its value is unfinished. */
type Fit = { readonly isLoose?: boolean };
export const LIKE: Fit = { isLoose: true };

function isOfType(type: string, value: unknown): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return isRecord(value);
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}

const isWithin = ({ minimum = -Infinity, maximum = Infinity }: RJSFSchema, value: number): boolean =>
  value >= minimum && value <= maximum;

const isSame = (constant: unknown, value: unknown): boolean =>
  constant === value || (typeof constant === 'object' && JSON.stringify(constant) === JSON.stringify(value));

/** Returns the alternatives of a choice in such a copy; an empty list for any other schema. */
export function choicesIn(schema: RJSFSchema): readonly RJSFSchema[] {
  const choices: unknown = schema['choices'];
  return Array.isArray(choices) ? choices : [];
}

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
