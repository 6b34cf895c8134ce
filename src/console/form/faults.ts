/** Converts faults of params to the shape in which the forms library shows them beside its fields. */
import { ErrorSchemaBuilder, type ErrorSchema } from '@rjsf/utils';
import type { ParamsFault } from '../invoke/checker.ts';
import { isReserved } from './form-schema.ts';

/**
 * Returns the faults as the tree that the forms library reads: each level has the texts of its own faults, and the
 * levels below it. A fault at a name that the library cannot hold becomes one of the whole value.
 */
export function errorSchemaOf(faults: readonly ParamsFault[]): ErrorSchema {
  const root = new ErrorSchemaBuilder();
  for (const { at, text } of faults) {
    const path = at === '' ? [] : at.split('.');
    root.addErrors(text, path.some(isReserved) ? [] : path);
  }
  return root.ErrorSchema;
}
