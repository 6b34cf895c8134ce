/**
 * Implements the validator that the forms library requires. The form uses it only to choose among alternatives. A
 * worker checks the arguments (`invoke/checker.ts`).
 */
import type { RJSFSchema, ValidatorType } from '@rjsf/utils';
import { fits } from './fit.ts';

export const validator: ValidatorType<unknown, RJSFSchema> = {
  validateFormData: () => ({ errors: [], errorSchema: {} }),
  rawValidation: () => ({ errors: [] }),
  isValid: (schema, formData) => fits(schema, formData),
};
