/** Converts errors of execution into problems. It shows only what the mask allows. */
import type { InputError } from '../core/errors.ts';
import { callboardErrorOf, type Mask } from '../graphql/execution/mask.ts';
import { isCode } from '../protocol/codes.ts';
import { explainError, type Explained } from './problem.ts';

/**
 * Converts an error of execution into a problem for the requester. An error that is not meant for requesters becomes
 * `internal` and is logged.
 */
export type Explain = (error: unknown) => Explained;

/**
 * Creates the function that explains errors. The mask decides what may be shown; the function converts the result into
 * the members of a problem.
 */
export function createExplain(mask: Mask): Explain {
  return (error) => {
    const shown = mask(error);
    const known = callboardErrorOf(shown);
    if (known) return explainError(known);
    const { code, id, errors } = shown.extensions;
    // The documents are ours and valid, so an error of graphql-js can only be about what the requester sent.
    if (!isCode(code)) return { code: 'invalid_argument', detail: shown.message };
    return {
      code,
      detail: shown.message,
      ...(typeof id === 'string' && { id }),
      ...(isFaults(errors) && { errors }),
    };
  };
}

function isFaults(value: unknown): value is readonly InputError[] {
  return Array.isArray(value) && value.every((one: Partial<InputError>) => typeof one?.parameter === 'string');
}
