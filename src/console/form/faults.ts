/** Faults of params in the shape in which the form shows them beside its fields. */
import { ErrorSchemaBuilder, type ErrorSchema } from '@rjsf/utils';
import type { ParamsFault } from '../invoke/check.ts';

/** Converts faults to the tree of the form's library, in which each field has its texts beside its child fields. */
export function errorSchemaOf(faults: readonly ParamsFault[]): ErrorSchema {
  const root = new ErrorSchemaBuilder();
  for (const { at, text } of faults) root.addErrors(text, at === '' ? [] : at.split('.'));
  return root.ErrorSchema;
}
