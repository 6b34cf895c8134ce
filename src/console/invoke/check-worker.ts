/**
 * The worker that checks the arguments of a call. It interprets the action's schema instead of generating code, because
 * its content security policy forbids generated code. `checker.ts` starts it, and ends it if a check takes too long.
 */
import { Validator, type Schema } from '@cfworker/json-schema';
import { FAULT_CHARS, faultsOf } from './fault-texts.ts';
import type { FromWorker, ParamsFault, ToWorker } from './checker.ts';

let schema: unknown = null;

const answer = (message: FromWorker): void => postMessage(message);

addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  if ('text' in data) return answer(check(schema, JSON.parse(data.text)));
  schema = data.schema;
  answer('ready');
});

/** Returns the faults of a value. If the schema cannot be read, that is a fault of the whole value. */
function check(schema: unknown, value: unknown): readonly ParamsFault[] {
  if (!isSchema(schema)) return [{ at: '', text: 'The schema of the action is not an object.', syntax: false }];
  try {
    return faultsOf(new Validator(schema, '2020-12', false).validate(value).errors);
  } catch (error) {
    const text = `The schema of the action cannot be read: ${String(error)}`.slice(0, FAULT_CHARS);
    return [{ at: '', text, syntax: false }];
  }
}

const isSchema = (schema: unknown): schema is Schema =>
  typeof schema === 'object' && schema !== null && !Array.isArray(schema);
