/** Converts faults of params to the shape in which the forms library shows them beside its fields. */
import { ErrorSchemaBuilder, type ErrorSchema } from '@rjsf/utils';
import type { ParamsFault } from '../invoke/check.ts';

/**
 * Returns the faults as the tree that the forms library reads: each level has the texts of its own faults, and the
 * levels below it.
 */
export function errorSchemaOf(faults: readonly ParamsFault[]): ErrorSchema {
  const root = new ErrorSchemaBuilder();
  for (const { at, text } of faults) root.addErrors(text, at === '' ? [] : at.split('.'));
  return root.ErrorSchema;
}
