/**
 * Implements the validator that the forms library requires. The form uses it only to choose among alternatives, and
 * checks nothing else.
 */
import type { RJSFSchema, ValidatorType } from '@rjsf/utils';
import { checkValue } from '../invoke/check.ts';

export const validator: ValidatorType<unknown, RJSFSchema> = {
  validateFormData: () => ({ errors: [], errorSchema: {} }),
  rawValidation: () => ({ errors: [] }),
  /** Returns whether the value is valid. `rootSchema` holds the definitions that `schema` may refer to. */
  isValid: (schema, formData, rootSchema) => {
    const { $defs, definitions } = rootSchema;
    return (
      checkValue({ ...($defs && { $defs }), ...(definitions && { definitions }), ...schema }, formData).length === 0
    );
  },
};
