/**
 * Checks params by interpreting the schema of the action. It generates no code, because the page's content security
 * policy forbids it.
 */
import { Validator, type Schema } from '@cfworker/json-schema';

export type ParamsFault = {
  /** The path of the faulty part: names and indexes joined with dots; empty for the whole value. */
  readonly at: string;
  readonly text: string;
  /** Whether the fault is that the text is not JSON. Such a text cannot be sent. */
  readonly syntax: boolean;
};

/** The maximum number of faults that are shown. */
const FAULTS = 20;

/**
 * Returns the faults of params, given as JSON text. It returns none if the text fits the schema, or if there is no
 * schema.
 */
export function checkParams(schema: unknown, text: string): readonly ParamsFault[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return [{ at: '', text: error instanceof Error ? error.message : 'This is not JSON.', syntax: true }];
  }
  return schema === null ? [] : checkValue(schema, value);
}

/**
 * Checks a parsed value as `checkParams` checks a text. A schema that cannot be read counts as a fault of the whole
 * value.
 */
export function checkValue(schema: unknown, value: unknown): readonly ParamsFault[] {
  if (!isSchema(schema)) return [{ at: '', text: 'The schema of the action is not an object.', syntax: false }];
  try {
    const { valid, errors } = new Validator(schema, '2020-12', false).validate(value);
    if (valid) return [];
    return errors
      .filter(({ keyword }) => !WRAPPERS.has(keyword))
      .slice(0, FAULTS)
      .map(({ instanceLocation, error }) => ({ at: pathOf(instanceLocation), text: error, syntax: false }));
  } catch (error) {
    return [{ at: '', text: `The schema of the action cannot be read: ${String(error)}`, syntax: false }];
  }
}

/** The keywords whose errors only say that a part of the value has errors. */
const WRAPPERS = new Set(['properties', 'items', '$ref', 'allOf', 'additionalProperties', 'prefixItems']);

function isSchema(schema: unknown): schema is Schema {
  return typeof schema === 'object' && schema !== null && !Array.isArray(schema);
}

/** Returns a path in dots, `lines.0.text`, for a location such as `#/lines/0/text`. */
function pathOf(location: string): string {
  return location
    .replace(/^#\/?/, '')
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .join('.');
}
