/**
 * The worker that checks the arguments of a call. It interprets the schema of the action, and generates no code, because
 * its content security policy forbids that. `checker.ts` starts it and ends it when a check takes too long.
 */
import { Validator, type Schema } from '@cfworker/json-schema';
import type { FromWorker, ParamsFault, ToWorker } from './checker.ts';

/** The maximum number of faults that are shown. */
const FAULTS = 20;
/** The maximum length of the text of a fault, in characters. It can contain texts of the schema. */
const FAULT_CHARS = 300;

let schema: unknown = null;

const answer = (message: FromWorker): void => postMessage(message);

addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  if ('text' in data) return answer(faultsOf(schema, JSON.parse(data.text)));
  schema = data.schema;
  answer('ready');
});

/** Returns the faults of a value. A schema that cannot be read counts as a fault of the whole value. */
function faultsOf(schema: unknown, value: unknown): readonly ParamsFault[] {
  if (!isSchema(schema)) return [{ at: '', text: 'The schema of the action is not an object.', syntax: false }];
  try {
    const { valid, errors } = new Validator(schema, '2020-12', false).validate(value);
    if (valid) return [];
    return errors
      .filter(({ keyword }) => !WRAPPERS.has(keyword))
      .slice(0, FAULTS)
      .map(({ instanceLocation, error }) => ({
        at: pathOf(instanceLocation),
        text: error.slice(0, FAULT_CHARS),
        syntax: false,
      }));
  } catch (error) {
    const text = `The schema of the action cannot be read: ${String(error)}`.slice(0, FAULT_CHARS);
    return [{ at: '', text, syntax: false }];
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
