/**
 * Implements the validator that the forms library requires. The form uses it only to choose among alternatives, and
 * checks nothing else: a worker checks the arguments (`invoke/checker.ts`).
 */
import type { RJSFSchema, ValidatorType } from '@rjsf/utils';

export const validator: ValidatorType<unknown, RJSFSchema> = {
  validateFormData: () => ({ errors: [], errorSchema: {} }),
  rawValidation: () => ({ errors: [] }),
  isValid: (schema, formData) => fits(schema, formData),
};

/**
 * Whether a value may be meant for a schema, by the types, constants, choices and ranges of its members. The schema is
 * a part of the bounded copy of `formSchemaOf`, so each call takes at most as many steps as the copy has parts. Entries
 * of lists are not looked at, and no expression runs: clients choose the expressions.
 */
function fits(schema: RJSFSchema | boolean, value: unknown): boolean {
  if (typeof schema === 'boolean') return schema;
  const { type, const: only, enum: choices, required = [], properties = {}, anyOf, oneOf, allOf } = schema;
  if (type !== undefined && ![type].flat().some((name) => isOfType(name, value))) return false;
  if (only !== undefined && !isSame(only, value)) return false;
  if (choices && !choices.some((choice) => isSame(choice, value))) return false;
  if (typeof value === 'number' && !isWithin(schema, value)) return false;
  if (isRecord(value)) {
    if (!required.every((name) => Object.hasOwn(value, name))) return false;
    const known = Object.entries(properties).filter(([name]) => Object.hasOwn(value, name));
    if (!known.every(([name, part]) => fits(part, value[name]))) return false;
  }
  if (anyOf && !anyOf.some((option) => fits(option, value))) return false;
  if (oneOf && !oneOf.some((option) => fits(option, value))) return false;
  return !allOf || allOf.every((member) => fits(member, value));
}

function isOfType(type: string, value: unknown): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return isRecord(value);
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}

function isWithin({ minimum = -Infinity, maximum = Infinity }: RJSFSchema, value: number): boolean {
  return value >= minimum && value <= maximum;
}

function isSame(constant: unknown, value: unknown): boolean {
  return constant === value || (typeof constant === 'object' && JSON.stringify(constant) === JSON.stringify(value));
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
