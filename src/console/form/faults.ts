/** Faults of params in the shape in which the form shows them beside its fields. */
import { ErrorSchemaBuilder, type ErrorSchema } from '@rjsf/utils';
import type { ParamsFault } from '../invoke/check.ts';

/** The names are those of the form's library: the texts of one place, beside the places below it. */
export function errorSchemaOf(faults: readonly ParamsFault[]): ErrorSchema {
  const root = new ErrorSchemaBuilder();
  for (const { at, text } of faults) root.addErrors(text, at === '' ? [] : at.split('.'));
  return root.ErrorSchema;
}
