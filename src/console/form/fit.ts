/** Whether a value fits a schema, as far as a form asks. */
import type { RJSFSchema } from '@rjsf/utils';
import { nearestOf } from './exact.ts';

/**
 * Whether a value may be meant for a schema, by the types, constants, choices and ranges of its members. The schema is
 * a part of the bounded copy of `formSchemaOf`, so each call takes at most as many steps as the copy has parts. Entries
 * of lists are not looked at, and no expression runs: clients choose the expressions.
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

/** `isLoose`: only types and constants are compared, so that an unfinished value keeps its alternative. */
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

/** Returns the alternatives of a choice in a copy; none for any other schema. */
export function choicesIn(schema: RJSFSchema): readonly RJSFSchema[] {
  const choices: unknown = schema['choices'];
  return Array.isArray(choices) ? choices : [];
}

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
